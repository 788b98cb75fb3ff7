"""When replicas go elsewhere for the sake of an even load: one at a time, by the moves of `moving.py`.

A person asks for it once (`understudy rebalance`), or the run does it by itself (`cluster.rebalance`). By itself it
waits until a step has been worthwhile for a while, and a slice is moved only now and then; `balance.py` says which
steps are worthwhile. Nothing begins unless every slice works and is protected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from understudy.control.cluster.balance import Balance, Step
from understudy.control.cluster.calm import is_settled
from understudy.control.cluster.instructions import EndRebalance
from understudy.control.cluster.moving import begin
from understudy.control.cluster.sites import Placing
from understudy.control.cluster.snapshot import Memory, Rebalance, Snapshot
from understudy.control.cluster.suggestions import Origin, Ruling, Suggestion
from understudy.control.cluster.weights import Weights
from understudy.errors import InvalidInput
from understudy.model.config import Config
from understudy.model.layout import Layout
from understudy.model.names import SliceId
from understudy.model.snapshot import Assignment, Move, NodeView

MOST_STEPS = 100
"""Of one request."""
LOOK_EVERY_S = 1.0


def plan_steps(
    assignments: Iterable[Assignment],
    nodes: Mapping[str, NodeView],
    layout: Layout | None,
    loads: Mapping[SliceId, float],
    config: Config,
) -> list[Step]:
    """What a request would do from here; raises InvalidInput before data flows."""
    if layout is None:
        raise InvalidInput("the load cannot be balanced", why="data does not flow yet", fix="wait until it does")
    return _balance(assignments, nodes, layout, loads, config).steps(MOST_STEPS)


def rebalance(snapshot: Snapshot, layout: Layout) -> tuple[list[Suggestion], Memory]:
    """The next step, if one is to begin now, and what is remembered whether or not it is accepted."""
    memory, kept, age_s = snapshot.memory, snapshot.memory.rebalance, snapshot.age_s
    wanted = kept.left > 0 or snapshot.config.cluster.rebalance or snapshot.config.scaling.policy is not None
    if not wanted or (kept.looked_at is not None and 0 <= age_s - kept.looked_at < LOOK_EVERY_S):
        return [], memory
    if not is_settled(snapshot, layout):
        return [], _with(memory, replace(kept, looked_at=age_s, uneven_since=None))
    limits = snapshot.config.cluster
    balance = _balance(snapshot.assignments, snapshot.by_name, layout, snapshot.loads, snapshot.config)
    asked = kept.left > 0
    recent = [s for s, at in kept.moved_at.items() if not asked and age_s - at < limits.rebalance_again_s]
    step = balance.best(recent)
    since = None if step is None else age_s if kept.uneven_since is None else kept.uneven_since
    kept = replace(kept, looked_at=age_s, uneven_since=since, left=kept.left if step else 0)
    if step is None or since is None or (not asked and age_s - since < limits.rebalance_after_s):
        return [], _with(memory, kept)
    return [_suggest(step, snapshot, layout)], _with(memory, kept)


def ended(before: Memory, after: Memory) -> Iterator[EndRebalance]:
    """A request is over: nothing is worthwhile any more, or all it may do is done."""
    if before.rebalance.left and not after.rebalance.left:
        moved = before.rebalance.begun
        done = f"{moved} replica{'s' if moved != 1 else ''} moved" if moved else "nothing had to move"
        yield EndRebalance(moved, f"the load is balanced: {done}")


def accepted(memory: Memory, ruling: Ruling, age_s: float) -> Memory:
    """With the step that begins, if the arbiter accepted one."""
    begun = [s for s, one in ruling.accepted.items() if one.origin is Origin.REBALANCE]
    if not begun:
        return memory
    kept = memory.rebalance
    moved_at = MappingProxyType({**kept.moved_at, **dict.fromkeys(begun, age_s)})
    left, made = max(0, kept.left - len(begun)), kept.begun + len(begun)
    return _with(memory, replace(kept, moved_at=moved_at, uneven_since=None, left=left, begun=made))


def requested(memory: Memory, steps: int) -> Memory:
    """Somebody asked for it: so many steps may begin, whatever they are when their turn comes."""
    return _with(memory, replace(memory.rebalance, left=steps, begun=0, looked_at=None))


def _with(memory: Memory, kept: Rebalance) -> Memory:
    return replace(memory, rebalance=kept)


def _balance(
    assignments: Iterable[Assignment],
    nodes: Mapping[str, NodeView],
    layout: Layout,
    loads: Mapping[SliceId, float],
    config: Config,
) -> Balance:
    """By measured loads, whatever rule places secondaries."""
    placing = replace(Placing.named(config, layout), weights=Weights(layout, loads))
    return Balance(assignments, nodes, layout, placing, config.cluster.rebalance_gain)


def _suggest(step: Step, snapshot: Snapshot, layout: Layout) -> Suggestion:
    assignment = snapshot.assigned[step.slice]
    if step.primary:
        vertex = layout[step.slice.operator]
        changed = begin(assignment, Move(step.target), vertex, snapshot.age_s)
    else:
        changed = replace(assignment, moving=Move(step.target, since=snapshot.age_s, primary=False))
    return Suggestion(Origin.REBALANCE, changed, step.reason)
