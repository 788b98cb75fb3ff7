"""The manager: hears nodes, takes a snapshot, lets the core decide, carries it out, remembers."""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from collections.abc import Callable
from functools import singledispatchmethod
from pathlib import Path
from typing import Any

from understudy.control.application.fusion import lay_out
from understudy.control.cluster.decide import decide
from understudy.control.cluster.detector import Detector
from understudy.control.cluster.instructions import (
    Assign,
    CheckTopology,
    DeployReplica,
    FailRun,
    FinishRun,
    Instruction,
    LoseNode,
    SetGoal,
    StopReplica,
)
from understudy.control.cluster.secondaries import deployments
from understudy.coordination.interface import StateStore
from understudy.errors import InvalidInput
from understudy.model import fingerprint
from understudy.model.event import PLACED
from understudy.model.fingerprint import Fingerprint
from understudy.model.layout import Kind, Layout
from understudy.model.messages import (
    Analysis,
    Begin,
    Check,
    Checked,
    Deploy,
    Failure,
    Goal,
    Goodbye,
    Heartbeat,
    Hello,
    ReplicaStatus,
    Shutdown,
    Stop,
    Stored,
    Welcome,
)
from understudy.model.names import SliceId
from understudy.model.recovery import Reaction, Scheme
from understudy.model.run import Frozen, Rhythm, RunSpec
from understudy.model.snapshot import Phase, Snapshot
from understudy.model.topology import Topology
from understudy.runtime.connection import Connection
from understudy.runtime.guarding import Guarding
from understudy.runtime.journal import Journal
from understudy.runtime.ledger import Ledger
from understudy.runtime.prepare import versions
from understudy.runtime.protections import Protections
from understudy.runtime.stand_ins import StandIns
from understudy.runtime.steering import Steering

logger = logging.getLogger(__name__)

SAVE_EVERY_S = 1.0
TELL_GAP_S = 1.0
TICK_S = 0.05
"""Between two ticks."""
KEPT_LOST = 1_000
"""Nodes that were given up and have not come back: so many are remembered by name."""


