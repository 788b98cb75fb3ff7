"""What a replica does with a shipped checkpoint before any batch of its own, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import COUNTS, a_bag, rows_of, word_count, word_count_layout
from tests.checkpoints import FakeQuery
from tests.sites import a_context

from understudy.checkpoints.interface import Checkpoint, Shipped
from understudy.checkpoints.spark_files import committed, forget_last_commit
from understudy.control.replica import actions
from understudy.errors import Away
from understudy.model.capabilities import ALL, ROWS
from understudy.model.messages import Deploy
from understudy.model.names import SliceId
from understudy.model.recovery import Guarantee, Recovery, Scheme
from understudy.stream.execution import execute
from understudy.stream.query import QueryReplica
from understudy.stream.spark_edge import SparkEdge

NOTHING = rows_of().schema


class StillQuery:
    """A query that does what it is told at once, and notes it."""

    def __init__(self, directory: Path) -> None:
        self.name, self.directory, self.cpu_s, self.arrived = "still", directory, 0.0, True
        self.announced: list[int] = []
        self.moved: list[int] = []
        self.state_loaded = False
        self.state_rows = 0

    def start(self, *_: object) -> None:
        pass

    def announce(self, epoch: int, lines: Sequence[str]) -> None:
        self.announced.append(epoch)

    def await_committed(self, epoch: int, millis: int) -> bool:
        return True

    def checkpoint(self) -> Checkpoint | None:
        return committed(self.directory)

    def forget_last_commit(self) -> int | None:
        return forget_last_commit(self.directory)

    def jump(self, marker: Any, *, keep_state: bool) -> bool:
        self.moved.append(marker.epoch)
        return True

    def favour(self, primary: bool) -> None:
        pass

    def stop(self) -> None:
        pass


@dataclass(frozen=True)
class StillEdge(SparkEdge):
    queries: list[StillQuery] = field(default_factory=list)

    def query(self, slice_id: Any, name: Any, directory: Path, batch: Any, ended: Any) -> Any:
        self.queries.append(StillQuery(directory))
        return self.queries[-1]


@dataclass
class Made:
    """A replica of `counts[0]` whose queries are still ones."""

    replica: QueryReplica
    edge: StillEdge

    def do(self, *wanted: Any) -> None:
        for action in wanted:
            execute(action, self.replica)


def make(tmp_path: Path, scheme: Scheme, **vertex: Any) -> Made:
    layout = word_count_layout()
    changed = tuple(replace(v, **vertex) if v.name == "counts" else v for v in layout.vertices)
    layout = replace(layout, vertices=changed)
    schemas = {"lines": NOTHING, "words": NOTHING, "counts": NOTHING}
    context = a_context(tmp_path, word_count(), layout=layout, schemas=schemas)
    spark: Any = None
    known: Any = context.edge
    shared = (known.disk, context.log, context.topology, layout, schemas, known.checkpoints)
    edge = StillEdge(spark, tmp_path, *shared)
    ask = Deploy(slice=COUNTS, generation=2, primary=False, capabilities=ROWS[scheme], ship_every=0)
    return Made(QueryReplica(replace(context, edge=edge), ask), edge)


def shipped_to(made: Made, tmp_path: Path, epoch: int) -> None:
    """The primary has shipped an epoch, whose input is still there."""
    primary = FakeQuery(tmp_path / f"primary-{epoch}")
    primary.run(epoch + 1)
    made.replica.store.ship(primary.committed(), epoch, 1, Shipped())
    context = made.replica.context
    for upstream in (SliceId("words", 0), SliceId("words", 1)):
        context.log.publish(a_bag(epoch, None, upstream, *context.layout.splits("words")), durable=False)


def test_a_secondary_loads_its_state_by_running_the_last_batch_again(tmp_path: Path) -> None:
    made = make(tmp_path, Scheme.PASSIVE_STANDBY_HOT)
    shipped_to(made, tmp_path, 3)
    made.do(actions.PrepareQuery(load=True), actions.SwapQuery())
    (query,) = made.edge.queries
    assert query.announced == [3]
    assert not (query.directory / "commits" / "3").exists()
    assert made.replica.queries.loaded
    assert made.replica.position.next == 4


def test_a_secondary_whose_store_is_away_stays_where_it_is_and_follows_the_next_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make(tmp_path, Scheme.PASSIVE_STANDBY_HOT)
    shipped_to(made, tmp_path, 3)
    made.do(actions.PrepareQuery(load=False), actions.SwapQuery())
    shipped_to(made, tmp_path, 6)

    def pull(*_: Any) -> None:
        raise Away("the store does not respond", why="a test says so", fix="none")

    with monkeypatch.context() as away:
        away.setattr(made.replica.store, "pull", pull)
        made.do(actions.Follow())
    assert made.replica.position.next == 4
    assert made.replica.fruitless == 6, "no other try before something newer is shipped"
    assert made.replica.status().failure is None
    shipped_to(made, tmp_path, 9)
    made.do(actions.Follow())
    assert made.replica.fruitless is None, "it was pulled"


def test_but_not_where_it_would_come_to_another_state(tmp_path: Path) -> None:
    made = make(tmp_path, Scheme.PASSIVE_STANDBY_COLD, deterministic=False)
    shipped_to(made, tmp_path, 3)
    made.do(actions.PrepareQuery(load=True), actions.SwapQuery())
    shipped_to(made, tmp_path, 4)
    made.do(actions.Follow())
    (query,) = made.edge.queries
    assert (query.announced, query.moved) == ([], [4]), "it waits on what was shipped, and follows"
    assert (query.directory / "commits" / "3").exists()


@pytest.mark.parametrize("guarantee", Guarantee)
def test_an_active_secondary_that_is_promoted_fences_its_predecessor(guarantee: Guarantee, tmp_path: Path) -> None:
    made = make(tmp_path, Scheme.ACTIVE_REPLICATION, recovery=Recovery(guarantee=guarantee))
    made.replica.live.update(capabilities=ALL)
    made.replica.adjust(Deploy(slice=COUNTS, generation=2))
    made.replica.step()
    assert made.replica.context.log.fenced(COUNTS) == (0 if guarantee is Guarantee.PRECISE else 2)


@pytest.mark.parametrize(("deterministic", "diverged"), [(True, None), (False, 3)])
def test_the_replay_of_a_state_of_chance_counts_as_another_result_even_if_the_bag_does_not_show_it(
    deterministic: bool, diverged: int | None, tmp_path: Path
) -> None:
    replica = make(tmp_path, Scheme.PASSIVE_REPLICATION, deterministic=deterministic).replica
    for _ in range(2):
        replica.publish(a_bag(3, None, COUNTS), durable=True)
    assert replica.status().diverged == diverged


def test_where_nothing_is_replayed_a_damaged_bag_becomes_a_gap(tmp_path: Path) -> None:
    """Its reader would otherwise wait for ever: no state from before the bag is replayed, so nobody makes it again."""
    made = make(tmp_path, Scheme.PASSIVE_REPLICATION, recovery=Recovery(guarantee=Guarantee.GAP))
    replica = made.replica
    for epoch in range(6):
        replica.publish(a_bag(epoch, None, COUNTS), durable=True)
    for epoch in (3, 5):
        # The later one was not reported yet: it must not keep the replica from making the first.
        (tmp_path / "log" / "counts" / "0" / f"{epoch:010d}.bag").write_bytes(b"torn")
    replica.deploy = Deploy(slice=COUNTS, generation=2, rewind=3, rewind_to=3)
    replica.set_aside()
    made.do(actions.LeaveGap())
    remade = replica.context.log.fetch(COUNTS, 3)
    assert remade is not None
    assert remade.header.lost == (str(COUNTS),)
    assert replica.status().gaps == ((3, 3),)
