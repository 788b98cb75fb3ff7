"""The plan's part of a decision: which slices have working secondaries, and when another plan replaces it.

A plan is computed outside (`runtime/plans.py`) and comes with the snapshot. It is adopted if there is none yet, or if
it gains more fidelity than a threshold and the last change is long enough ago. Then it is followed, slice by slice:
planned slices get the scheme of the plan; the others keep what their objective or their recovery asks for, below two
replicas that work. A working secondary that is no longer planned goes only after all those that are planned work: so a
new plan never leaves the run with less than the old one or the new one gives.

A slice of a source may be planned, too. It has no scheme and gets no secondary; it is only placed first after a loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from understudy.control.cluster.instructions import AdoptPlan
from understudy.control.cluster.requests import switched
from understudy.control.cluster.secondaries import allowed, healthy_secondary, initial_scheme
from understudy.control.cluster.snapshot import Memory, Snapshot
from understudy.control.cluster.suggestions import Origin, Suggestion
from understudy.errors import InvalidInput
from understudy.model.capabilities import ROWS, rank
from understudy.model.layout import Kind, Layout, Vertex
from understudy.model.messages import ReplicaStatus
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme
from understudy.model.replication import Proposal, ReplicaPlan
from understudy.model.snapshot import Assignment, NodeView

STRONGEST_UNPLANNED = Scheme.PASSIVE_STANDBY_HOT


# -- which plan


def adopt(snapshot: Snapshot, layout: Layout) -> Iterator[AdoptPlan]:
    """The proposed plan, if it is to replace the one in force."""
    proposal, current = snapshot.proposal, snapshot.memory.plan
    if proposal is None or proposal.basis != current:
        # Nothing new, or somebody applied another plan while this one was computed.
        return
    if current is not None and not _is_worth_it(proposal, current, snapshot, layout):
        return
    dated = proposal.plan.model_copy(update={"age_s": snapshot.age_s})
    proposal = proposal.model_copy(update={"plan": dated})
    yield AdoptPlan(proposal, sentence(proposal))


def remembered(memory: Memory, adopted: AdoptPlan) -> Memory:
    """With the plan; slices that people switched before follow it again."""
    return replace(memory, plan=adopted.proposal.plan, held=frozenset())


def _is_worth_it(proposal: Proposal, current: ReplicaPlan, snapshot: Snapshot, layout: Layout) -> bool:
    limits, plan = snapshot.config.plan, proposal.plan
    gains = plan.fidelity - proposal.before > limits.threshold
    rested = snapshot.age_s - current.age_s >= limits.cool_down_s
    return gains and rested and not current.fixed and _all_are_back(snapshot, layout)


def _all_are_back(snapshot: Snapshot, layout: Layout) -> bool:
    """While a slice is away, the rates are not those of the stream."""
    nodes, assigned = snapshot.by_name, snapshot.assigned
    primaries = (_primary(assigned[s], nodes) for s in layout.slices if s in assigned)
    return all(primary is not None and primary.is_back for primary in primaries)


def sentence(proposal: Proposal) -> str:
    """What a new plan changes, with the fidelity before and after."""
    plan, added, removed = proposal.plan, *changes(proposal)
    what = f"plan for {plan.budget} replicas ({plan.algorithm}, {plan.status}): "
    named = [f"{_listed(added)} shall have working secondaries" if added else ""]
    named.append(f"{_listed(removed)} no longer" if removed else "")
    said = ", ".join(one for one in named if one) or "no slice shall have a working secondary"
    fidelity = f"; predicted output fidelity {proposal.before:.3f} before, {plan.fidelity:.3f} after"
    return what + said + fidelity + (f"; {proposal.note}" if proposal.note else "")


def changes(proposal: Proposal) -> tuple[tuple[SliceId, ...], tuple[SliceId, ...]]:
    """The slices that a proposal adds to the plan in force, and those it removes."""
    before = proposal.basis.slices if proposal.basis else ()
    after = proposal.plan.slices
    return tuple(s for s in after if s not in before), tuple(s for s in before if s not in after)


def _listed(slices: Iterable[SliceId]) -> str:
    return ", ".join(str(one) for one in slices)


def check_plan(slices: Sequence[SliceId], budget: int, layout: Layout | None) -> Layout:
    """The layout; raises InvalidInput if the slices cannot be planned under the budget, or nothing runs yet."""
    known = [s for kind in (Kind.SOURCE, Kind.OPERATOR) for s in layout.of_kind(kind)] if layout else []
    unknown = [str(s) for s in slices if s not in known]
    if layout is None or unknown:
        raise InvalidInput(
            f"{', '.join(unknown) or 'the run'} cannot be planned",
            why="a plan names slices of sources and operators that run",
            fix=f"name some of {_listed(known)}" if known else "wait until data flows",
        )
    if len(set(slices)) > budget:
        raise InvalidInput(
            f"{len(slices)} slices are planned with a budget of {budget}",
            why="the budget is the number of slices that may have working secondaries",
            fix="give a larger budget, or name fewer slices",
        )
    return layout


# -- what it means for a slice


def is_planned(slice_id: SliceId, snapshot: Snapshot) -> bool:
    plan = snapshot.memory.plan
    return plan is not None and slice_id in plan.slices


def at_most(scheme: Scheme, snapshot: Snapshot) -> Scheme:
    """The scheme of a slice that is not planned: with a plan, its secondary does not work."""
    return min(scheme, STRONGEST_UNPLANNED, key=rank) if snapshot.planned else scheme


def first_scheme(vertex: Vertex, snapshot: Snapshot) -> Scheme:
    """What a slice begins with; the plan may be known later."""
    return at_most(initial_scheme(vertex, snapshot.scheme), snapshot)


def follow(assignments: Iterable[Assignment], snapshot: Snapshot, layout: Layout) -> Iterator[Suggestion]:
    """The next changes of schemes that the plan asks for."""
    plan = snapshot.memory.plan
    if plan is None:
        return
    known = {
        one.slice: one
        for one in assignments
        if layout[one.slice.operator].kind is Kind.OPERATOR and one.slice not in snapshot.memory.held
    }
    wanted = {s: allowed(plan.scheme, layout[s.operator], a.passive) for s, a in known.items() if s in plan.slices}
    for slice_id, scheme in wanted.items():
        if known[slice_id].scheme is not scheme:
            yield _suggest(known[slice_id], scheme, "the plan names it")
    if not all(_is_established(known.get(s), wanted, snapshot.by_name) for s in _operators(plan, snapshot, layout)):
        return
    for slice_id, assignment in known.items():
        scheme = first_scheme(layout[slice_id.operator], snapshot)
        if slice_id not in plan.slices and rank(assignment.scheme) > rank(STRONGEST_UNPLANNED):
            yield _suggest(assignment, scheme, "the plan does not name it")


def _operators(plan: ReplicaPlan, snapshot: Snapshot, layout: Layout) -> list[SliceId]:
    """The planned slices that can have a secondary, without those that people switched."""
    return [s for s in plan.slices if layout[s.operator].kind is Kind.OPERATOR and s not in snapshot.memory.held]


def _is_established(
    assignment: Assignment | None, wanted: Mapping[SliceId, Scheme], nodes: Mapping[str, NodeView]
) -> bool:
    """Whether the secondary of a planned slice does all that its scheme asks for."""
    if assignment is None or assignment.scheme is not wanted[assignment.slice]:
        return False
    secondary = healthy_secondary(assignment, nodes)
    return secondary is not None and ROWS[assignment.scheme] <= secondary.capabilities


def _suggest(assignment: Assignment, scheme: Scheme, why: str) -> Suggestion:
    reason = f"{assignment.slice} goes from {assignment.scheme} to {scheme}: {why}"
    return Suggestion(Origin.PLAN, switched(assignment, scheme, None), reason)


def _primary(assignment: Assignment, nodes: Mapping[str, NodeView]) -> ReplicaStatus | None:
    node = nodes.get(assignment.node)
    return node.hosting(assignment.slice, assignment.generation) if node else None
