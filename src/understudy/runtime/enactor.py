"""Carries out the instructions of a decision, one by one, and writes down what that means for the slices."""

from __future__ import annotations

import logging
import sqlite3
from functools import singledispatchmethod
from typing import Any

from understudy.control.cluster.detector import Detector
from understudy.control.cluster.instructions import (
    Assign,
    CheckTopology,
    DeployReplica,
    FailRun,
    FinishRun,
    LoseNode,
    SetGoal,
    StopReplica,
)
from understudy.control.cluster.secondaries import healthy_secondary
from understudy.control.cluster.suggestions import Origin
from understudy.model.events import (
    Assigned,
    ControllerDecided,
    Failed,
    Finished,
    GoalSet,
    NodeLost,
    Promoted,
    RolledBack,
    SecondaryChanged,
    StandingIn,
    Switched,
    Throttled,
    Unprotected,
)
from understudy.model.messages import Check, Failure, Goal, Stop
from understudy.model.recovery import Scheme
from understudy.model.snapshot import Assignment, Phase
from understudy.runtime.clock import RunClock
from understudy.runtime.journal import Journal
from understudy.runtime.memory import RunMemory
from understudy.runtime.observer import Observer

logger = logging.getLogger(__name__)


class Enactor:
    """Every instruction is remembered first and sent afterwards, so that a manager that dies in between knows it."""

    def __init__(
        self, memory: RunMemory, journal: Journal, observer: Observer, clock: RunClock, detector: Detector
    ) -> None:
        self._memory, self._journal, self._observer = memory, journal, observer
        self._clock, self._detector = clock, detector

    @singledispatchmethod
    def enact(self, instruction: Any) -> None:
        raise NotImplementedError(type(instruction))

    @enact.register
    def _(self, instruction: CheckTopology) -> None:
        self._memory.phase, self._memory.checked_by = Phase.CHECKING, instruction.node
        self._observer.members.send(instruction.node, Check())

    @enact.register
    def _(self, instruction: LoseNode) -> None:
        self._observer.members.lose(instruction.node)
        number = self._journal.note(NodeLost(node=instruction.node, reason=instruction.reason))
        self._memory.lose(instruction.node, number, replace_it=instruction.replace)

    @enact.register
    def _(self, instruction: Assign) -> None:
        before = self._memory.assignments.get(instruction.assignment.slice)
        self._memory.assign(instruction.assignment)
        if before is not None and instruction.origin in (Origin.REQUEST, Origin.CONTROLLER):
            self._note_switch(before, instruction)
        self._note_assignment(before, instruction.assignment, instruction.reason)

    @enact.register
    def _(self, instruction: DeployReplica) -> None:
        self._observer.members.send(instruction.node, instruction.deploy)

    @enact.register
    def _(self, instruction: StopReplica) -> None:
        stop = Stop(slice=instruction.slice, generation=instruction.generation)
        self._observer.members.send(instruction.node, stop)

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

    def _note_assignment(self, before: Assignment | None, new: Assignment, reason: str) -> None:
        about: dict[str, Any] = {"slice": new.slice, "generation": new.generation, "reason": reason}
        if before is None or before.generation != new.generation:
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
