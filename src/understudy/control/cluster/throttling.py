"""What a full node does without: secondaries on it are throttled one by one, the least important first.

A node is full when its primaries have been behind their input for some seconds. A throttled secondary stays deployed
and does nothing more: it takes no events and follows no checkpoints, and its primary ships less often. Its slice is
protected less meanwhile, which everybody can see. When no primary is behind any more, secondaries go on one by one, the
most important first. One that is throttled again soon after has to wait longer the next time.

What was decided is in the assignment, with the age of the run at which it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from understudy.control.cluster.reactions import importance
from understudy.control.cluster.suggestions import Origin, Suggestion
from understudy.model.capabilities import rank
from understudy.model.config import DEFAULTS, OverloadSection
from understudy.model.layout import Layout
from understudy.model.recovery import Scheme
from understudy.model.snapshot import Assignment, NodeView, Throttle


def throttle(
    assignments: Iterable[Assignment],
    nodes: Mapping[str, NodeView],
    layout: Layout,
    age_s: float,
    limits: OverloadSection = DEFAULTS.overload,
) -> Iterator[Suggestion]:
    """At most one change at a time."""
    known, fullest_s = list(assignments), max((node.full_s for node in nodes.values()), default=0.0)
    since = age_s - max(
        (one.throttle.at for one in known if one.throttle.times), default=-limits.calm_s - limits.soon_s
    )

    def place(assignment: Assignment) -> tuple[float, int, str]:
        return importance(assignment, layout)

    if fullest_s >= limits.full_s:
        crowded = [one for one in known if _is_crowded(one, nodes, limits.full_s)]
        if crowded and since >= limits.next_s:
            yield _throttled(max(crowded, key=place), age_s, limits.soon_s)
    elif fullest_s <= 0 and since >= limits.calm_s:
        waiting = [one for one in known if one.throttle.on and age_s - one.throttle.at >= _wait_s(one.throttle, limits)]
        if waiting:
            yield _relieved(min(waiting, key=place), age_s)


def _is_crowded(assignment: Assignment, nodes: Mapping[str, NodeView], full_s: float) -> bool:
    """Whether a slice has a secondary on a full node that could do less. One that stands in is needed as it is."""
    placed = assignment.secondary
    node = nodes.get(placed.node) if placed else None
    saves = (
        rank(assignment.scheme) > rank(Scheme.DEPLOYED) and not assignment.throttle.on and not assignment.standing_in
    )
    return saves and node is not None and node.full_s >= full_s


def _throttled(assignment: Assignment, age_s: float, soon_s: float) -> Suggestion:
    before = assignment.throttle
    times = before.times + 1 if before.times and age_s - before.at < soon_s else 1
    node = assignment.secondary.node if assignment.secondary else "its node"
    reason = f"{assignment.slice} is protected less: {node} is full, so its secondary there is throttled"
    changed = replace(assignment, throttle=Throttle(on=True, at=age_s, times=times))
    return Suggestion(Origin.THROTTLE, changed, reason)


def _wait_s(state: Throttle, limits: OverloadSection) -> float:
    return float(limits.calm_s * 2 ** min(limits.max_doublings, state.times - 1))


def _relieved(assignment: Assignment, age_s: float) -> Suggestion:
    reason = f"{assignment.slice}: nobody is behind any more, its secondary goes on"
    changed = replace(assignment, throttle=replace(assignment.throttle, on=False, at=age_s))
    return Suggestion(Origin.THROTTLE, changed, reason)
