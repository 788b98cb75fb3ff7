"""What heartbeats tell: receipts, recoveries, divergences, costs, and which scheme protects every slice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from understudy.control.cluster.controlling import surroundings
from understudy.control.cluster.deploying import hosts_of
from understudy.control.cluster.detector import Detector
from understudy.control.cluster.snapshot import Measured
from understudy.model.events import (
    PLACED,
    CheckpointDamaged,
    Corrected,
    Diverged,
    Drained,
    Recovered,
    ShipFailed,
    ShippedAgain,
    StoodIn,
    TentativeDelivered,
)
from understudy.model.layout import Kind
from understudy.model.messages import Heartbeat, ReplicaStatus, Stored
from understudy.model.names import SliceId
from understudy.model.snapshot import Assignment, NodeView, Phase
from understudy.runtime.busy_cores import BusyCores
from understudy.runtime.clock import RunClock
from understudy.runtime.connection import Connection
from understudy.runtime.journal import Journal
from understudy.runtime.ledger import Ledger
from understudy.runtime.members import Members
from understudy.runtime.memory import RunMemory
from understudy.runtime.predictions import Predictions
from understudy.runtime.protections import Protections
from understudy.runtime.stand_ins import StandIns


class Observer:
    """Turns what nodes say into measurements for decisions and into events. It decides nothing."""

    def __init__(self, memory: RunMemory, journal: Journal, clock: RunClock, detector: Detector) -> None:
        self._memory, self._journal, self._clock, self._detector = memory, journal, clock, detector
        self.members = Members()
        self.ledger = Ledger(memory.store.fact("ledger"))
        self.protections = Protections(memory.store.fact("protections"))
        self.predictions = Predictions(memory.topology.epoch_s)
        self.stand_ins = StandIns()
        self.cores = BusyCores()
        self._recovered = {
            name: event.fields["generation"] for name, event in memory.store.latest(Recovered.kind).items()
        }
        self._unshipped: set[SliceId] = set()
        self._damaged = {
            (name, event.fields["generation"], event.fields["epoch"])
            for name, event in memory.store.latest(CheckpointDamaged.kind).items()
        }

    # -- hearing

    def hear(self, connection: Connection, beat: Heartbeat) -> None:
        connection.hear(beat, self._clock.now(), self._detector.missed_s, self._memory.run.config.overload)
        self.ledger.see(beat.replicas)
        self.cores.hear(connection.name, beat.cpu_s, self._clock.now())
        self.ledger.see_node(connection.name, beat.cpu_s, beat.memory_bytes)
        self._receive(connection, beat)
        self._receive_tentative(connection, beat)
        for replica in beat.replicas:
            self._measure(replica)
            self._note_stand_in(replica)
            self._note_shipping(replica)
            self._note_damage(replica)
            self._note_recovery(replica)
            self._note_divergence(replica)

    def _receive(self, connection: Connection, beat: Heartbeat) -> None:
        """Stores receipts, then confirms them: a node repeats what is not confirmed."""
        if not beat.receipts:
            return
        for receipt in beat.receipts:
            if receipt.corrected is not None and receipt.epoch >= self._memory.store.delivered(receipt.sink):
                compared = receipt.corrected.model_dump()
                self._journal.note(Corrected(sink=receipt.sink, epoch=receipt.epoch, at=receipt.at, **compared))
        self._memory.store.receive(beat.receipts, self._memory.rhythm)
        for sink in {receipt.sink for receipt in beat.receipts}:
            connection.tell(Stored(sink=sink, epoch=self._memory.store.delivered(sink) - 1))

    def _receive_tentative(self, connection: Connection, beat: Heartbeat) -> None:
        """Writes tentative epochs down, each once, then confirms them."""
        for receipt in beat.tentative:
            newest = self._memory.tentative_epoch(receipt.branch, receipt.sink)
            if receipt.epoch > newest:
                self._memory.deliver_tentative(receipt.branch, receipt.sink, receipt.epoch)
                self._journal.note(TentativeDelivered(**receipt.model_dump()))
        for branch, sink in {(receipt.branch, receipt.sink) for receipt in beat.tentative}:
            epoch = self._memory.tentative_epoch(branch, sink)
            connection.tell(Stored(sink=sink, epoch=epoch, branch=branch))

    def _measure(self, replica: ReplicaStatus) -> None:
        assignment = self._memory.assignments.get(replica.slice)
        if assignment is None or _moves(assignment, replica):
            # What works beside its primary only to take its place is no cost of the scheme.
            return
        if self._memory.kind(replica.slice) is Kind.OPERATOR:
            reached = self.protections.reached.get(replica.slice)
            self.predictions.hear(replica, assignment, reached, self._clock.now())

    def _note_stand_in(self, replica: ReplicaStatus) -> None:
        cause = self.stand_ins.first_bag(replica)
        if cause is not None:
            self._journal.note(StoodIn(slice=replica.slice, **replica.steps.model_dump()), cause)

    def _note_shipping(self, replica: ReplicaStatus) -> None:
        """Once when shipping begins to fail, and once when it works again."""
        failing = replica.ship_failures > 0
        if failing == (replica.slice in self._unshipped):
            return
        fields: dict[str, Any] = {"slice": replica.slice, "generation": replica.generation}
        if failing:
            self._unshipped.add(replica.slice)
            self._journal.note(ShipFailed(error=replica.ship_error, **fields))
        elif replica.primary and replica.shipped_to >= 0:
            self._unshipped.discard(replica.slice)
            self._journal.note(ShippedAgain(error=replica.ship_error, **fields))

    def _note_damage(self, replica: ReplicaStatus) -> None:
        """Once for every checkpoint that a replica found damaged."""
        for found in replica.damaged_checkpoints:
            key = (str(replica.slice), replica.generation, found.epoch)
            if key not in self._damaged:
                self._damaged.add(key)
                about: dict[str, Any] = {"slice": replica.slice, "generation": replica.generation}
                self._journal.note(CheckpointDamaged(epoch=found.epoch, error=found.why, **about))

    def _note_recovery(self, replica: ReplicaStatus) -> None:
        """Once for every generation, beside what was predicted."""
        name = str(replica.slice)
        if not (replica.primary and replica.steps.done and replica.generation > self._recovered.get(name, 1)):
            return
        self._recovered[name] = replica.generation
        predicted = self.predictions.back(replica.slice, replica.steps)
        steps = replica.steps.model_dump()
        what = Recovered(slice=replica.slice, generation=replica.generation, predicted=predicted, **steps)
        self._journal.note(what, self._memory.store.latest_number(PLACED, name))

    def _note_divergence(self, replica: ReplicaStatus) -> None:
        if replica.diverged is not None and self._memory.diverge(replica.slice):
            self._journal.note(Diverged(slice=replica.slice, epoch=replica.diverged))

    # -- looking, once in every tick

    def views(self) -> dict[str, NodeView]:
        return self.members.views(self._clock.now(), self._memory.phase is Phase.RUNNING)

    def measured(self, views: Mapping[str, NodeView]) -> Mapping[SliceId, Measured]:
        """What is known of the slices that have an objective."""
        layout, assignments = self._memory.layout, self._memory.assignments.values()
        if layout is None or not layout.has_objectives:
            return {}
        around = surroundings(assignments, views.values(), layout, self._detector)
        return self.predictions.measured(assignments, layout, around)

    def note_changes(self, views: Mapping[str, NodeView]) -> None:
        """Writes down which slices are protected differently by now, and which nodes are empty.

        `views` are those of this tick; nodes that were given up since do not count.
        """
        self._note_protection({name: view for name, view in views.items() if name in self.members.connections})
        self._note_drained()

    def _note_protection(self, views: Mapping[str, NodeView]) -> None:
        if self._memory.phase is not Phase.RUNNING or self._memory.layout is None:
            return
        operators = [a for a in self._memory.assignments.values() if self._memory.kind(a.slice) is Kind.OPERATOR]
        for change in self.protections.look(operators, views, self._clock.now()):
            self._journal.note(change)

    def _note_drained(self) -> None:
        """Once, when nothing is left on a node that was to be emptied."""
        if not any(connection.draining or connection.drained for connection in self.members.connections.values()):
            return
        assignments = self._memory.assignments.values()
        held = {name for assignment in assignments for name in hosts_of(assignment)}
        for name, connection in self.members.connections.items():
            empty = connection.draining and name not in held and not connection.beat.replicas
            if empty and not connection.drained:
                self._journal.note(Drained(node=name))
            connection.drained = empty

    def books(self) -> dict[str, Any]:
        """The facts that are written once a second: counters of replicas, and costs of schemes."""
        self.ledger.compact({a.slice: frozenset(hosts_of(a).values()) for a in self._memory.assignments.values()})
        return {"ledger": self.ledger.dump(), "protections": self.protections.dump()}


def _moves(assignment: Assignment, replica: ReplicaStatus) -> bool:
    moving = assignment.moving
    return moving is not None and moving.generation == replica.generation
