"""What a replica does with a shipped checkpoint before any batch of its own, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.builders import COUNTS, a_bag, rows_of, word_count, word_count_layout
from tests.checkpoints import FakeQuery

from understudy.checkpoints.file_store import Shipped
from understudy.log.disk import Disk
from understudy.log.file_log import FileLog
from understudy.model.capabilities import ALL, ROWS
from understudy.model.messages import Deploy
from understudy.model.names import SliceId
from understudy.model.recovery import Guarantee, Recovery, Scheme
from understudy.stream.query import QueryReplica


class StillQuery:
    """A gated query that does what it is told at once, and notes it."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.cpu_s, self.arrived = directory, 0.0, True
        self.announced: list[int] = []
        self.moved: list[int] = []
        self.state_loaded = False

    def start(self, *_: object) -> None:
        pass

    def announce(self, epoch: int, lines: Sequence[str]) -> None:
        self.announced.append(epoch)

    def await_committed(self, epoch: int, millis: int) -> bool:
        return True

    def jump(self, marker: Any, *, keep_state: bool) -> bool:
        self.moved.append(marker.epoch)
        return True

    def favour(self, primary: bool) -> None:
        pass

    def stop(self) -> None:
        pass


class Loading(QueryReplica):
    """A replica of `counts[0]` whose queries are still ones."""

    def __init__(self, tmp_path: Path, scheme: Scheme, **vertex: Any) -> None:
        layout = word_count_layout()
        changed = tuple(replace(v, **vertex) if v.name == "counts" else v for v in layout.vertices)
        site: Any = SimpleNamespace(
            layout=replace(layout, vertices=changed),
            topology=word_count(),
            schemas={"words": None, "counts": None},
            checkpoints=tmp_path / "checkpoints",
            local=tmp_path / "local",
            disk=Disk(),
            log=FileLog(tmp_path / "log", Disk()),
        )
        super().__init__(
            site, Deploy(slice=COUNTS, generation=2, primary=False, capabilities=ROWS[scheme], ship_every=0)
        )
        self.queries: list[StillQuery] = []

    def _new_query(self, batch: object = None) -> Any:
        self.queries.append(StillQuery(self.site.local / str(len(self.queries))))
        return self.queries[-1]


def shipped_to(replica: Loading, tmp_path: Path, epoch: int) -> None:
    """The primary has shipped an epoch, whose input is still there."""
    primary = FakeQuery(tmp_path / f"primary-{epoch}")
    primary.run(epoch + 1)
    replica.store.ship(primary.committed(), epoch, 1, Shipped())
    for upstream in (SliceId("words", 0), SliceId("words", 1)):
        splits = replica.site.layout.splits("words")
        replica.site.log.publish(a_bag(epoch, None, upstream, *splits), durable=False)


def test_a_standby_loads_its_state_by_running_the_last_batch_again(tmp_path: Path) -> None:
    standby = Loading(tmp_path, Scheme.PASSIVE_STANDBY_HOT)
    shipped_to(standby, tmp_path, 3)
    standby._start_query(load=True)
    assert standby.queries[0].announced == [3]
    assert not (standby.queries[0].directory / "commits" / "3").exists()


def test_but_not_where_it_would_come_to_another_state(tmp_path: Path) -> None:
    standby = Loading(tmp_path, Scheme.PASSIVE_STANDBY_COLD, deterministic=False)
    shipped_to(standby, tmp_path, 3)
    standby._start_query(load=True)
    shipped_to(standby, tmp_path, 4)
    standby._follow()
    (query,) = standby.queries
    assert (query.announced, query.moved) == ([], [4]), "it waits on what was shipped, and follows"
    assert (query.directory / "commits" / "3").exists()


@pytest.mark.parametrize("guarantee", Guarantee)
def test_an_active_secondary_that_is_promoted_fences_its_predecessor(guarantee: Guarantee, tmp_path: Path) -> None:
    secondary = Loading(tmp_path, Scheme.ACTIVE_REPLICATION, recovery=Recovery(guarantee=guarantee))
    secondary.update(capabilities=ALL)
    secondary._act(Deploy(slice=COUNTS, generation=2))
    assert secondary.site.log.fenced(COUNTS) == (0 if guarantee is Guarantee.PRECISE else 2)


@pytest.mark.parametrize(("deterministic", "diverged"), [(True, None), (False, 3)])
def test_the_replay_of_a_state_of_chance_counts_as_another_result_even_if_the_bag_does_not_show_it(
    deterministic: bool, diverged: int | None, tmp_path: Path
) -> None:
    replica = Loading(tmp_path, Scheme.PASSIVE_REPLICATION, deterministic=deterministic)
    for _ in range(2):
        replica.publish(a_bag(3, None, COUNTS), durable=True)
    assert replica.status().diverged == diverged


def test_where_nothing_is_replayed_a_damaged_bag_becomes_a_gap(tmp_path: Path) -> None:
    """Its reader would otherwise wait for ever: no state from before the bag is replayed, so nobody makes it again."""
    replica = Loading(tmp_path, Scheme.PASSIVE_REPLICATION, recovery=Recovery(guarantee=Guarantee.GAP))
    schemas: Any = replica.site.schemas
    schemas["counts"] = rows_of().schema
    for epoch in range(6):
        replica.publish(a_bag(epoch, None, COUNTS), durable=True)
    for epoch in (3, 5):
        # The later one was not reported yet: it must not keep the replica from making the first.
        (tmp_path / "log" / "counts" / "0" / f"{epoch:010d}.bag").write_bytes(b"torn")
    replica.deploy = Deploy(slice=COUNTS, generation=2, rewind=3, rewind_to=3)
    replica.set_aside()
    replica._leave_gap()
    remade = replica.site.log.fetch(COUNTS, 3)
    assert remade is not None
    assert remade.header.lost == (str(COUNTS),)
    assert replica.status().gaps == ((3, 3),)
