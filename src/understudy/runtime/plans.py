"""Plans for working secondaries: computed beside the manager's loop, handed to the next decision as a proposal.

The first one is asked for when data flows, the next ones every `plan.every_s` with the rates measured since. What
becomes of a proposal is decided in `control/cluster/planned.py`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from understudy.errors import UnderstudyError
from understudy.model.config import PlanSection
from understudy.model.layout import Kind, Layout
from understudy.model.messages import ReplicaStatus
from understudy.model.names import SliceId
from understudy.model.replication import Proposal, ReplicaPlan, ReplicationState
from understudy.planning.replication.files import to_data
from understudy.planning.replication.from_layout import problem_of
from understudy.planning.replication.mc_trees import smallest_tree
from understudy.planning.replication.metrics import Metrics
from understudy.planning.replication.plan import PlanRequest, ReplicationPlan
from understudy.planning.replication.problem import ReplicationProblem
from understudy.planning.replication.registry import planner
from understudy.planning.status import Status
from understudy.runtime.clock import RunClock
from understudy.runtime.memory import RunMemory
from understudy.runtime.rates import Rates

logger = logging.getLogger(__name__)

Job = Callable[[], None]
Beside = Callable[[Job], None]
"""Runs a job without keeping its caller waiting."""


def in_thread(job: Job) -> None:
    """The usual way. Numpy and the solver release the interpreter; the rest takes turns with the loop."""
    threading.Thread(target=job, name="planner", daemon=True).start()


@dataclass(frozen=True)
class Order:
    """All that a planner needs, as it was when it was asked."""

    layout: Layout
    joins: frozenset[str]
    rates: Mapping[SliceId, float]
    budget: int
    basis: ReplicaPlan | None
    limits: PlanSection
    measured_s: float
    named: tuple[SliceId, ...] | None = None
    """Slices that a person named: only their fidelity is computed."""

    @property
    def problem(self) -> ReplicationProblem:
        return problem_of(self.layout, self.joins, self.rates)


class Plans:
    """Owned by the manager's thread; only `_work` runs elsewhere, and hands its result over in a queue."""

    def __init__(self, memory: RunMemory, clock: RunClock, beside: Beside = in_thread) -> None:
        self._memory, self._clock, self._beside = memory, clock, beside
        self._rates = Rates(clock.now())
        # A manager that was restarted has a plan, and has measured nothing yet.
        self._looked_at: float | None = clock.now() if memory.decisions.plan is not None else None
        self._busy = False
        self._found: SimpleQueue[Proposal | None] = SimpleQueue()

    @property
    def budget(self) -> int | None:
        """Slices that may have working secondaries; None if the run has no plan and gets none."""
        memory = self._memory
        if memory.decisions.plan is not None:
            return memory.decisions.plan.budget
        if memory.run.plan is not None:
            return len(memory.run.plan)
        configured = memory.run.config.plan.budget
        return memory.topology.replicas if configured is None else configured

    def hear(self, replica: ReplicaStatus) -> None:
        self._rates.hear(replica)

    def turn(self) -> Proposal | None:
        """Once in every tick while data flows: asks for a plan if it is time, returns what was found since."""
        layout, budget = self._memory.layout, self.budget
        if layout is None or budget is None:
            return None
        if not self._busy and self._is_due():
            self._ask(layout, budget)
        try:
            found = self._found.get_nowait()
        except Empty:
            return None
        self._busy = False
        return found

    def state(self) -> ReplicationState | None:
        """For a planner elsewhere; None before data flows."""
        memory = self._memory
        if memory.layout is None:
            return None
        problem = self._order(memory.layout, 0, None).problem
        operators = {str(s) for s in memory.layout.of_kind(Kind.OPERATOR)}
        return ReplicationState(
            app=memory.topology.name,
            problem=to_data(problem),
            schemes={str(s): a.scheme for s, a in memory.assignments.items() if str(s) in operators},
            scheme=memory.run.config.plan.scheme,
            plan=memory.decisions.plan,
        )

    def proposed(self, slices: tuple[SliceId, ...], budget: int, layout: Layout) -> Proposal:
        """A plan that was made elsewhere, beside the one in force."""
        return propose(self._order(layout, budget, slices))

    def predicted(self, missing: Collection[SliceId]) -> tuple[float, float] | None:
        """Output fidelity and internal completeness without these slices, by the rates that are known."""
        layout = self._memory.layout
        if layout is None:
            return None
        metrics = Metrics(self._order(layout, 0, None).problem)
        gone = {str(one) for one in missing}
        alive = metrics.alive(number for name, number in metrics.problem.task_numbers.items() if name not in gone)
        return round(metrics.output_fidelity(alive), 6), round(metrics.internal_completeness(alive), 6)

    # -- asking

    def _is_due(self) -> bool:
        plan, now = self._memory.decisions.plan, self._clock.now()
        if plan is not None and plan.fixed:
            return False
        return self._looked_at is None or now - self._looked_at >= self._memory.run.config.plan.every_s

    def _ask(self, layout: Layout, budget: int) -> None:
        first = self._memory.decisions.plan is None
        named = self._memory.run.plan if first else None
        chosen = None if named is None else named_in(layout, [SliceId.parse(name) for name in named])
        order = self._order(layout, budget, chosen)
        self._looked_at, self._busy = self._clock.now(), True
        self._rates.restart(self._clock.now())
        self._beside(lambda: self._found.put(_work(order)))

    def _order(self, layout: Layout, budget: int, named: tuple[SliceId, ...] | None) -> Order:
        """With measured rates once there is a plan; before, nothing was measured for long enough."""
        plan, now = self._memory.decisions.plan, self._clock.now()
        joins = frozenset(one.name for one in self._memory.topology.operators if one.input == "correlated")
        rates = self._rates.rates(now) if plan is not None else {}
        known = any(rates.values())
        measured_s = self._rates.seconds(now) if known else 0.0
        return Order(
            layout, joins, rates if known else {}, budget, plan, self._memory.run.config.plan, measured_s, named
        )


