"""Moves on the simulated cluster: nothing is late, nothing is less protected, whatever comes in between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.simulated import topologies
from tests.simulated.cluster import Cluster
from tests.unit.test_enactment import die_after, dies

from understudy.errors import InvalidInput
from understudy.model.capabilities import LADDER, rank
from understudy.model.events import Event
from understudy.model.names import SliceId
from understudy.model.recovery import Recovery, Scheme
from understudy.model.snapshot import Assignment

COUNTS, LINES, OUT = SliceId("counts", 0), SliceId("lines", 0), SliceId("out", 0)


def started(home: Path, scheme: Scheme | None = None, nodes: int = 3, **more: object) -> Cluster:
    cluster = Cluster(home, nodes=nodes, scheme=scheme, **more)  # type: ignore[arg-type]
    cluster.until(lambda: cluster.delivered > 2 and cluster.settled() and protected(cluster))
    return cluster


def protected(cluster: Cluster) -> bool:
    return all(one.protection == one.scheme for one in cluster.manager.state().slices)


def assigned(cluster: Cluster, slice_id: SliceId = COUNTS) -> Assignment:
    return cluster.manager.memory.assignments[slice_id]


def elsewhere(cluster: Cluster, slice_id: SliceId = COUNTS) -> str:
    """A node without a replica of the slice; its secondary's if there is no other."""
    current = assigned(cluster, slice_id)
    others = [name for name in sorted(cluster.nodes) if name != current.node]
    here = current.secondary.node if current.secondary else ""
    return next((name for name in others if name != here), here)


def kinds(cluster: Cluster, slice_id: SliceId = COUNTS) -> list[str]:
    return [e.kind for e in events(cluster, slice_id)]


def events(cluster: Cluster, slice_id: SliceId = COUNTS) -> list[Event]:
    return [e for e in cluster.store.events() if e.fields.get("slice") == str(slice_id)]


def arrived(cluster: Cluster, node: str, slice_id: SliceId = COUNTS) -> Callable[[], bool]:
    return lambda: assigned(cluster, slice_id).node == node and cluster.settled()


def finish(cluster: Cluster) -> None:
    """To the end of the run; its output must be that of a run without moves."""
    cluster.store.keep({"goal": cluster.delivered + 10})
    cluster.restart_manager()
    cluster.until(lambda: cluster.over)
    cluster.check_output()
    assert cluster.manager.report().verdict == "exact"


@pytest.mark.parametrize("scheme", LADDER)
@pytest.mark.parametrize("to_secondary", [False, True])
def test_a_slice_moves_and_is_never_less_protected(tmp_path: Path, scheme: Scheme, to_secondary: bool) -> None:
    cluster = started(tmp_path, scheme)
    before = assigned(cluster)
    if to_secondary and before.secondary is None:
        pytest.skip("this scheme has no secondary")
    target = before.secondary.node if to_secondary and before.secondary else elsewhere(cluster)
    cluster.move(COUNTS, target)
    while not arrived(cluster, target)():
        cluster.step()
        entry = next(one for one in cluster.manager.state().slices if one.slice == str(COUNTS))
        assert rank(Scheme(entry.protection)) >= rank(scheme), cluster.story()
    assert {"move_began", "moved"} <= set(kinds(cluster))
    assert not {"assigned", "promoted"} & set(kinds(cluster)[1:])
    moved = next(e for e in events(cluster) if e.kind == "moved")
    assert (moved.fields["primary"], moved.fields["node"]) == (before.node, target)
    report = cluster.manager.report()
    assert report.faults == ()
    assert [(one.slice, one.node, one.away_s) for one in report.moves] == [(str(COUNTS), target, 0.0)]
    finish(cluster)


def test_no_epoch_is_late_because_of_a_move(tmp_path: Path) -> None:
    """The legacy way stops the slice, and that shows."""
    late: dict[bool, float] = {}
    for legacy in (False, True):
        home = tmp_path / str(legacy)
        home.mkdir()
        cluster = started(home)
        for slice_id in (COUNTS, SliceId("counts", 1), SliceId("words", 0)):
            target = elsewhere(cluster, slice_id)
            cluster.move(slice_id, target, legacy=legacy)
            cluster.until(arrived(cluster, target, slice_id))
        report = cluster.manager.report()
        assert {one.legacy for one in report.moves} == {legacy}
        late[legacy] = max(one.away_s for one in report.moves)
        finish(cluster)
    assert late[False] == 0.0 < late[True]


@pytest.mark.parametrize("slice_id", [LINES, OUT])
def test_sources_and_sinks_move_too(tmp_path: Path, slice_id: SliceId) -> None:
    cluster = started(tmp_path)
    target = elsewhere(cluster, slice_id)
    cluster.move(slice_id, target)
    cluster.until(arrived(cluster, target, slice_id))
    assert "moved" in kinds(cluster, slice_id)
    finish(cluster)


def test_what_may_not_work_twice_is_stopped_shipped_and_started(tmp_path: Path) -> None:
    """It has one history, although it never makes the same twice: it goes on from its last epoch."""
    cluster = started(tmp_path, topology=topologies.chance())
    for _ in range(4):
        target = elsewhere(cluster)
        cluster.move(COUNTS, target)
        cluster.until(arrived(cluster, target))
        assert len([e for e in events(cluster) if e.kind == "moved"])
    assert "diverged" not in kinds(cluster)
    cluster.check_one_history()
    assert all(one.replayed == 0 for one in cluster.manager.report().moves)


