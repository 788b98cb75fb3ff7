"""Moves: a slice goes to another node without interruption.

A working replica is started on the target, the mover. When it has caught up it takes over as it is, and the old primary
is released. The slice stays protected throughout: its secondary is there until the mover could take over at any moment,
then the secondary is deployed again under a generation above the mover's, and only when that one is what the scheme
asks for does the mover become the primary. Where the target is the secondary's own node, the secondary is the mover.

Where two replicas may not work at once the slice moves the legacy way: its primary is told to stop and ships what it
has, and its successor starts from that on the target. Sources and sinks keep no state and are started there at once.

How far a move has come is in the assignment and in what the replicas report, so every step can be repeated, and a
manager that is killed between two of them goes on from what it finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from understudy.control.cluster.secondaries import (
    effective,
    healthy_mover,
    healthy_secondary,
    mover,
    placeable,
    promoted,
)
from understudy.control.cluster.snapshot import Snapshot
from understudy.control.cluster.suggestions import Origin, Ruling, Suggestion
from understudy.model.capabilities import ALL, OFF, PAUSED, ROWS
from understudy.model.layout import Kind, Layout, Vertex
from understudy.model.messages import ReplicaStatus, State
from understudy.model.names import SliceId
from understudy.model.recovery import Guarantee, Scheme
from understudy.model.snapshot import Assignment, Move, NodeView, Secondary


def begin(assignment: Assignment, move: Move, vertex: Vertex, age_s: float) -> Assignment:
    """The assignment with a move to begin. One that is under way is given up for it."""
    legacy = move.primary and (move.legacy or not may_work_twice(assignment, vertex))
    return replace(release(assignment), moving=replace(move, legacy=legacy, since=age_s))


def release(assignment: Assignment) -> Assignment:
    """Without its move. A mover that the slice needs becomes its secondary: it may have been that before."""
    if assignment.moving is None:
        return assignment
    there = assignment.secondary or (mover(assignment) if ROWS[assignment.scheme] != OFF else None)
    return replace(assignment.without_mover(), secondary=there, moving=None)


def may_work_twice(assignment: Assignment, vertex: Vertex) -> bool:
    """Whether two replicas may work at once and come to the same, each from what was shipped."""
    works = vertex.kind is Kind.OPERATOR and vertex.deterministic and not assignment.passive
    return works and Guarantee(vertex.recovery.guarantee).replays and assignment.scheme is not Scheme.NONE


def asked(
    assignments: Iterable[Assignment], layout: Layout, requests: Mapping[SliceId, Move], age_s: float
) -> Iterator[Suggestion]:
    """Begins the moves that people asked for."""
    for assignment in assignments:
        move = requests.get(assignment.slice)
        if move is not None and move.node != assignment.node:
            changed = begin(assignment, move, layout[assignment.slice.operator], age_s)
            yield Suggestion(Origin.MOVE, changed, f"{assignment.slice} moves from {assignment.node} to {move.node}")


def not_begun(
    requests: Mapping[SliceId, Move], assigned: Mapping[SliceId, Assignment], ruling: Ruling
) -> dict[SliceId, Move]:
    """The requests that had to wait, because something more urgent happened to their slice in this decision."""
    busy = {one for one in requests if (found := ruling.accepted.get(one)) and found.origin is not Origin.MOVE}
    return {s: move for s, move in requests.items() if s in busy and assigned[s].node != move.node}


def advance(assignments: Iterable[Assignment], snapshot: Snapshot, layout: Layout) -> Iterator[Suggestion]:
    """The next step of every move that is under way, where it can be taken now."""
    for assignment in assignments:
        if assignment.moving is not None:
            step = _Step(assignment, assignment.moving, snapshot, layout[assignment.slice.operator])
            found = step.primary() if assignment.moving.primary else step.secondary()
            if found is not None:
                yield found


class _Step:
    """One look at one move."""

    def __init__(self, assignment: Assignment, move: Move, snapshot: Snapshot, vertex: Vertex) -> None:
        self._assignment, self._move, self._vertex = assignment, move, vertex
        self._nodes: Mapping[str, NodeView] = snapshot.by_name
        self._age_s, self._config = snapshot.age_s, snapshot.config

    def primary(self) -> Suggestion | None:
        assignment, move = self._assignment, self._move
        if assignment.node == move.node:
            return self._give_up(f"{assignment.slice} is on {move.node} by now")
        off = self._off()
        if off is not None:
            return off
        if not move.legacy and not may_work_twice(assignment, self._vertex):
            changed = replace(release(assignment), moving=replace(move, generation=0, legacy=True))
            return self._suggest(changed, f"{assignment.slice}: only one of its replicas may work, it moves otherwise")
        if move.legacy:
            return self._start_there()
        return self._take_over() if move.generation else self._start_mover()

    def secondary(self) -> Suggestion | None:
        """Another secondary is started on the target and replaces the one that goes."""
        assignment, move, row = self._assignment, self._move, ROWS[effective(self._assignment)]
        here = assignment.secondary
        if here is None or row == OFF or move.node in (here.node, assignment.node):
            return self._give_up(f"{assignment.slice} needs no other secondary")
        off = self._off()
        if off is not None:
            return off
        if not move.generation:
            return self._deploy_mover(f"{assignment.slice}: {move.node} is to stand by instead of {here.node}")
        found = healthy_mover(assignment, self._nodes)
        if found is None or found.capabilities != row or found.late or assignment.standing_in:
            return self._give_up_late()
        changed = replace(assignment.without_mover(), secondary=mover(assignment), moving=None)
        return self._suggest(changed, f"{assignment.slice}: {move.node} stands by instead of {here.node}")

    # -- a second replica that works

    def _start_mover(self) -> Suggestion | None:
        assignment, move = self._assignment, self._move
        if not self._is_settled():
            return self._give_up_late()
        here = assignment.secondary
        if here is None or here.node != move.node:
            return self._deploy_mover(f"{assignment.slice}: {move.node} begins to work beside {assignment.node}")
        moving = replace(move, generation=here.generation)
        reason = f"{assignment.slice}: {move.node}, which stood by, works beside {assignment.node}"
        return self._suggest(replace(assignment.alone(), moving=moving), reason)

    def _deploy_mover(self, reason: str) -> Suggestion:
        generation = self._assignment.next_generation
        moving = replace(self._move, generation=generation)
        return self._suggest(replace(self._assignment, moving=moving, issued=generation), reason)

    def _take_over(self) -> Suggestion | None:
        assignment, move = self._assignment, self._move
        if not self._is_established():
            return self._give_up_late()
        if not self._is_late() and not move.hasty and ROWS[assignment.scheme] != OFF:
            protect = self._protect()
            if protect is not None or not self._is_protected():
                return protect
        there = Secondary(move.node, move.generation)
        reason = f"{assignment.slice} moved from {assignment.node} to {move.node}"
        return self._suggest(replace(promoted(assignment, there), mishaps=0), reason)

    def _is_established(self) -> bool:
        """The mover works and has caught up: it is at most one epoch behind."""
        own, primary = healthy_mover(self._assignment, self._nodes), self._primary()
        if own is None or own.state is not State.RUNNING or own.capabilities != ALL:
            return False
        if self._assignment.rewind is not None:
            return False
        return primary is None or max(own.epoch, own.synced_to) >= primary.epoch - 1

    def _protect(self) -> Suggestion | None:
        """The secondary is deployed again under a generation above the mover's, which protects the slice meanwhile."""
        assignment, move, here = self._assignment, self._move, self._assignment.secondary
        own = healthy_mover(assignment, self._nodes)
        if here is None or here.generation > move.generation or own is None or own.late or own.throttled:
            return None
        node = self._nodes.get(here.node)
        if node is None or node.draining:
            return self._suggest(assignment.alone(), f"{assignment.slice}: {here.node} stands by no longer")
        generation = assignment.next_generation
        changed = replace(assignment, secondary=Secondary(here.node, generation), issued=generation, standing_in=False)
        return self._suggest(changed, f"{assignment.slice}: {here.node} stands by for {move.node} from now on")

    def _is_protected(self) -> bool:
        """The secondary is what the scheme asks for, or there can be none."""
        assignment, row = self._assignment, ROWS[effective(self._assignment)]
        if assignment.secondary is None:
            return not placeable(assignment, self._nodes)
        if assignment.secondary.generation < self._move.generation:
            return False
        found = healthy_secondary(assignment, self._nodes)
        return found is not None and found.capabilities == row and not found.late

    # -- one replica at a time

    def _start_there(self) -> Suggestion | None:
        """Stop here, ship, start there."""
        assignment, move, primary = self._assignment, self._move, self._primary()
        if not self._is_settled():
            return self._give_up_late()
        if not self._ships() or primary is None:
            return self._suggest(replace(assignment.anew(move.node), moving=None), self._moved())
        if move.paused_at is None:
            changed = replace(assignment, moving=replace(move, paused_at=self._age_s))
            return self._suggest(changed, f"{assignment.slice} stops, to be moved to {move.node}")
        if primary.asked != PAUSED or primary.capabilities.processes or primary.shipped_to < primary.epoch:
            return self._give_up_late()
        return self._suggest(replace(assignment.anew(move.node), moving=None, mishaps=0), self._moved())

    def _ships(self) -> bool:
        kept = self._assignment.scheme is not Scheme.NONE and self._vertex.recovery.guarantee != Guarantee.AMNESIA
        return kept and self._vertex.kind is Kind.OPERATOR

    def _moved(self) -> str:
        return f"{self._assignment.slice} was stopped on {self._assignment.node} and starts on {self._move.node}"

    # -- what can come in between

    def _primary(self) -> ReplicaStatus | None:
        node = self._nodes.get(self._assignment.node)
        return node.hosting(self._assignment.slice, self._assignment.generation) if node else None

    def _is_settled(self) -> bool:
        """Nothing is on its way back: what is started now would only delay it."""
        assignment, primary, there = self._assignment, self._primary(), self._nodes.get(self._move.node)
        if there is None or not there.connected or not there.ready:
            return False
        if assignment.rewind is not None or assignment.waits_for:
            return False
        return primary is not None and (primary.is_back or primary.generation == 1)

    def _off(self) -> Suggestion | None:
        """The move is given up if its target is none any more, or its replica there has failed."""
        move, stays = self._move, f"{self._assignment.slice} stays on {self._assignment.node}"
        node = self._nodes.get(move.node)
        if node is None:
            return self._give_up(f"{stays}: {move.node} is lost")
        if node.draining:
            return self._give_up(f"{stays}: {move.node} is being drained")
        found = node.hosting(self._assignment.slice, move.generation) if move.generation else None
        if found is None or found.state is not State.FAILED:
            return None
        why = found.failure.what if found.failure else "its replica failed"
        return self._give_up(f"{stays}: on {move.node}, {why}", failed=True)

    def _is_late(self) -> bool:
        """A slice that is stopped waits for less long than one that goes on working."""
        move, limits = self._move, self._config.cluster
        if move.paused_at is not None:
            return self._age_s - move.paused_at > limits.pause_s
        return self._age_s - move.since > limits.move_s

    def _give_up_late(self) -> Suggestion | None:
        if not self._is_late():
            return None
        took, assignment = self._age_s - self._move.since, self._assignment
        return self._give_up(
            f"{assignment.slice} stays on {assignment.node}: {self._move.node} is not ready after {took:.0f} s",
            failed=True,
        )

    def _give_up(self, reason: str, *, failed: bool = False) -> Suggestion:
        """A mover that failed counts as a secondary that failed does: a drain does not try it for ever."""
        kept = release(self._assignment)
        if kept.secondary == mover(self._assignment) and healthy_mover(self._assignment, self._nodes) is None:
            kept = kept.alone()
        return self._suggest(replace(kept, mishaps=kept.mishaps + failed), reason)

    def _suggest(self, assignment: Assignment, reason: str) -> Suggestion:
        return Suggestion(Origin.MOVE, assignment, reason)
