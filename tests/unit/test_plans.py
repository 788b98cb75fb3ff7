"""Plans of a run: the problem, the rates, who computes them and when, and what becomes of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.builders import one, two, word_count_layout
from tests.simulated import topologies
from tests.simulated.cluster import Cluster
from tests.simulated.world import TokenSink, TokenSource
from tests.snapshots import COUNTS, LINES, OTHER, WORDS

from understudy.control.application.fusion import lay_out
from understudy.errors import InvalidInput
from understudy.model.capabilities import ROWS
from understudy.model.events import DomainLost, Event, PlanAdopted, Switched
from understudy.model.messages import ReplicaStatus
from understudy.model.names import SliceId
from understudy.model.recovery import ACTIVE, Scheme
from understudy.model.run import RunSpec
from understudy.model.topology import Topology
from understudy.planning.replication.from_layout import problem_of
from understudy.planning.replication.metrics import Metrics
from understudy.planning.replication.plan import PlanRequest, ReplicationPlan
from understudy.planning.replication.problem import Partitioning
from understudy.planning.replication.registry import planner
from understudy.planning.status import Status
from understudy.runtime import plans
from understudy.runtime.plans import in_thread, named_in, planned
from understudy.runtime.prepare import check
from understudy.runtime.rates import Rates

HEAVY, LIGHT = 100, 10


# -- the problem


def test_slices_of_sources_and_operators_are_tasks_and_sinks_are_those_they_write() -> None:
    problem = problem_of(word_count_layout(), rates={WORDS: 7.0})
    assert problem.tasks == ("lines[0]", "lines[1]", "words[0]", "words[1]", "counts[0]", "counts[1]")
    assert problem.sinks == ("counts",)
    assert problem.operators[1].rates == (7.0, 1.0)
    assert [s.partitioning for s in problem.streams] == [Partitioning.ONE_TO_ONE, Partitioning.FULL]


def test_a_join_is_one_and_a_stream_that_is_delivered_and_read_is_a_sink() -> None:
    app = topologies.join()
    app.operators[0] = app.operators[0].__class__(**{**vars(app.operators[0]), "input": "correlated"})
    layout = lay_out(app, {"met": True, "counts": True})
    problem = problem_of(layout, joins={"met"})
    assert [op.correlated for op in problem.operators] == [False, False, True, False]
    one_side = Metrics(problem)
    alive = one_side.alive([problem.task_numbers[name] for name in ("left[0]", "met[0]", "met[1]", "counts[0]")])
    assert one_side.output_fidelity(alive) == 0.0, "a join needs both sides"


def test_slices_that_share_a_key_feed_each_other_one_to_one() -> None:
    """A join reads speeds that are keyed as it is: without speeds[0], jams[0] has nothing."""
    app = Topology("keyed")
    fast, told = app.source("fast", TokenSource("fast")), app.source("told", TokenSource("told"))
    speeds = app.operator(fast, name="speeds", key="k", slices=2)(one)
    app.sink("out", app.operator(told, speeds, name="jams", key="k", slices=2, input="correlated")(two), TokenSink())
    problem = problem_of(lay_out(app, {"speeds": True, "jams": True}), joins={"jams"})
    kinds = {(s.source, s.target): s.partitioning for s in problem.streams}
    assert kinds[("speeds", "jams")] is Partitioning.ONE_TO_ONE
    assert kinds[("told", "jams")] is Partitioning.FULL
    metrics = Metrics(problem)
    for jam, kept in (("jams[0]", 0.5), ("jams[1]", 0.0)):
        names = ("fast[0]", "told[0]", "speeds[0]", jam)
        assert metrics.output_fidelity(metrics.alive(problem.task_numbers[name] for name in names)) == kept


def test_a_part_of_a_fused_operator_is_called_by_the_last() -> None:
    app = Topology("fused")
    rows = app.source("rows", TokenSource("rows"), slices=2)
    first = app.operator(rows, name="first", slices=2)(one)
    app.sink("out", app.operator(first, name="last", slices=2)(one), TokenSink())
    layout = lay_out(app, {"first": False, "last": False})
    named = [SliceId.parse(name) for name in ("first[1]", "last[1]", "rows[0]", "last[7]")]
    assert [str(s) for s in named_in(layout, named)] == ["last[1]", "rows[0]"]


# -- rates


def status(rows_out: int, generation: int = 1, *, primary: bool = True) -> ReplicaStatus:
    return ReplicaStatus(slice=COUNTS, generation=generation, rows_out=rows_out, primary=primary)


def test_rates_follow_the_primary_through_a_take_over() -> None:
    rates = Rates(0.0)
    for heard in (status(50), status(60, 2, primary=False), status(100), status(110, 2, primary=False), status(130, 2)):
        rates.hear(heard)
    assert rates.rates(10.0) == {COUNTS: 7.0}, "50 rows of the first, 20 of the one that took over"
    rates.restart(10.0)
    rates.hear(status(230, 2))
    assert (rates.rates(20.0), rates.seconds(20.0)) == ({COUNTS: 10.0}, 10.0)
    assert rates.rates(10.0) == {}


def test_what_a_replica_made_before_it_was_heard_of_does_not_count() -> None:
    """A restarted manager hears of primaries that have worked for hours."""
    rates = Rates(0.0)
    rates.hear(status(1_000_000))
    assert rates.rates(10.0) == {COUNTS: 0.0}


# -- who plans


def test_the_exact_planner_plans_if_it_can() -> None:
    found, note = planned(problem_of(word_count_layout()), 3, 5.0)
    assert (found.algorithm, found.status, note) == ("exact", Status.OPTIMAL, "")
    assert found.output_fidelity == pytest.approx(0.25)


@pytest.mark.parametrize("problem", ["it found nothing", "it is not installed"])
def test_structure_aware_plans_where_exact_cannot_and_says_so(monkeypatch: pytest.MonkeyPatch, problem: str) -> None:

    def exact(request: PlanRequest) -> ReplicationPlan:
        if problem == "it is not installed":
            raise ImportError("no solver")
        return planner("structure-aware")(request).__class__(
            "exact", request.budget, request.metric, Status.TIMEOUT, (), 0.0, 0.0, 1.0, 5.0
        )

    monkeypatch.setattr(plans, "planner", lambda name: exact if name == "exact" else planner(name))
    found, note = planned(problem_of(word_count_layout()), 3, 5.0)
    assert (found.algorithm, len(found.replicas)) == ("structure-aware", 3)
    assert note.startswith("structure-aware planned")


def test_planning_does_not_keep_its_caller_waiting() -> None:
    go, done = threading.Event(), threading.Event()

    def job() -> None:
        go.wait(10)
        done.set()

    in_thread(job)
    assert not done.is_set(), "in_thread is back while the job still waits"
    go.set()
    assert done.wait(10)


def test_a_budget_that_is_too_small_says_how_much_is_enough(tmp_path: Path) -> None:
    cluster = planned_run(tmp_path, budget=2)
    cluster.until(lambda: bool(told(cluster, PlanAdopted)))
    (adopted,) = told(cluster, PlanAdopted)
    assert (adopted.slices, adopted.fidelity_after) == ((), 0.0)
    assert "no output survives with 2 replicas, 3 are enough for some" in adopted.text


# -- in a run


def planned_run(home: Path, *, every_s: float = 60.0, plan: dict[str, Any] | None = None, **spec: Any) -> Cluster:
    config = {"plan": {"every_s": every_s, "cool_down_s": 1.0} | (plan or {})}
    return Cluster(home, nodes=4, domains=2, topology=topologies.word_count(), config=config, **spec)


def working(cluster: Cluster) -> set[str]:
    """Slices with a working secondary that does all it should."""
    return {str(a.slice) for a in cluster.store.assignments() if a.scheme in ACTIVE and a.secondary is not None}


def told(cluster: Cluster, record: type) -> list[Any]:
    return [event.what for event in cluster.store.events() if isinstance(event.what, record)]


def test_a_budget_gives_planned_operators_working_secondaries_in_another_domain(tmp_path: Path) -> None:
    cluster = planned_run(tmp_path, budget=4)
    cluster.until(lambda: bool(working(cluster)) and cluster.settled())
    (adopted,) = told(cluster, PlanAdopted)
    assert adopted.fidelity_after == pytest.approx(0.5)
    assert (adopted.budget, adopted.algorithm, adopted.fidelity_before) == (4, "exact", 0.0)
    operators = {str(s) for s in adopted.slices if s.operator != "lines"}
    assert working(cluster) == operators
    domains = {name: node.hello.domain for name, node in cluster.nodes.items()}
    assert all(domains[a.node] != domains[a.secondary.node] for a in cluster.store.assignments() if a.secondary)
    assert {told.slice for told in told(cluster, Switched)} == {SliceId.parse(name) for name in operators}


def test_a_topology_may_say_its_budget_and_the_command_line_overrides_it(tmp_path: Path) -> None:
    app = topologies.word_count()
    app.replicas = 3
    cluster = Cluster(tmp_path, topology=app)
    cluster.until(lambda: bool(told(cluster, PlanAdopted)))
    assert told(cluster, PlanAdopted)[0].budget == 3
    other = Cluster(tmp_path, topology=app, budget=0)
    other.until(lambda: bool(told(other, PlanAdopted)))
    assert told(other, PlanAdopted)[0].slices == ()
    with pytest.raises(InvalidInput, match="replicas=-1"):
        Topology("app", replicas=-1)


def test_without_a_budget_there_is_no_plan(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.until(cluster.settled)
    cluster.steps(2.0)
    assert told(cluster, PlanAdopted) == []


def test_a_plan_from_a_file_is_followed_and_not_adapted(tmp_path: Path) -> None:
    cluster = planned_run(tmp_path, every_s=1.0, plan={"threshold": 0.0})
    cluster.store.keep({"run": cluster.manager.run.changed(plan=("words[1]", "counts[1]", "lines[1]")).model_dump()})
    cluster.restart_manager()
    cluster.until(lambda: working(cluster) == {"words[1]", "counts[1]"})
    cluster.world.count = lambda s, _: HEAVY if s.index == 0 else 1
    cluster.steps(10.0)
    (adopted,) = told(cluster, PlanAdopted)
    assert (adopted.algorithm, adopted.fidelity_after) == ("named", pytest.approx(0.25))


@pytest.mark.parametrize(
    ("plan", "budget", "message"),
    [(("sums[0]",), None, r"sums\[0\]"), (("words[0]", "words[1]"), 1, "--budget 1 with a plan")],
)
def test_a_plan_that_does_not_fit_the_topology_is_refused(plan: tuple[str, ...], budget: int, message: str) -> None:
    spec = RunSpec.of("r", "app.py", plan=plan, budget=budget)
    with pytest.raises(InvalidInput, match=message):
        check(spec, topologies.word_count(), [])


def test_planned_slices_have_a_scheme_that_works() -> None:
    spec = RunSpec.of("r", "app.py").changed(config={"plan": {"scheme": "deployed"}})
    with pytest.raises(InvalidInput, match=r"plan\.scheme = deployed"):
        check(spec, topologies.word_count(), [])


# -- plans that adapt


def skewed(heavy: int) -> Callable[[SliceId, int], int]:
    """Slices of this number emit ten times as much as the others."""
    return lambda slice_id, _: HEAVY if slice_id.index == heavy else LIGHT


def planned_indices(cluster: Cluster) -> set[int]:
    plan = cluster.manager.memory.decisions.plan
    return {s.index for s in plan.slices} if plan else set()


def test_the_plan_follows_the_rates_and_never_protects_less_meanwhile(tmp_path: Path) -> None:
    cluster = planned_run(tmp_path, every_s=5.0, budget=3, epochs=400)
    cluster.until(lambda: len(working(cluster)) == 2 and cluster.settled())
    for heavy in (1, 0, 1):
        cluster.world.count = skewed(heavy)
        before = cluster.manager.memory.decisions.plan
        fewest = 2
        for _ in range(400):
            cluster.step()
            fewest = min(fewest, _established(cluster))
            if planned_indices(cluster) == {heavy} and working(cluster) == {f"words[{heavy}]", f"counts[{heavy}]"}:
                break
        assert planned_indices(cluster) == {heavy}, cluster.story()
        assert working(cluster) == {f"words[{heavy}]", f"counts[{heavy}]"}, cluster.story()
        assert fewest == 2, "a working secondary went before its successor worked"
        if before is not None and {s.index for s in before.slices} != {heavy}:
            newest = told(cluster, PlanAdopted)[-1]
            assert newest.fidelity_after > newest.fidelity_before + 0.05
            assert {s.index for s in newest.added} == {heavy}
    assert not told(cluster, DomainLost)


def _established(cluster: Cluster) -> int:
    """How many secondaries work, whichever plan named them."""
    return sum(
        ROWS[Scheme.ACTIVE_STANDBY] <= cluster.nodes[a.secondary.node].replicas[a.slice].live.capabilities
        for a in cluster.store.assignments()
        if a.secondary is not None and a.slice in cluster.nodes[a.secondary.node].replicas
    )


def test_rates_that_hardly_change_leave_the_plan_alone(tmp_path: Path) -> None:
    cluster = planned_run(tmp_path, every_s=2.0, budget=3, epochs=400)
    cluster.until(lambda: len(working(cluster)) == 2 and cluster.settled())
    other = 1 - next(iter(planned_indices(cluster)))
    cluster.world.count = lambda s, _: HEAVY + 5 * (s.index == other)
    cluster.steps(20.0)
    assert len(told(cluster, PlanAdopted)) == 1


def test_a_restarted_manager_keeps_the_plan_and_measures_before_it_plans_again(tmp_path: Path) -> None:
    cluster = planned_run(tmp_path, every_s=5.0, budget=3, epochs=400)
    cluster.world.count = skewed(1)
    cluster.until(lambda: planned_indices(cluster) == {1})
    plan, changes = cluster.manager.memory.decisions.plan, len(told(cluster, PlanAdopted))
    cluster.restart_manager()
    assert cluster.manager.memory.decisions.plan == plan
    cluster.steps(12.0)
    assert cluster.manager.memory.decisions.plan == plan
    assert len(told(cluster, PlanAdopted)) == changes


# -- what people ask for


def test_a_person_applies_a_plan_and_a_restart_remembers_it(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, epochs=400)
    cluster.until(cluster.settled)
    state = cluster.manager.view.replication()
    assert state is not None
    assert state.plan is None
    assert state.schemes["counts[0]"] == "passive_replication"
    applied = cluster.manager.apply_plan([LINES, WORDS, OTHER], 3, "greedy")
    assert applied.fidelity == pytest.approx(0.25)
    cluster.restart_manager()
    cluster.until(lambda: working(cluster) == {"words[0]", "counts[1]"})
    (adopted,) = told(cluster, PlanAdopted)
    assert (adopted.algorithm, adopted.budget) == ("greedy", 3)
    cluster.manager.apply_plan([], 0, "greedy")
    cluster.until(lambda: working(cluster) == set())


def test_one_cause_for_all_recoveries_of_a_domain(tmp_path: Path) -> None:
    cluster = planned_run(tmp_path, budget=6, epochs=60)
    cluster.until(lambda: len(working(cluster)) == 4 and cluster.settled())
    at, hosted = cluster.wall(), [a for a in cluster.store.assignments() if a.node in cluster.of_domain("domain-1")]
    for name in cluster.of_domain("domain-1"):
        cluster.kill(name)
    cluster.manager.note_fault("kill:domain-1@9s", "domain-1", at)
    cluster.until(lambda: cluster.over)
    cluster.check_output()
    events: list[Event] = cluster.store.events()
    (lost,) = [event for event in events if event.kind == DomainLost.kind]
    caused = {event.fields["slice"] for event in events if event.cause == lost.number}
    assert caused == {str(a.slice) for a in hosted}
    report = cluster.manager.report()
    (fault,) = report.faults
    assert fault.detected_after_s is not None
    assert {one.slice for one in fault.recoveries} == caused
    assert report.verdict == "exact"
    (plan,) = report.plans
    assert (plan.budget, plan.fidelity_after, len(plan.slices)) == (6, 1.0, 6)
