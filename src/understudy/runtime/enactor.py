"""Carries out the instructions of a decision, one by one, and writes down what that means for the slices."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Collection
from functools import singledispatchmethod
from typing import Any

from understudy.control.cluster.detector import Detector
from understudy.control.cluster.instructions import (
    AdoptPlan,
    Assign,
    CheckTopology,
    DeployReplica,
    EndRebalance,
    FailRun,
    FinishRun,
    GrowCluster,
    LoseDomain,
    LoseNode,
    ReleaseNode,
    RetireNode,
    SetBranch,
    SetGoal,
    ShipCheckpoint,
    StopReplica,
)
from understudy.control.cluster.planned import changes
from understudy.control.cluster.secondaries import healthy_secondary
from understudy.control.cluster.suggestions import Origin
from understudy.model.branch import STABLE
from understudy.model.events import (
    Assigned,
    BranchChanged,
    ControllerDecided,
    DomainLost,
    DrainAsked,
    Failed,
    Finished,
    GoalSet,
    MoveBegan,
    Moved,
    MoveGivenUp,
    NodeLeft,
    NodeLost,
    PlanAdopted,
    Promoted,
    Rebalanced,
    RolledBack,
    Scaled,
    SecondaryChanged,
    SecondaryMoves,
    StandingIn,
    Switched,
    Throttled,
    Unprotected,
)
from understudy.model.messages import Check, Failure, Goal, Ship, Shutdown, Stop
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme
from understudy.model.snapshot import Assignment, Move, Phase
from understudy.runtime.clock import RunClock
from understudy.runtime.journal import Journal
from understudy.runtime.memory import RunMemory
from understudy.runtime.observer import Observer

logger = logging.getLogger(__name__)

Fidelity = Callable[[Collection[SliceId]], tuple[float, float] | None]
"""The predicted output fidelity and internal completeness without some slices, where that can be said."""


class Enactor:
    """Every instruction is remembered first and sent afterwards, so that a manager that dies in between knows it."""

    def __init__(
        self,
        memory: RunMemory,
        journal: Journal,
        observer: Observer,
        clock: RunClock,
        detector: Detector,
        fidelity: Fidelity = lambda _: None,
    ) -> None:
        self._memory, self._journal, self._observer = memory, journal, observer
        self._clock, self._detector, self._fidelity = clock, detector, fidelity

    @singledispatchmethod
    def enact(self, instruction: Any) -> None:
        raise NotImplementedError(type(instruction))

    @enact.register
    def _(self, instruction: CheckTopology) -> None:
        self._memory.phase, self._memory.checked_by = Phase.CHECKING, instruction.node
        self._observer.members.send(instruction.node, Check())

    @enact.register
    def _(self, instruction: LoseNode) -> None:
        domain = self._observer.members.lose(instruction.node)
        number = self._journal.note(NodeLost(node=instruction.node, domain=domain, reason=instruction.reason))
        self._memory.lose(instruction.nodes, number, replace_them=instruction.replace)

    @enact.register
    def _(self, instruction: LoseDomain) -> None:
        for node in instruction.nodes:
            self._observer.members.lose(node)
        what = DomainLost(domain=instruction.domain, nodes=instruction.nodes, reason=instruction.reason)
        number = self._journal.note(what)
        self._memory.lose(instruction.nodes, number, replace_them=instruction.replace, domain=instruction.domain)

    @enact.register
    def _(self, instruction: AdoptPlan) -> None:
        """The plan itself is remembered with the decision; until then it would be adopted again."""
        proposal, plan = instruction.proposal, instruction.proposal.plan
        added, removed = changes(proposal)
        self._journal.note(
            PlanAdopted(
                budget=plan.budget,
                slices=plan.slices,
                added=added,
                removed=removed,
                fidelity_before=proposal.before,
                fidelity_after=plan.fidelity,
                algorithm=plan.algorithm,
                status=plan.status,
                reason=instruction.reason,
            )
        )

    @enact.register
    def _(self, instruction: Assign) -> None:
        before = self._memory.assignments.get(instruction.assignment.slice)
        self._memory.assign(instruction.assignment)
        if before is not None and instruction.origin in (Origin.REQUEST, Origin.PLAN, Origin.CONTROLLER):
            self._note_switch(before, instruction)
        if before is not None and before.moving != instruction.assignment.moving:
            self._note_move(before, instruction)
        self._note_assignment(before, instruction)

    @enact.register
    def _(self, instruction: DeployReplica) -> None:
        self._observer.members.send(instruction.node, instruction.deploy)

    @enact.register
    def _(self, instruction: StopReplica) -> None:
        stop = Stop(
            slice=instruction.slice,
            generation=instruction.generation,
            branch=instruction.branch,
            drops=instruction.drops,
        )
        self._observer.members.send(instruction.node, stop)

    @enact.register
    def _(self, instruction: ShipCheckpoint) -> None:
        ship = Ship(slice=instruction.slice, generation=instruction.generation)
        self._observer.members.send(instruction.node, ship)

    @enact.register
    def _(self, instruction: SetBranch) -> None:
        before, after = self._memory.branch, instruction.branch
        self._memory.set_branch(after)
        if before is not None and after is not None and before.missing == after.missing:
            return
        number = after.number if after else before.number if before else STABLE
        predicted = self._fidelity(after.missing) if after else None
        self._memory.predict_fidelity(predicted)
        fidelity, completeness = predicted or (None, None)
        self._journal.note(
            BranchChanged(
                branch=number,
                missing=after.missing if after else (),
                opened=before is None,
                dropped=after is None,
                away_s=instruction.away_s,
                fidelity=fidelity,
                completeness=completeness,
                reason=instruction.reason,
            )
        )

    @enact.register
    def _(self, instruction: ReleaseNode) -> None:
        if self._observer.members.release(instruction.node):
            self._journal.note(NodeLeft(node=instruction.node, reason=instruction.reason))
        self._observer.members.send(instruction.node, Shutdown())

    @enact.register
    def _(self, instruction: GrowCluster) -> None:
        self._memory.grow(instruction.nodes, self._clock.age_s)
        self._journal.note(Scaled(more=instruction.nodes, reason=instruction.reason))

    @enact.register
    def _(self, instruction: RetireNode) -> None:
        """First it is emptied as patiently as a drain does; a notice would be hasty."""
        if not instruction.last:
            self._memory.retire(instruction.node, self._clock.age_s)
            self._journal.note(Scaled(node=instruction.node, reason=instruction.reason))
        self.drain(instruction.node, within_s=0.0 if instruction.last else None)

    def drain(self, node: str, undo: bool = False, within_s: float | None = None) -> int:
        """Marks a node; see `Manager.drain`."""
        connection, hello = self._observer.members.introduced(node)
        self._memory.drain(hello, undo, None if within_s is None else self._clock.age_s + within_s)
        connection.draining = not undo
        connection.leaves_at = None if within_s is None or undo else self._clock.now() + within_s
        return self._journal.note(DrainAsked(node=node, undo=undo, within_s=within_s))

    @enact.register
    def _(self, instruction: EndRebalance) -> None:
        self._journal.note(Rebalanced(moves=instruction.moves, reason=instruction.reason))

    @enact.register
    def _(self, instruction: SetGoal) -> None:
        self._memory.set_goal(instruction.epochs)
        self._journal.note(GoalSet(epochs=instruction.epochs, reason=instruction.reason))
        self._observer.members.broadcast(Goal(epochs=instruction.epochs))

    @enact.register
    def _(self, instruction: FinishRun) -> None:
        self._memory.end(Phase.FINISHED, self.books())
        self._journal.note(Finished(reason=instruction.reason))

    @enact.register
    def _(self, instruction: FailRun) -> None:
        self.fail(instruction.failure)

    def fail(self, failure: Failure) -> None:
        """Ends the run even if that cannot be written down, because a full disk may be the very reason."""
        try:
            self._memory.fail(failure)
            self._memory.end(Phase.FAILED, self.books())
            self._journal.note(Failed(reason=failure.what))
        except (OSError, sqlite3.Error):
            logger.exception("the failure could not be recorded")

    def books(self) -> dict[str, Any]:
        """What is written once a second and at the end."""
        return self._observer.books() | {"controller": self._memory.decisions.controller.to_data()}

    # -- what a new assignment means

    def _note_switch(self, before: Assignment, instruction: Assign) -> None:
        new, choice = instruction.assignment, instruction.choice
        if choice is not None:
            self._journal.note(ControllerDecided(**choice.to_data()))
        if new.scheme is not before.scheme:
            self._observer.protections.ask(new.slice, new.scheme, self._clock.now())
            self._journal.note(Switched(slice=new.slice, scheme=new.scheme, before=before.scheme))

    def _note_move(self, before: Assignment, instruction: Assign) -> None:
        """A primary begins to move, or stays after all; or a secondary begins to."""
        old, new = before.moving, instruction.assignment.moving
        about: dict[str, Any] = {"slice": before.slice, "primary": before.node, "reason": instruction.reason}
        if new is not None and new.primary and (old is None or old.node != new.node):
            self._journal.note(MoveBegan(node=new.node, **about))
        elif new is not None and not new.primary and old is None and before.secondary is not None:
            here, reason = before.secondary.node, instruction.reason
            self._journal.note(SecondaryMoves(slice=before.slice, node=new.node, before=here, reason=reason))
        elif new is None and old is not None and old.primary and instruction.assignment.generation == before.generation:
            self._journal.note(MoveGivenUp(node=old.node, **about))

    def _note_assignment(self, before: Assignment | None, instruction: Assign) -> None:
        new, reason = instruction.assignment, instruction.reason
        about: dict[str, Any] = {"slice": new.slice, "generation": new.generation, "reason": reason}
        if before is None or before.generation != new.generation:
            if before is not None and before.moving is not None and instruction.origin is Origin.MOVE:
                self._note_moved(before, before.moving, new, about)
            else:
                self._note_placement(before, new, about)
        elif before.secondary != new.secondary:
            # A secondary that is given up while it stands in is no roll-back.
            self._observer.stand_ins.forget(new.slice)
            node = new.secondary.node if new.secondary else None
            self._journal.note(SecondaryChanged(node=node, scheme=new.scheme, **about))
        elif new.standing_in != before.standing_in:
            self._note_reaction(new, reason)
        elif new.throttle.on != before.throttle.on:
            host = new.secondary.node if new.secondary else None
            self._journal.note(Throttled(node=host, on=new.throttle.on, **about))
        elif new.mishaps > before.mishaps or new.passive != before.passive:
            self._journal.note(Unprotected(node=new.node, **about))

    def _note_placement(self, before: Assignment | None, new: Assignment, about: dict[str, Any]) -> None:
        """The slice has another primary, because its node was lost if that is known."""
        secondary = before.secondary if before else None
        record = Promoted if secondary is not None and secondary.generation == new.generation else Assigned
        stood_in = self._observer.stand_ins.forget(new.slice)
        if before is not None and not stood_in:
            self._expect_recovery(before)
        cause = self._memory.lost.get(before.node) if before else None
        self._journal.note(record(node=new.node, standing_in=stood_in, **about), cause)

    def _note_moved(self, before: Assignment, moving: Move, new: Assignment, about: dict[str, Any]) -> None:
        """Nothing has failed, so nothing is compared with a prediction."""
        stood_in = self._observer.stand_ins.forget(new.slice)
        self._observer.predictions.not_failed(new.slice)
        what = Moved(
            node=new.node,
            primary=before.node,
            standing_in=stood_in,
            seconds=round(max(0.0, self._clock.age_s - moving.since), 3),
            legacy=moving.legacy,
            **about,
        )
        self._journal.note(what, self._memory.store.latest_number((MoveBegan.kind,), str(new.slice)))

    def _note_reaction(self, assignment: Assignment, reason: str) -> None:
        """A secondary stands in, or is rolled back."""
        secondary = healthy_secondary(assignment, self._observer.views())
        if secondary is None or assignment.secondary is None:
            return
        host, stand_ins = assignment.secondary.node, self._observer.stand_ins
        about: dict[str, Any] = {"slice": assignment.slice, "node": host, "primary": assignment.node}
        if assignment.standing_in:
            number = self._journal.note(StandingIn(reason=reason, **about))
            stand_ins.begin(number, secondary, self._clock.now())
            self._expect_recovery(assignment, self._detector.missed_s)
            return
        self._observer.predictions.not_failed(assignment.slice)
        cause, spent = stand_ins.end(secondary, self._clock.now())
        self._journal.note(RolledBack(reason=f"{reason}, {host} no longer stands in", **about, **spent), cause)

    def _expect_recovery(self, assignment: Assignment, detect_s: float | None = None) -> None:
        """What is predicted at this moment will be compared with what happens."""
        layout = self._memory.layout
        if layout is not None:
            protected_by = self._observer.protections.reached.get(assignment.slice, Scheme.PASSIVE_REPLICATION)
            vertex = layout[assignment.slice.operator]
            self._observer.predictions.failed(assignment, vertex, protected_by, self._clock.wall(), detect_s)
