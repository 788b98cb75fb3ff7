"""What the manager does about protection: notes what is reached, lets the controller choose, carries out switches."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

from understudy.control.cluster.detector import Detector
from understudy.control.cluster.instructions import Assign, Instruction
from understudy.control.cluster.secondaries import allowed, healthy_secondary, strongest
from understudy.errors import InvalidInput
from understudy.model.layout import Kind
from understudy.model.messages import ReplicaStatus
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme
from understudy.model.snapshot import Assignment, Phase
from understudy.runtime.stand_ins import StandIns
from understudy.runtime.steering import Surroundings
from understudy.runtime.watched import Watched


class Guarding(Watched):
    _detector: Detector
    _stand_ins: StandIns

    @abstractmethod
    def _enact(self, instruction: Instruction) -> None: ...

    def _steer_by(self, replica: ReplicaStatus) -> None:
        slice_id = replica.slice
        assignment = self._assignments.get(slice_id)
        if assignment is not None and self._kind(slice_id) is Kind.OPERATOR:
            reached = self._protections.reached.get(str(slice_id))
            self._steering.hear(replica, assignment, reached, self._clock())

    def _steer(self) -> None:
        """Lets the controller choose for the slices that have an objective."""
        layout = self._layout
        if self._phase is not Phase.RUNNING or layout is None or self.run.scheme is not None:
            return
        hosts = [a.node for a in self._assignments.values() if layout[a.slice.operator].kind is Kind.OPERATOR]
        ready = sum(connection.beat.ready and connection.send is not None for connection in self._connections.values())
        detect_s = self._detector.usual_s
        watched = [
            (a, layout[a.slice.operator], Surroundings(detect_s, hosts.count(a.node) - 1, ready > 1))
            for a in self._assignments.values()
            if layout[a.slice.operator].recovery.objective_s is not None
        ]
        for decision in self._steering.decide(watched, self._wall()):
            self.note("decision", decision.sentence, decision.to_data())
            self._protect(SliceId.parse(decision.slice), decision.scheme, decision.ship_every)

    def _look(self) -> None:
        """Notes what protects the slices now."""
        if self._phase is not Phase.RUNNING or self._layout is None:
            return
        operators = [a for a in self._assignments.values() if self._kind(a.slice) is Kind.OPERATOR]
        for change in self._protections.look(operators, self._views(), self._clock()):
            fields = {"slice": change.slice, "scheme": change.scheme, "seconds": change.seconds}
            words = change.scheme.replace("_", " ")
            took = f" after {change.seconds:.2f} s" if change.seconds is not None else ""
            self.note("protection", f"{change.slice} is protected by {words}{took}", fields)

    def _expect_recovery(self, assignment: Assignment, detect_s: float | None = None) -> None:
        """What is predicted at this moment will be compared with what happens."""
        if self._layout is not None:
            protected_by = self._protections.reached.get(str(assignment.slice), Scheme.PASSIVE_REPLICATION)
            vertex = self._layout[assignment.slice.operator]
            self._steering.failed(assignment, vertex, protected_by, self._wall(), detect_s)

    def _note_assignment(self, before: Assignment | None, new: Assignment, reason: str) -> None:
        name = new.slice
        fields: dict[str, Any] = {"slice": str(name), "node": new.node, "generation": new.generation}
        if before is None or before.generation != new.generation:
            placed = before.secondary if before else None
            promoted = placed is not None and placed.generation == new.generation
            if self._stand_ins.forget(name):
                fields["standing_in"] = True
            elif before is not None:
                self._expect_recovery(before)
            cause = self._lost.get(before.node) if before else None
            self.note("promoted" if promoted else "assigned", reason, fields, cause)
        elif before.secondary != new.secondary:
            # A secondary that is given up while it was standing in is no roll-back.
            self._stand_ins.forget(name)
            node = new.secondary.node if new.secondary else None
            self.note("secondary", reason, fields | {"node": node, "scheme": new.scheme})
        elif new.standing_in != before.standing_in:
            self._note_reaction(new, reason)
        elif new.throttle.on != before.throttle.on:
            host = new.secondary.node if new.secondary else None
            self.note("throttled", reason, fields | {"node": host, "on": new.throttle.on})
        elif new.mishaps > before.mishaps or new.passive != before.passive:
            self.note("unprotected", reason, fields)

    def _note_reaction(self, assignment: Assignment, reason: str) -> None:
        """A secondary wakes, or sleeps again."""
        secondary = healthy_secondary(assignment, self._views())
        if secondary is None or assignment.secondary is None:
            return
        host = assignment.secondary.node
        fields: dict[str, Any] = {"slice": str(secondary.slice), "node": host, "primary": assignment.node}
        if assignment.standing_in:
            self._stand_ins.wake(self.note("woken", reason, fields), secondary, self._clock())
            self._expect_recovery(assignment, self._detector.missed_s)
            return
        self._steering.not_failed(secondary.slice)
        cause, spent = self._stand_ins.sleep(secondary, self._clock())
        self.note("rolled_back", f"{reason}, {host} sleeps again", fields | spent, cause)

    def _note_stand_in(self, replica: ReplicaStatus) -> None:
        cause = self._stand_ins.stands_in(replica)
        if cause is not None:
            fields = {"slice": str(replica.slice), **replica.steps.model_dump()}
            self.note("stood_in", f"{replica.slice} goes on with its secondary", fields, cause)

    def _note_drained(self) -> None:
        """Says once that nothing is left on a node that was to be emptied."""
        held = {a.node for a in self._assignments.values()}
        held |= {a.secondary.node for a in self._assignments.values() if a.secondary is not None}
        for name, connection in self._connections.items():
            empty = connection.draining and name not in held and not connection.beat.replicas
            if empty and not connection.drained:
                self.note("drained", f"{name} is empty and can be stopped", {"node": name})
            connection.drained = empty

    def switch(self, slice_id: SliceId, scheme: Scheme) -> None:
        """Protects a slice in another way from now on; raises what speaks against it."""
        current = self._assignments.get(slice_id)
        if self._layout is None or current is None or self._kind(slice_id) is not Kind.OPERATOR:
            operators = [str(s) for s in self._layout.of_kind(Kind.OPERATOR)] if self._layout else []
            raise InvalidInput(
                f"{slice_id} cannot be switched",
                why="only slices of operators that run have a scheme",
                fix=f"name one of {', '.join(operators)}" if operators else "wait until data flows",
            )
        vertex = self._layout[slice_id.operator]
        if allowed(scheme, vertex, current.passive) is not scheme:
            raise InvalidInput(
                f"{slice_id} cannot be protected by {scheme}",
                why="its operator is not deterministic, so two copies of its work would disagree",
                fix=f"choose {strongest(vertex, current.passive)} or a scheme below it",
            )
        self._protect(slice_id, scheme, None)

    def _protect(self, slice_id: SliceId, scheme: Scheme, ship_every: int | None) -> None:
        current = self._assignments[slice_id]
        if scheme is not current.scheme:
            self._protections.ask(str(slice_id), scheme, self._clock())
            fields = {"slice": str(slice_id), "scheme": scheme, "before": current.scheme}
            self.note("switched", f"{slice_id} goes from {current.scheme} to {scheme}", fields)
        changed = replace(current, scheme=scheme, ship_every=ship_every, mishaps=0, rests_until=0)
        if changed != current:
            self._enact(Assign(changed, f"{slice_id}: {scheme}"))
