"""When a run is complete, and how many epochs it has."""

from __future__ import annotations

from collections.abc import Iterator

from understudy.control.cluster.instructions import FinishRun, SetGoal
from understudy.control.cluster.snapshot import Snapshot
from understudy.model.layout import Kind, Layout


def finished(snapshot: Snapshot, layout: Layout) -> FinishRun | None:
    """The end of the run, once every sink has delivered the goal."""
    goal = snapshot.goal
    sinks = layout.of_kind(Kind.SINK)
    if goal is None or any(snapshot.delivered.get(sink.operator, 0) < goal for sink in sinks):
        return None
    return FinishRun(f"every sink has delivered {goal} epochs")


def set_goal(snapshot: Snapshot, layout: Layout) -> Iterator[SetGoal]:
    """The run is as long as its time allows, or as its longest source."""
    if snapshot.goal is not None:
        return
    sources = set(layout.of_kind(Kind.SOURCE))
    replicas = [replica for node in snapshot.nodes for replica in node.replicas]
    if snapshot.left_s is not None and snapshot.left_s <= 0:
        # A replica that has just been started knows too little: every source must have reported how far it is.
        if {r.slice for r in replicas if r.epoch >= 0 or r.ended_at is not None} >= sources:
            goal = max(*(r.epoch + 1 for r in replicas), *snapshot.delivered.values())
            yield SetGoal(goal, f"the time is up after {goal} epochs")
        return
    ends = {r.slice: r.ended_at for r in replicas if r.ended_at is not None}
    if sources and sources <= ends.keys():
        goal = max(ends[slice_id] for slice_id in sources)
        yield SetGoal(goal, f"all sources have ended, the last after {goal} epochs")