@pytest.mark.parametrize("scheme", [Scheme.PASSIVE_REPLICATION, Scheme.PASSIVE_STANDBY_HOT, Scheme.ACTIVE_REPLICATION])
@pytest.mark.parametrize("how", ["working", "legacy", "to its secondary"])
def test_a_move_that_is_interrupted_anywhere_is_carried_out(tmp_path: Path, scheme: Scheme, how: str) -> None:
    for instructions in range(30):
        home = tmp_path / str(instructions)
        home.mkdir()
        cluster = started(home, scheme, topology=topologies.chain())
        here = assigned(cluster).secondary
        target = here.node if here and how == "to its secondary" else elsewhere(cluster)
        die_after(cluster, instructions)
        cluster.move(COUNTS, target, legacy=how == "legacy")
        died = dies(cluster, 6.0)
        cluster.until(arrived(cluster, target))
        delivered = cluster.delivered
        cluster.until(lambda c=cluster, d=delivered: c.delivered > d + 3)  # type: ignore[misc]
        assert not cluster.manager.memory.decisions.moves
        if not died:
            assert instructions > 2, "more was to do than that"
            finish(cluster)
            return
    raise AssertionError("there was no end of instructions")


@pytest.mark.parametrize("scheme", [Scheme.PASSIVE_REPLICATION, Scheme.PASSIVE_STANDBY_HOT, Scheme.ACTIVE_STANDBY])
@pytest.mark.parametrize("victim", ["target", "source", "secondary"])
def test_whoever_dies_during_a_move(tmp_path: Path, scheme: Scheme, victim: str) -> None:
    """After every tick of the move, until it is over."""
    for ticks in range(60):
        home = tmp_path / str(ticks)
        home.mkdir()
        cluster = started(home, scheme, nodes=4, topology=topologies.chain())
        before, target = assigned(cluster), elsewhere(cluster)
        cluster.move(COUNTS, target)
        cluster.steps(ticks * cluster.tick_s)
        over = "moved" in kinds(cluster)
        here = before.secondary.node if before.secondary else next(iter(set(cluster.nodes) - {before.node, target}))
        name = {"target": target, "source": before.node, "secondary": here}[victim]
        cluster.kill(name)
        cluster.until(cluster.settled)
        if victim != "target":
            cluster.until(lambda c=cluster, t=target: arrived(c, t)() or "move_given_up" in kinds(c))  # type: ignore[misc]
        finish(cluster)
        if over:
            return
    raise AssertionError("the move had no end")


def test_a_target_that_is_too_slow_is_given_up(tmp_path: Path) -> None:
    cluster = started(tmp_path, topology=topologies.chain())
    target = elsewhere(cluster)
    cluster.nodes[target].slow_down(10_000.0)
    cluster.move(COUNTS, target)
    cluster.until(lambda: "move_given_up" in kinds(cluster))
    assert assigned(cluster).node != target
    assert assigned(cluster).moving is None


def test_the_last_of_two_moves_counts(tmp_path: Path) -> None:
    cluster = started(tmp_path, Scheme.PASSIVE_STANDBY_HOT, nodes=4)
    home, here = assigned(cluster).node, assigned(cluster).secondary
    assert here is not None
    other = elsewhere(cluster)
    for first, last in ((other, here.node), (here.node, other)):
        cluster.move(COUNTS, first)
        cluster.steps(0.2)
        cluster.move(COUNTS, last)
        cluster.until(arrived(cluster, last))
        cluster.move(COUNTS, home)
        cluster.until(arrived(cluster, home))
        here = assigned(cluster).secondary
        assert here is not None
    finish(cluster)


def test_a_slice_is_switched_while_it_moves(tmp_path: Path) -> None:
    for ticks in range(0, 30, 3):
        home = tmp_path / str(ticks)
        home.mkdir()
        cluster = started(home, nodes=4, topology=topologies.chain())
        target = elsewhere(cluster)
        cluster.move(COUNTS, target)
        cluster.steps(ticks * cluster.tick_s)
        cluster.switch(COUNTS, LADDER[1 + ticks // 3 % 5])
        cluster.until(arrived(cluster, target))
        cluster.until(lambda c=cluster, t=ticks: assigned(c).scheme is LADDER[1 + t // 3 % 5])  # type: ignore[misc]
        finish(cluster)


def test_what_cannot_be_moved(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    with pytest.raises(InvalidInput, match="data does not flow yet"):
        cluster.manager.move(COUNTS, "node-1")
    cluster.until(lambda: cluster.delivered > 2 and cluster.settled())
    own, other = assigned(cluster).node, elsewhere(cluster)
    with pytest.raises(InvalidInput, match="there is no such slice"):
        cluster.manager.move(SliceId("counts", 7), other)
    with pytest.raises(InvalidInput, match="there is no such node"):
        cluster.manager.move(COUNTS, "node-9")
    with pytest.raises(InvalidInput, match="is there already"):
        cluster.manager.move(COUNTS, own)
    cluster.drain(other)
    with pytest.raises(InvalidInput, match="being drained") as refused:
        cluster.manager.move(COUNTS, other)
    assert refused.value.fix.startswith("name one of node-")
    cluster.freeze(own)
    cluster.start_node()
    with pytest.raises(InvalidInput, match="no such node"):
        cluster.manager.move(COUNTS, "node-4")


def test_a_move_that_would_lose_something_needs_consent(tmp_path: Path) -> None:
    cluster = started(tmp_path, recovery=Recovery(guarantee="amnesia"))
    with pytest.raises(InvalidInput, match="without loss"):
        cluster.manager.move(COUNTS, elsewhere(cluster))
    target = elsewhere(cluster)
    cluster.manager.move(COUNTS, target, legacy=True)
    cluster.until(arrived(cluster, target))


def test_a_request_survives_the_manager_that_accepted_it(tmp_path: Path) -> None:
    cluster = started(tmp_path)
    target = elsewhere(cluster)
    cluster.manager.move(COUNTS, target)
    cluster.restart_manager()
    cluster.until(arrived(cluster, target))
