"""When tentative output begins, which slices are forked, and when it ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from understudy.control.cluster.branch_view import View
from understudy.control.cluster.branching import MOST_FAILURES, branch
from understudy.control.cluster.detector import Detector
from understudy.control.cluster.forking import deploy_forks, stop_forks
from understudy.control.cluster.snapshot import Memory, Snapshot
from understudy.model.branch import Branch, Fork
from understudy.model.capabilities import ALL, OFF
from understudy.model.layout import Edge, Kind, Layout, Split, Vertex
from understudy.model.messages import Failure, ReplicaStatus, State, Steps
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme
from understudy.model.snapshot import Assignment, NodeView, Phase, Secondary

LAYOUT = Layout(
    (
        Vertex("lines", Kind.SOURCE, 2),
        Vertex("counts", Kind.OPERATOR, 2, (Edge("lines", Split(("word",), 2)),), ("counts",), stateful=True),
        Vertex("top", Kind.OPERATOR, 1, (Edge("counts", Split()),), ("top",), stateful=True),
        Vertex("out", Kind.SINK, 1, (Edge("top", Split()),)),
    )
)
LINES, COUNTS = (SliceId("lines", 0), SliceId("lines", 1)), (SliceId("counts", 0), SliceId("counts", 1))
TOP, OUT = SliceId("top", 0), SliceId("out", 0)
HOSTS = {LINES[0]: "a", LINES[1]: "a", COUNTS[0]: "a", COUNTS[1]: "b", TOP: "a", OUT: "a"}


def working(slice_id: SliceId, **more: Any) -> ReplicaStatus:
    usual: dict[str, Any] = {"state": State.RUNNING, "capabilities": ALL, "steps": Steps(done=True), "epoch": 20}
    return ReplicaStatus(slice=slice_id, generation=1, **(usual | more))


def node(name: str, *replicas: ReplicaStatus, **more: Any) -> NodeView:
    return NodeView(name, connected=True, ready=True, silent_s=0.05, replicas=replicas, **more)


def snapshot(*nodes: NodeView, **more: Any) -> Snapshot:
    usual: dict[str, Any] = {
        "assignments": tuple(Assignment(s, host, 1, issued=1) for s, host in HOSTS.items()),
        "tentative_s": 1.0,
        "tentative_sinks": frozenset({"out"}),
        "delivered": {"out": 20},
        "age_s": 30.0,
    }
    return Snapshot(
        phase=Phase.RUNNING,
        layout=LAYOUT,
        nodes=nodes,
        wanted_nodes=2,
        replace=False,
        goal=None,
        waited_s=0.0,
        detector=Detector(),
        **(usual | more),
    )


def hosted(name: str) -> NodeView:
    return node(name, *(working(s) for s, host in HOSTS.items() if host == name))


def view(given: Snapshot) -> View:
    return View(given, LAYOUT, given.assigned)


def decided(given: Snapshot) -> Branch | str | None:
    """The branch after a decision; "same" if nothing changes."""
    changes, _ = branch(view(given))
    return changes[0].branch if changes else "same"


def without_b(since: float, **more: Any) -> Snapshot:
    """Node b is gone, and counts[1] was first seen to be absent at this age."""
    return snapshot(hosted("a"), memory=Memory(absent={COUNTS[1]: since}), **more)


def test_nothing_happens_while_everything_works() -> None:
    assert decided(snapshot(hosted("a"), hosted("b"))) == "same"


def test_the_absence_of_a_slice_is_remembered_from_its_first_moment() -> None:
    first = snapshot(hosted("a"))
    _, memory = branch(view(first))
    assert memory.absent == {COUNTS[1]: 30.0}
    later = replace(first, memory=memory, age_s=30.4)
    assert branch(view(later))[1].absent == {COUNTS[1]: 30.0}


def test_silence_counts_from_the_last_heartbeat() -> None:
    silent = replace(hosted("b"), connected=False, silent_s=0.3)
    given = snapshot(hosted("a"), silent)
    assert branch(view(given))[1].absent == {COUNTS[1]: pytest.approx(29.7)}


@pytest.mark.parametrize(("since", "opens"), [(29.2, False), (29.0, True), (20.0, True)])
def test_a_branch_opens_after_the_deadline(since: float, opens: bool) -> None:
    found = decided(without_b(since))
    assert isinstance(found, Branch) is opens


def test_everybody_downstream_is_forked_where_its_primary_is() -> None:
    found = decided(without_b(20.0))
    assert isinstance(found, Branch)
    assert found.missing == (COUNTS[1],)
    assert set(found.forks) == {Fork(TOP, "a"), Fork(OUT, "a")}


def test_the_fork_of_a_sink_goes_elsewhere_if_its_node_is_silent() -> None:
    """The node is not given up yet, so the sink is still assigned to it."""
    at_b = tuple(replace(a, node="b") if a.slice == OUT else a for a in snapshot().assignments)
    silent = replace(hosted("b"), silent_s=2.0)
    found = decided(snapshot(hosted("a"), silent, assignments=at_b))
    assert isinstance(found, Branch)
    assert set(found.forks) == {Fork(TOP, "a"), Fork(OUT, "a")}


def test_without_tentative_output_nothing_is_even_remembered() -> None:
    given = without_b(20.0, tentative_s=None)
    assert branch(view(given)) == ([], given.memory)


def test_no_branch_before_every_sink_has_delivered_something() -> None:
    assert decided(without_b(20.0, first_epoch=20)) == "same"
    assert isinstance(decided(without_b(20.0, first_epoch=19)), Branch)


def test_no_branch_where_all_nodes_are_silent_alike() -> None:
    """Their machine is full: nobody is missing, everybody is late."""
    late = [replace(hosted(name), silent_s=1.2) for name in ("a", "b")]
    assert decided(snapshot(*late)) == "same"


def test_a_sink_that_gets_nothing_any_more_has_no_fork() -> None:
    """The only operator before it is missing as well."""
    both = Memory(absent={COUNTS[1]: 20.0, TOP: 28.0})
    replicas = tuple(r for r in hosted("a").replicas if r.slice != TOP)
    host = replace(forked("a", fork(TOP), fork(OUT)), replicas=replicas)
    found = decided(snapshot(host, memory=both, branch=OPEN, last_branch=3))
    assert isinstance(found, Branch)
    assert found.forks == ()


def test_a_fork_that_begins_again_has_another_generation() -> None:
    """What its predecessor left may still be on its way out."""
    gone = replace(OPEN, forks=(Fork(OUT, "a"),))
    found = decided(without_b(20.0, branch=gone, last_branch=3))
    assert isinstance(found, Branch)
    assert found.by_slice[TOP] == Fork(TOP, "a", 2)


def test_no_branch_where_no_sink_would_get_anything() -> None:
    """Both slices of the only operator between source and sink are missing."""
    given = snapshot(
        node("a", *(working(s) for s, host in HOSTS.items() if host == "a" and s != COUNTS[0])),
        memory=Memory(absent={COUNTS[0]: 20.0, COUNTS[1]: 20.0}),
    )
    assert decided(given) == "same"


def test_no_branch_for_sinks_that_take_nothing_tentative() -> None:
    assert decided(without_b(20.0, tentative_sinks=frozenset())) == "same"


def test_no_branch_where_an_active_secondary_publishes() -> None:
    active = tuple(
        replace(a, scheme=Scheme.ACTIVE_REPLICATION, secondary=Secondary("a", 2)) if a.slice == COUNTS[1] else a
        for a in snapshot().assignments
    )
    secondary = working(COUNTS[1], primary=False).model_copy(update={"generation": 2})
    host = replace(hosted("a"), replicas=(*hosted("a").replicas, secondary))
    given = snapshot(host, memory=Memory(absent={COUNTS[1]: 20.0}), assignments=active)
    assert decided(given) == "same"


OPEN = Branch(3, 25.0, (COUNTS[1],), (COUNTS[1],), (Fork(OUT, "a"), Fork(TOP, "a")), issued=((OUT, 1), (TOP, 1)))


def forked(name: str, *forks: ReplicaStatus) -> NodeView:
    return replace(hosted(name), forks=forks)


def fork(slice_id: SliceId, **more: Any) -> ReplicaStatus:
    return working(slice_id, primary=False, branch=3, missing=(COUNTS[1],), **more)


def test_a_slice_that_is_back_and_behind_is_still_missing() -> None:
    back = node("b", working(COUNTS[1], behind=5))
    given = snapshot(forked("a", fork(TOP), fork(OUT, epoch=25)), back, branch=OPEN, last_branch=3)
    assert decided(given) == "same"


def test_a_slice_that_has_caught_up_joins() -> None:
    back = node("b", working(COUNTS[1], behind=1))
    given = snapshot(forked("a", fork(TOP), fork(OUT, epoch=25)), back, branch=OPEN, last_branch=3)
    found = decided(given)
    assert isinstance(found, Branch)
    assert (found.missing, found.named) == ((), (COUNTS[1],))
    assert found.forks == OPEN.forks, "their state lacks what was missing"


@pytest.mark.parametrize(("delivered", "ends"), [(24, False), (25, True), (26, True)])
def test_the_branch_ends_when_the_stable_sink_has_caught_up(delivered: int, ends: bool) -> None:
    nobody = replace(OPEN, missing=())
    given = snapshot(
        forked("a", fork(TOP), fork(OUT, epoch=25)), hosted("b"), branch=nobody, delivered={"out": delivered}
    )
    assert decided(given) == (None if ends else "same")


def test_a_later_failure_widens_the_branch() -> None:
    both = Memory(absent={COUNTS[1]: 20.0, LINES[1]: 28.0})
    replicas = tuple(r for r in hosted("a").replicas if r.slice != LINES[1])
    host = replace(forked("a", fork(TOP), fork(OUT)), replicas=replicas)
    found = decided(snapshot(host, memory=both, branch=OPEN, last_branch=3))
    assert isinstance(found, Branch)
    assert found.missing == (COUNTS[1], LINES[1])
    assert {f.slice for f in found.forks} == {TOP, OUT, COUNTS[0]}, "counts[0] reads lines[1]"


def test_a_fork_whose_node_is_lost_begins_anew_where_its_primary_is() -> None:
    elsewhere = replace(OPEN, forks=(Fork(OUT, "a"), Fork(TOP, "gone", 2)), issued=((OUT, 1), (TOP, 2)))
    found = decided(without_b(20.0, branch=elsewhere, last_branch=3))
    assert isinstance(found, Branch)
    assert found.by_slice[TOP] == Fork(TOP, "a", 3)


def failed(slice_id: SliceId) -> ReplicaStatus:
    return fork(slice_id, state=State.FAILED, failure=Failure(what="it broke", why="the test", fix="none"))


def test_a_fork_that_failed_is_tried_again() -> None:
    given = replace(without_b(20.0, branch=OPEN, last_branch=3), nodes=(forked("a", failed(TOP), fork(OUT)),))
    found = decided(given)
    assert isinstance(found, Branch)
    assert (found.by_slice[TOP].generation, found.failures(TOP)) == (2, 1)


def test_a_fork_that_fails_again_and_again_is_given_up_and_counts_as_missing() -> None:
    tired = replace(OPEN, failed=((TOP, MOST_FAILURES),))
    given = replace(without_b(20.0, branch=tired, last_branch=3), nodes=(forked("a", failed(TOP), fork(OUT)),))
    found = decided(given)
    assert isinstance(found, Branch)
    assert TOP not in found.by_slice
    after = decided(replace(given, branch=found))
    assert isinstance(after, Branch)
    assert TOP in after.missing, "nobody waits for its bags"


def test_forks_are_told_what_is_missing_until_they_know() -> None:
    nodes = {"a": forked("a", fork(TOP), fork(OUT).model_copy(update={"missing": ()}))}
    told = list(deploy_forks(OPEN, nodes, LAYOUT, {"out": 20}))
    assert [(one.node, one.deploy.slice) for one in told] == [("a", OUT)]
    deploy = told[0].deploy
    assert (deploy.branch, deploy.missing, deploy.resume_at, deploy.ships, deploy.primary) == (
        3,
        (COUNTS[1],),
        20,
        False,
        False,
    )


def test_forks_of_a_dropped_branch_are_stopped_with_its_bags() -> None:
    stopped = list(stop_forks(view(snapshot(forked("a", fork(TOP)), last_branch=3)), None))
    assert [(one.slice, one.branch, one.drops) for one in stopped] == [(TOP, 3, True)]


def test_a_fork_that_was_replaced_is_stopped_and_the_branch_goes_on() -> None:
    moved = replace(OPEN, forks=(Fork(OUT, "a"), Fork(TOP, "b", 2)))
    stopped = list(stop_forks(view(snapshot(forked("a", fork(TOP), fork(OUT)), last_branch=3)), moved))
    assert [(one.slice, one.drops) for one in stopped] == [(TOP, False)]


def test_a_replica_that_has_not_opened_its_gate_does_not_work_yet() -> None:
    coming = node("b", working(COUNTS[1], capabilities=OFF, steps=Steps()))
    given = snapshot(hosted("a"), coming, memory=Memory(absent={COUNTS[1]: 20.0}))
    assert isinstance(decided(given), Branch)


def test_a_branch_is_kept_as_json() -> None:
    kept = replace(OPEN, failed=((TOP, 2),), issued=((TOP, 7),))
    assert Branch.from_data(kept.to_data()) == kept