class Manager(Guarding):
    """Called from one loop. Time is passed in: `clock` for intervals, `wall` for what is written down."""

    def __init__(
        self,
        home: Path,
        topology: Topology,
        store: StateStore,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._home, self._topology, self._store = home, topology, store
        self._clock, self._wall = clock, wall
        self.run = RunSpec(**store.fact("run"))
        self._phase = Phase(store.fact("phase") or Phase.GATHERING)
        self._operators = {k: Analysis(**v) for k, v in (store.fact("operators") or {}).items()}
        self._rhythm = Rhythm(**store.fact("rhythm")) if store.fact("rhythm") else None
        self._goal: int | None = store.fact("goal")
        self._failure = Failure(**store.fact("failure")) if store.fact("failure") else None
        self._lost: dict[str, int] = store.fact("lost") or {}
        self._replacements: int = store.fact("replacements") or 0
        self._ledger = Ledger(store.fact("ledger"))
        self._protections = Protections(store.fact("protections"))
        self._steering = Steering(topology.costs, topology.epoch_s, store.fact("steering"), self.run.config.controller)
        self._recovered = {name: e.fields["generation"] for name, e in store.latest("recovered").items()}
        self._journal = Journal(home / "events.jsonl", self.run.config.retention.journal_bytes)
        self._diverged: set[str] = set(store.fact("diverged") or ())
        self._unshipped: set[str] = set()
        self._stand_ins = StandIns()
        self._finishing = False
        self._began = self._turned_at = clock()
        self._anchor = self._find_anchor()
        self._running_since = self._find_start()
        self._saved = clock()
        self._detector = Detector(self.run.config.detector)
        self._assignments = {assignment.slice: assignment for assignment in store.assignments()}
        self._connections: dict[str, Connection] = {}
        # A run that is over still answers for its report.
        began = self._phase is Phase.RUNNING or (self._phase.over and bool(self._operators))
        self._layout = self._lay_out() if began else None
        if self._phase is Phase.RUNNING:
            # Nodes that were working when we were killed get some time to call again.
            for assignment in self._assignments.values():
                self._connections.setdefault(
                    assignment.node, Connection(assignment.node, clock() + self.run.config.manager.grace_s)
                )
        self.note("manager", f"manager started, {self._phase}", {"phase": self._phase})
        if self._phase is Phase.RUNNING:
            # The file may have been edited while the manager was away.
            self._is_changed(self._fingerprint())

    # -- the manager's own clock

    def _find_anchor(self) -> float:
        """When the rhythm's first epoch was due, by `clock`. After a restart only the time of day can tell, and it may
        have been set back: at least as much time has passed as what was delivered took."""
        if self._rhythm is None:
            return self._clock()
        done = min((self._store.delivered(sink.name) for sink in self._topology.sinks), default=0)
        least = 0.0 if self._rhythm.fast else (done - self._rhythm.epoch) * self._rhythm.epoch_s
        return self._clock() - max(self._wall() - self._rhythm.time, least, 0.0)

    def _find_start(self) -> float:
        """When data began to flow, by `clock`."""
        return self._clock() - max(0.0, self._wall() - (self._store.fact("running_since") or self._wall()))

    def _notice_own_gap(self) -> None:
        """A manager that was stopped, or kept from its CPU, has not heard what was sent meanwhile: nodes have not been
        silent for that time. Called before anything is judged by how old it is."""
        now = self._clock()
        away_s = now - self._turned_at - TICK_S
        self._turned_at = now
        if away_s <= self._detector.missed_s:
            return
        if away_s > TELL_GAP_S:
            logger.warning("the manager was away for %.2f s", away_s)
        self._began += away_s
        for connection in self._connections.values():
            connection.forgive(away_s, now)

    # -- hearing

    def connect(self, hello: Hello, send: Callable[[Frozen], None]) -> None:
        now = self._clock()
        connection = Connection(hello.node, now, send, hello, draining=self.is_draining(hello), steady_at=now)
        self._connections[hello.node] = connection
        if self._lost.pop(hello.node, None) is not None:
            # It was silent, not dead: whoever was to stand in for it is needed no longer.
            self._replacements = max(0, self._replacements - 1)
            self._store.keep({"lost": self._lost, "replacements": self._replacements})
        self.note("node_joined", f"{hello.node} joined", {"node": hello.node, "pid": hello.pid})
        send(Welcome(run=self.run, home=str(self._home)))

    def refuses(self, hello: Hello) -> Failure | None:
        """Why a node may not join: another process that is connected has its name, and they would share a directory."""
        current = self._connections.get(hello.node)
        if current is None or current.send is None or current.hello is None:
            return None
        if (current.hello.pid, current.hello.instance) == (hello.pid, hello.instance):
            return None
        return Failure(
            what=f"there is a node {hello.node} already",
            why=f"process {current.hello.pid} is connected to the manager under this name",
            fix="give another --name, or end that process",
        )

    def disconnect(self, name: str, send: Callable[[Frozen], None]) -> None:
        connection = self._connections.get(name)
        if connection is not None and connection.send is send:
            connection.send = None

    def hear(self, name: str, message: Heartbeat | Checked | Goodbye) -> bool:
        """False if the node was given up in the meantime: it has to introduce itself again."""
        self._notice_own_gap()
        connection = self._connections.get(name)
        if connection is None or connection.send is None:
            return False
        if isinstance(message, Checked):
            self._checked(message)
            return True
        if isinstance(message, Goodbye):
            connection.gone = message.why
            return True
        connection.hear(message, self._clock(), self._detector.missed_s, self.run.config.overload)
        self._ledger.see(message.replicas)
        self._ledger.see_node(name, message.cpu_s, message.memory_bytes)
        self._receive(connection, message)
        self._note_replicas(message)
        return True

    def _receive(self, connection: Connection, beat: Heartbeat) -> None:
        if not beat.receipts or connection.send is None:
            return
        self._store.receive(beat.receipts, self._rhythm)
        for sink in {receipt.sink for receipt in beat.receipts}:
            connection.send(Stored(sink=sink, epoch=self._store.delivered(sink) - 1))

    def _note_replicas(self, beat: Heartbeat) -> None:
        for replica in beat.replicas:
            self._steer_by(replica)
            self._note_stand_in(replica)
            self._note_shipping(replica)
            known = self._recovered.get(replica.slice, 1)
            if replica.primary and replica.steps.done and replica.generation > known:
                self._recovered[replica.slice] = replica.generation
                fields = {"slice": replica.slice, "generation": replica.generation, **replica.steps.model_dump()}
                fields["predicted"] = self._steering.back(replica.slice, replica.steps)
                self.note(
                    "recovered", f"{replica.slice} is back", fields, self._store.latest_number(PLACED, replica.slice)
                )
            if replica.diverged is not None and replica.slice not in self._diverged:
                self._diverged.add(replica.slice)
                self._store.keep({"diverged": sorted(self._diverged)})
                text = (
                    f"{replica.slice} is not deterministic: its replay of epoch {replica.diverged} differs from what "
                    "was published; avoid rand(), uuid() and the current time"
                )
                self.note("diverged", text, {"slice": replica.slice, "epoch": replica.diverged})

    def _note_shipping(self, replica: ReplicaStatus) -> None:
        """Once when shipping begins to fail, and once when it works again."""
        failing = replica.ship_failures > 0
        if failing == (replica.slice in self._unshipped):
            return
        fields = {"slice": replica.slice, "generation": replica.generation, "error": replica.ship_error}
        if failing:
            self._unshipped.add(replica.slice)
            text = f"the checkpoint of {replica.slice} could not be shipped: {replica.ship_error}"
            self.note("ship_failed", text, fields)
        elif replica.primary and replica.shipped_to >= 0:
            self._unshipped.discard(replica.slice)
            self.note("shipped_again", f"the checkpoint of {replica.slice} is shipped again", fields)

    def _checked(self, answer: Checked) -> None:
        if self._phase is not Phase.CHECKING:
            # Asked for twice, because a node was lost while it was being answered.
            return
        if answer.failure is not None:
            self._enact(FailRun(answer.failure, "the topology is wrong"))
            return
        self._operators = answer.operators
        try:
            self._layout = self._lay_out()
        except InvalidInput as error:
            failure = Failure(what=error.what, why=error.why, fix=error.fix, final=True)
            self._enact(FailRun(failure, "the topology is wrong"))
            return
        except Exception as error:  # noqa: BLE001 - a mistake in the user's topology ends the run, not the manager
            failure = Failure(what=str(error), why="the topology cannot be laid out", fix="correct the application")
            self._enact(FailRun(failure, "the topology is wrong"))
            return
        now = self._fingerprint()
        if self._is_changed(now):
            return
        self._begin(now)

    def _fingerprint(self) -> Fingerprint:
        found = fingerprint.of_application(self._topology, versions())
        return found | (fingerprint.of_queries(self._layout, self._operators) if self._layout is not None else {})

    def _is_changed(self, now: Fingerprint) -> bool:
        """Ends the run where the application is not the one whose state and epochs are in the home directory."""
        before = self._store.fact("fingerprint")
        found = fingerprint.differences(before, now) if before is not None else []
        if found:
            error = fingerprint.refuse(found)
            failure = Failure(what=error.what, why=error.why, fix=error.fix, final=True)
            self._enact(FailRun(failure, "the application has changed"))
        return bool(found)

    def _begin(self, now: Fingerprint) -> None:
        first = min((self._store.delivered(sink.name) for sink in self._topology.sinks), default=0)
        self._rhythm = Rhythm(epoch=first, time=self._wall(), epoch_s=self._topology.epoch_s, fast=self.run.fast)
        self._phase = Phase.RUNNING
        self._anchor = self._running_since = self._clock()
        self._store.keep(
            {
                "operators": {name: value.model_dump() for name, value in self._operators.items()},
                "fingerprint": now,
                "rhythm": self._rhythm.model_dump(),
                "phase": self._phase,
                "began_at": self._store.fact("began_at") or self._wall(),
                "running_since": self._wall(),
            }
        )
        self.note("running", f"data flows from epoch {first}", {"epoch": first})

    def _lay_out(self) -> Layout:
        return lay_out(self._topology, {name: value.stateful for name, value in self._operators.items()})

    # -- the tick

    def tick(self) -> tuple[Instruction, ...]:
        """Observe, decide, enact, remember. What a lost node leaves behind is decided at once, not a tick later."""
        self._notice_own_gap()
        instructions = self._decide()
        if any(isinstance(instruction, LoseNode) for instruction in instructions):
            instructions += self._decide()
        self._greet()
        self._look()
        self._note_drained()
        self._steer()
        if self._clock() - self._saved > SAVE_EVERY_S:
            self._saved = self._clock()
            self._store.keep(self._books())
        return instructions

    def _decide(self) -> tuple[Instruction, ...]:
        instructions = decide(self._snapshot(), self._detector)
        for instruction in instructions:
            self._enact(instruction)
        return instructions

    def _books(self) -> dict[str, Any]:
        self._ledger.compact(self._alive())
        return {
            "ledger": self._ledger.dump(),
            "protections": self._protections.dump(),
            "steering": self._steering.dump(),
        }

    def _alive(self) -> dict[str, frozenset[int]]:
        """The generations of every slice that should be at work."""
        return {
            str(a.slice): frozenset({a.generation} | ({a.secondary.generation} if a.secondary else set()))
            for a in self._assignments.values()
        }

    def _snapshot(self) -> Snapshot:
        now = self._clock()
        running = self._phase is Phase.RUNNING
        nodes = tuple(connection.view(now, running) for connection in self._connections.values())
        return Snapshot(
            phase=self._phase,
            layout=self._layout,
            nodes=nodes,
            assignments=tuple(self._assignments.values()),
            wanted_nodes=self.run.nodes,
            replace=self.run.replace,
            delivered=self.delivered(),
            goal=self._goal,
            scheme=Scheme(self.run.scheme) if self.run.scheme else None,
            reaction=Reaction(self.run.reaction) if self.run.reaction else None,
            waited_s=now - self._began,
            left_s=self._left_s(now) if running else None,
            age_s=now - self._running_since,
            throttles=self.run.primaries_first and not self.run.fast,
            config=self.run.config,
        )

    def _left_s(self, now: float) -> float | None:
        if self._finishing:
            return 0.0
        return None if self.run.for_s is None else self._running_since + self.run.for_s - now

    def finish(self) -> None:
        """No new epochs are cut; what was cut is delivered, and the run is over."""
        self._finishing = True

    def _greet(self) -> None:
        """Tells nodes what they need to host replicas, once the topology is known."""
        if self._phase is not Phase.RUNNING or self._rhythm is None:
            return
        for connection in self._connections.values():
            if connection.send is not None and connection.beat.ready and not connection.begun:
                age_s = self._clock() - self._anchor
                connection.send(Begin(operators=self._operators, rhythm=self._rhythm, age_s=age_s))
                if self._goal is not None:
                    connection.send(Goal(epochs=self._goal))
                connection.begun = True

    @singledispatchmethod
    def _enact(self, instruction: Any) -> None:
        raise NotImplementedError(type(instruction))

    @_enact.register
    def _(self, instruction: CheckTopology) -> None:
        self._phase = Phase.CHECKING
        self._send(instruction.node, Check())

    @_enact.register
    def _(self, instruction: LoseNode) -> None:
        self._connections.pop(instruction.node)
        cause = self.note("node_lost", instruction.reason, {"node": instruction.node})
        self._lost[instruction.node] = cause
        while len(self._lost) > KEPT_LOST:
            del self._lost[next(iter(self._lost))]
        if self._phase is Phase.CHECKING:
            self._phase = Phase.GATHERING
        if instruction.replace:
            self._replacements += 1
        self._store.keep({"lost": self._lost, "replacements": self._replacements})

    @_enact.register
    def _(self, instruction: Assign) -> None:
        new = instruction.assignment
        before = self._assignments.get(new.slice)
        self._assignments[new.slice] = new
        self._store.assign(new)
        self._note_assignment(before, new, instruction.reason)
        if not new.waits_for and self._layout is not None:
            for node, deploy in deployments(new, self._layout):
                self._deploy(node, deploy)

    @_enact.register
    def _(self, instruction: DeployReplica) -> None:
        self._deploy(instruction.node, instruction.deploy)

    def _deploy(self, node: str, deploy: Deploy) -> None:
        slice_id = SliceId.parse(deploy.slice)
        if self._kind(slice_id) is Kind.SINK:
            deploy = deploy.model_copy(update={"resume_at": self._store.delivered(slice_id.operator)})
        self._send(node, deploy)

    @_enact.register
    def _(self, instruction: StopReplica) -> None:
        self._send(instruction.node, Stop(slice=instruction.slice, generation=instruction.generation))

    @_enact.register
    def _(self, instruction: SetGoal) -> None:
        self._goal = instruction.epochs
        self._store.keep({"goal": self._goal})
        self.note("goal", instruction.reason, {"epochs": self._goal})
        self._broadcast(Goal(epochs=self._goal))

    @_enact.register
    def _(self, instruction: FinishRun) -> None:
        self._end(Phase.FINISHED, instruction.reason)

    @_enact.register
    def _(self, instruction: FailRun) -> None:
        self.fail(instruction.failure)

    def fail(self, failure: Failure) -> None:
        """Ends the run even if that cannot be written down, because a full disk may be the very reason."""
        self._failure, self._phase = failure, Phase.FAILED
        try:
            self._store.keep({"failure": failure.model_dump()})
            self._end(Phase.FAILED, failure.what)
        except (OSError, sqlite3.Error):
            logger.exception("the failure could not be recorded")

    def _end(self, phase: Phase, reason: str) -> None:
        self._phase = phase
        self._store.keep({"phase": phase, "ended_at": self._wall(), **self._books()})
        self.note(phase, reason, {})

    # -- telling

    def shut_down(self) -> None:
        self._store.keep(self._books())
        self._broadcast(Shutdown())

    def _send(self, node: str, message: Frozen) -> None:
        connection = self._connections.get(node)
        if connection is not None:
            connection.tell(message)

    def _broadcast(self, message: Frozen) -> None:
        for name in list(self._connections):
            self._send(name, message)

    def note(self, kind: str, text: str, fields: dict[str, Any], cause: int | None = None) -> int:
        at = self._wall()
        number = self._store.note(at, kind, text, fields, cause)
        logger.info("%s", text)
        line = {"number": number, "at": at, "kind": kind, "text": text, "fields": fields, "cause": cause}
        self._journal.add(json.dumps(line))
        return number
