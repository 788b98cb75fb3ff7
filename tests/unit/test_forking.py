"""Which forks wait for the next branch, who ships for them, and what that gains."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.simulated.cluster import Cluster
from tests.simulated.scenario import Run, Scenario
from tests.unit.test_branching import COUNTS, LAYOUT, LINES, OPEN, OUT, TOP, fork, hosted, node, snapshot, view, working

from understudy.control.cluster.branch_view import View
from understudy.control.cluster.forking import ARMED, arm_forks, deploy_forks, lacks_slices, ship_early, stop_forks
from understudy.control.cluster.snapshot import Memory, Snapshot
from understudy.model.capabilities import OFF
from understudy.model.messages import ReplicaStatus, State
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme
from understudy.model.snapshot import NodeView, Secondary

NEXT = 4
"""The branch after `OPEN`, which is the third."""


def armed(slice_id: SliceId, **more: Any) -> ReplicaStatus:
    usual: dict[str, Any] = {"branch": NEXT, "asked": ARMED, "capabilities": ARMED}
    return working(slice_id, primary=False, **(usual | more))


def with_forks(*forks: ReplicaStatus, **more: Any) -> NodeView:
    return replace(hosted("a"), forks=forks, **more)


def arming(*nodes: NodeView, **more: Any) -> list[tuple[str, SliceId]]:
    given = view(snapshot(*nodes, **({"last_branch": 3} | more)))
    return [(one.node, one.deploy.slice) for one in arm_forks(given, given.snapshot.branch)]


# -- who is armed


def test_who_reads_from_slices_of_another_node_has_a_fork_that_waits() -> None:
    """counts[1] is on node b, and top reads from it; without node a nothing would be left to show."""
    given = view(snapshot(hosted("a"), hosted("b"), last_branch=3))
    (told,) = arm_forks(given, None)
    deploy = told.deploy
    assert (told.node, deploy.slice, deploy.branch, deploy.generation) == ("a", TOP, NEXT, 1)
    assert (deploy.capabilities, deploy.primary, deploy.ships, deploy.missing) == (ARMED, False, False, ())


def test_once_is_enough() -> None:
    assert arming(with_forks(armed(TOP)), hosted("b")) == []


def test_no_fork_waits_below_a_slice_with_an_active_secondary() -> None:
    active = tuple(
        replace(a, scheme=Scheme.ACTIVE_REPLICATION, secondary=Secondary("a", 2)) if a.slice == COUNTS[1] else a
        for a in snapshot().assignments
    )
    secondary = working(COUNTS[1], primary=False).model_copy(update={"generation": 2})
    host = replace(hosted("a"), replicas=(*hosted("a").replicas, secondary))
    assert arming(host, hosted("b"), assignments=active) == []


def test_a_fork_waits_beside_a_secondary_that_would_take_over() -> None:
    """Without node a, counts[1] on node b is all that is left of its operator, and top goes on at its secondary."""
    spread = {LINES[1]: "b", TOP: "a", OUT: "b"}
    assigned = tuple(
        replace(a, node=spread.get(a.slice, a.node), scheme=Scheme.ACTIVE_STANDBY, secondary=Secondary("b", 2))
        if a.slice == TOP
        else replace(a, node=spread.get(a.slice, a.node))
        for a in snapshot().assignments
    )
    first = node("a", *(working(one.slice) for one in assigned if one.node == "a"))
    secondary = working(TOP, primary=False).model_copy(update={"generation": 2})
    second = node("b", *(working(one.slice) for one in assigned if one.node == "b"), secondary)
    first, second = (replace(first, forks=(armed(COUNTS[0]),)), replace(second, forks=(armed(COUNTS[1]),)))
    assert arming(first, second, assignments=assigned) == [("a", TOP), ("b", TOP)]
    kept = view(snapshot(first, replace(second, forks=(armed(TOP),)), assignments=assigned, last_branch=3))
    assert stopped(kept) == []


@pytest.mark.parametrize(
    "more",
    [{"tentative_s": None}, {"first_epoch": 20}, {"branch": OPEN}, {"tentative_sinks": frozenset()}],
    ids=[
        "without tentative output",
        "before all slices have worked",
        "while a branch is open",
        "where nobody takes it",
    ],
)
def test_nothing_is_armed(more: dict[str, Any]) -> None:
    assert arming(hosted("a"), hosted("b"), **more) == []


@pytest.mark.parametrize(
    "busy",
    [
        replace(hosted("a"), full_s=1.0),
        replace(hosted("a"), ready=False),
        replace(hosted("a"), draining=True),
        replace(hosted("a"), replicas=(*hosted("a").replicas, working(COUNTS[1], primary=False, capabilities=OFF))),
        with_forks(armed(COUNTS[0], capabilities=OFF)),
        with_forks(fork(TOP)),
    ],
    ids=["full", "not ready", "draining", "a replica starts", "a fork starts", "a branch before lingers"],
)
def test_a_node_that_has_something_else_to_do_starts_no_fork(busy: NodeView) -> None:
    assert arming(busy, hosted("b")) == []


def test_a_fork_that_failed_while_it_waited_is_left_to_the_branch() -> None:
    failed = armed(TOP, state=State.FAILED, capabilities=OFF)
    assert arming(with_forks(failed), hosted("b")) == []


# -- when a branch opens, and afterwards


def test_a_fork_that_waits_is_told_to_work() -> None:
    opened = replace(OPEN, number=NEXT)
    told = list(deploy_forks(opened, {"a": with_forks(armed(TOP))}, LAYOUT, {"out": 20}))
    assert {one.deploy.slice for one in told} == {TOP, OUT}
    assert all(one.deploy.capabilities.processes for one in told)


def test_a_fork_that_waits_is_told_to_work_when_nothing_is_missing_any_more() -> None:
    """It was forgotten while something was missing, and knows of nothing that is missing, as the branch does."""
    opened = replace(OPEN, number=NEXT, missing=())
    told = list(deploy_forks(opened, {"a": with_forks(armed(TOP))}, LAYOUT, {"out": 20}))
    assert TOP in {one.deploy.slice for one in told}


def stopped(given: View, **more: Any) -> list[tuple[SliceId, bool]]:
    return [(one.slice, one.drops) for one in stop_forks(given, more.get("current"))]


def test_a_fork_that_waits_is_kept() -> None:
    assert stopped(view(snapshot(with_forks(armed(TOP)), hosted("b"), last_branch=3))) == []


def test_a_fork_whose_primary_went_elsewhere_is_stopped_and_no_bags_are_dropped() -> None:
    """A node that is late must not remove the bags of a branch that was opened meanwhile."""
    elsewhere = tuple(replace(a, node="b") if a.slice == TOP else a for a in snapshot().assignments)
    given = view(snapshot(with_forks(armed(TOP)), hosted("b"), assignments=elsewhere, last_branch=3))
    assert stopped(given) == [(TOP, False)]


def test_a_fork_of_another_slice_goes_on_waiting_while_a_branch_is_open() -> None:
    others = replace(OPEN, number=NEXT, forks=())
    given = view(snapshot(with_forks(armed(TOP)), hosted("b"), branch=others, last_branch=NEXT))
    assert stopped(given, current=others) == []


def test_forks_that_worked_do_not_wait_for_the_next_branch() -> None:
    worked = fork(TOP)
    assert stopped(view(snapshot(with_forks(worked), hosted("b"), last_branch=3))) == [(TOP, True)]


# -- shipping


def absent(since: float, primary: ReplicaStatus, **more: Any) -> Snapshot:
    host = replace(hosted("a"), replicas=tuple(primary if r.slice == TOP else r for r in hosted("a").replicas))
    return snapshot(host, memory=Memory(absent={COUNTS[1]: since}), **more)


def shipping(given: Snapshot) -> list[tuple[str, SliceId, int]]:
    return [(one.node, one.slice, one.generation) for one in ship_early(view(given), given.memory.absent)]


def test_a_primary_that_will_be_forked_ships_what_it_has() -> None:
    assert shipping(absent(29.5, working(TOP, shipped_to=17))) == [("a", TOP, 1)]


@pytest.mark.parametrize(
    "given",
    [
        absent(29.5, working(TOP, shipped_to=20)),
        absent(29.5, working(TOP, shipped_to=17, ship_every=0)),
        absent(29.5, working(TOP, shipped_to=17), branch=OPEN),
        absent(29.5, working(TOP, shipped_to=17), tentative_s=10.0),
        absent(29.5, working(TOP, shipped_to=17), tentative_s=None),
        absent(29.5, working(TOP, shipped_to=17), tentative_sinks=frozenset()),
    ],
    ids=["has shipped", "never ships", "branch is open", "not soon", "no tentative output", "nobody takes it"],
)
def test_nobody_else_ships(given: Snapshot) -> None:
    assert shipping(given) == []


# -- who goes first


@pytest.mark.parametrize(("since", "first"), [(29.5, True), (1.0, True), (-1.0, False)])
def test_slices_that_are_away_have_the_cpu_before_new_secondaries(since: float, first: bool) -> None:
    given = snapshot(hosted("a"), memory=Memory(absent={COUNTS[1]: since}))
    assert lacks_slices(given) is first


# -- in the simulated cluster

LOST = """
topology join
nodes 4
scheme passive_replication
epochs 80
tentative 0.5
pace 2.0
at epoch 40 kill @met[0]
"""


def played(text: str) -> Cluster:
    return Run(Scenario.parse(text)).play()


def test_the_first_tentative_epoch_does_not_wait_for_a_query_to_start() -> None:
    """A query takes two seconds to start there, so whatever had to be started would come with the recovery."""
    events = list(played(LOST).store.events())
    first = {kind: next(one for one in events if one.kind == kind) for kind in ("branch", "tentative")}
    back = next(one for one in events if one.kind == "recovered" and one.fields["slice"] == "met[0]")
    assert "without met[0]" in first["tentative"].text
    assert first["tentative"].at - first["branch"].at < 0.5
    assert back.at - first["tentative"].at > 1.0


def test_forks_wait_again_after_a_branch() -> None:
    """The second failure finds them as the first did."""
    cluster = played(LOST.replace("epochs 80", "epochs 160") + "at epoch 110 kill @met[1]\n")
    events = [one for one in cluster.store.events() if one.kind in ("branch", "tentative")]
    second = [one for one in events if one.fields["branch"] == 2]
    assert [one.kind for one in second[:2]] == ["branch", "tentative"]
    assert second[1].at - second[0].at < 0.5