def named_in(layout: Layout, slices: list[SliceId] | tuple[SliceId, ...]) -> tuple[SliceId, ...]:
    """The slices as they run: an operator that shares a query with others is called by the last of them."""
    home = {part: vertex.name for vertex in layout.vertices for part in (vertex.name, *vertex.parts)}
    found = dict.fromkeys(SliceId(home[s.operator], s.index) for s in slices if s.operator in home)
    return tuple(sorted(s for s in found if s in layout.slices))


def _work(order: Order) -> Proposal | None:
    """In the planner's thread. A plan that cannot be made leaves the one in force as it is."""
    try:
        return propose(order)
    except Exception:
        logger.exception("no plan could be computed; the next attempt follows in its time")
        return None


def propose(order: Order) -> Proposal:
    """The best plan there is time for, beside the one in force by the same rates."""
    problem = order.problem
    metrics = Metrics(problem)
    before = _fidelity(metrics, order.basis.slices if order.basis else ())
    note = f"by the rates of the last {order.measured_s:.0f} s" if order.measured_s else ""
    if order.named is not None:
        plan = ReplicaPlan(
            budget=order.budget,
            slices=order.named,
            fidelity=_fidelity(metrics, order.named),
            scheme=order.limits.scheme,
            algorithm="named",
            status=Status.FEASIBLE,
            fixed=True,
        )
        return Proposal(plan=plan, basis=order.basis, before=before, note=note)
    found, fallback = planned(problem, order.budget, order.limits.time_limit_s)
    notes = (fallback, note, _too_small(problem, found))
    plan = ReplicaPlan(
        budget=order.budget,
        slices=tuple(sorted(SliceId.parse(name) for name in found.replicas)),
        fidelity=found.output_fidelity,
        scheme=order.limits.scheme,
        algorithm=found.algorithm,
        status=found.status,
    )
    return Proposal(plan=plan, basis=order.basis, before=before, note="; ".join(one for one in notes if one))


def planned(problem: ReplicationProblem, budget: int, time_limit_s: float) -> tuple[ReplicationPlan, str]:
    """The exact plan, or that of structure-aware and the reason why."""
    request = PlanRequest(problem, budget, time_limit_s=time_limit_s)
    try:
        exact = planner("exact")(request)
    except (UnderstudyError, ImportError) as error:
        return planner("structure-aware")(request), f"structure-aware planned, because exact cannot: {error}"
    if exact.status is not Status.TIMEOUT:
        return exact, ""
    return planner("structure-aware")(request), f"structure-aware planned: exact found none within {time_limit_s:g} s"


def _too_small(problem: ReplicationProblem, found: ReplicationPlan) -> str:
    """Why a plan keeps no output alive, if it does not."""
    if found.output_fidelity or not found.budget:
        return ""
    tree, _ = smallest_tree(problem)
    return f"no output survives with {found.budget} replicas, {len(tree)} are enough for some"


def _fidelity(metrics: Metrics, slices: tuple[SliceId, ...]) -> float:
    numbers = metrics.problem.task_numbers
    alive = metrics.alive([numbers[str(s)] for s in slices if str(s) in numbers])
    return round(metrics.output_fidelity(alive), 6)
