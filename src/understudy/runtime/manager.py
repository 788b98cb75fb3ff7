"""The manager: observes nodes, decides, carries it out, publishes. Start reading at `Manager.tick`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from understudy.control.cluster.decide import decide
from understudy.control.cluster.detector import Detector
from understudy.control.cluster.instructions import Decision, Instruction
from understudy.control.cluster.requests import check_switch
from understudy.control.cluster.snapshot import Snapshot
from understudy.control.schemes.objectives import Settings
from understudy.coordination.interface import StateStore
from understudy.model.events import DrainAsked, Event, FaultInjected, ManagerStarted, NodeJoined
from understudy.model.messages import Begin, Checked, Failure, Goal, Goodbye, Heartbeat, Hello, Shutdown, Welcome
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme
from understudy.model.report import Report
from understudy.model.run import RunSpec
from understudy.model.snapshot import Phase
from understudy.model.topology import Topology
from understudy.model.view import RunState
from understudy.runtime.clock import RunClock
from understudy.runtime.enactor import Enactor
from understudy.runtime.journal import Journal
from understudy.runtime.members import Send
from understudy.runtime.memory import RunMemory
from understudy.runtime.observer import Observer
from understudy.runtime.opening import Opening
from understudy.runtime.run_view import RunView

logger = logging.getLogger(__name__)

SAVE_EVERY_S = 1.0
TELL_GAP_S = 1.0


class Manager:
    """A loop around a memory, a journal and an observer. Called from one thread.

    Time is passed in: `clock` for intervals, `wall` for what is written down. `view` is what people and programs read.
    """

    def __init__(
        self,
        home: Path,
        topology: Topology,
        store: StateStore,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._home = home
        self.memory = memory = RunMemory(store, topology, wall)
        config = memory.run.config
        self.journal = Journal(store, home / "events.jsonl", wall, config.retention.journal_bytes)
        delivered = min(memory.delivered().values(), default=0)
        self.clock = RunClock(clock, wall, memory.rhythm, delivered, store.fact("running_since"))
        self._detector = Detector(config.detector)
        self.observer = Observer(memory, self.journal, self.clock, self._detector)
        self._enactor = Enactor(memory, self.journal, self.observer, self.clock, self._detector)
        self._opening = Opening(memory, self.journal, self._enactor, self.clock)
        self.view = RunView(home, memory, self.observer, self.clock)
        self._finishing = False
        self._saved = clock()
        if memory.phase is Phase.RUNNING:
            hosts = [assignment.node for assignment in memory.assignments.values()]
            self.observer.members.expect(hosts, clock() + config.manager.grace_s)
        self.journal.note(ManagerStarted(phase=memory.phase))
        self._opening.refuse_changes()

    # -- hearing nodes

    def refuses(self, hello: Hello) -> Failure | None:
        """Why a node may not join, None if it may."""
        return self.observer.members.refuses(hello)

    def connect(self, hello: Hello, send: Send) -> None:
        draining = self.memory.is_draining(hello)
        self.observer.members.connect(hello, send, self.clock.now(), draining=draining)
        self.memory.welcome_back(hello.node)
        self.journal.note(NodeJoined(node=hello.node, pid=hello.pid))
        send(Welcome(run=self.memory.run, home=str(self._home)))

    def disconnect(self, name: str, send: Send) -> None:
        self.observer.members.disconnect(name, send)

    def hear(self, name: str, message: Heartbeat | Checked | Goodbye) -> bool:
        """False if the node was given up in the meantime: it has to introduce itself again."""
        self._notice_own_gap()
        connection = self.observer.members.connected(name)
        if connection is None:
            return False
        match message:
            case Checked():
                self._opening.hear(message)
            case Goodbye():
                connection.gone = message.why
            case Heartbeat():
                self.observer.hear(connection, message)
        return True

    # -- the tick

    def tick(self) -> tuple[Instruction, ...]:
        """Observe, decide, enact, publish."""
        snapshot = self._observe()
        decision = decide(snapshot)
        self._enact(decision)
        self._publish()
        return decision.instructions

    def _observe(self) -> Snapshot:
        """How things stand, once for the whole decision."""
        self._notice_own_gap()
        memory, clock, run = self.memory, self.clock, self.memory.run
        running = memory.phase is Phase.RUNNING
        views = self.observer.views()
        return Snapshot(
            phase=memory.phase,
            layout=memory.layout,
            nodes=tuple(views.values()),
            assignments=tuple(memory.assignments.values()),
            wanted_nodes=run.nodes,
            replace=run.replace,
            delivered=memory.delivered(),
            goal=memory.goal,
            waited_s=clock.waited_s,
            detector=self._detector,
            scheme=run.scheme,
            reaction=run.reaction,
            left_s=self._left_s() if running else None,
            age_s=clock.age_s,
            at=clock.wall(),
            throttles=run.primaries_first and not run.fast,
            config=run.config,
            controller=Settings.of(run.config.controller, memory.topology.costs),
            measured=self.observer.measured(views) if running else {},
            ended=self.observer.predictions.take_ended(),
            memory=memory.decisions,
        )

    def _enact(self, decision: Decision) -> None:
        for instruction in decision.instructions:
            self._enactor.enact(instruction)
        self.memory.remember(decision.memory)

    def _publish(self) -> None:
        """Tells new nodes what they need, writes down what has changed, and saves counters once a second."""
        self._greet()
        self.observer.note_changes()
        if self.clock.now() - self._saved > SAVE_EVERY_S:
            self._saved = self.clock.now()
            self.memory.store.keep(self._enactor.books())

    def _notice_own_gap(self) -> None:
        """The manager's own pauses count against nobody."""
        away_s = self.clock.notice_gap(self._detector.missed_s)
        if away_s > TELL_GAP_S:
            logger.warning("the manager was away for %.2f s", away_s)
        if away_s > 0:
            self.observer.members.forgive(away_s, self.clock.now())

    def _left_s(self) -> float | None:
        if self._finishing:
            return 0.0
        for_s = self.memory.run.for_s
        return None if for_s is None else for_s - self.clock.age_s

    def _greet(self) -> None:
        """Tells nodes what they need to host replicas, once the topology is known."""
        memory = self.memory
        if memory.phase is not Phase.RUNNING or memory.rhythm is None:
            return
        for connection in self.observer.members.connections.values():
            if connection.send is not None and connection.beat.ready and not connection.begun:
                age_s = self.clock.rhythm_age_s
                connection.send(Begin(operators=memory.operators, rhythm=memory.rhythm, age_s=age_s))
                if memory.goal is not None:
                    connection.send(Goal(epochs=memory.goal))
                connection.begun = True

    # -- what people ask for

    def switch(self, slice_id: SliceId, scheme: Scheme) -> None:
        """Protects a slice by another scheme, from the next decision on; raises InvalidInput if it cannot have it."""
        check_switch(slice_id, scheme, self.memory.layout, self.memory.assignments)
        self.memory.remember(self.memory.decisions.requested(slice_id, scheme))

    def drain(self, node: str, undo: bool = False) -> int:
        """Marks a node: nothing new comes to it, and what it hosts moves away. Returns the event's number."""
        connection, hello = self.observer.members.introduced(node)
        self.memory.drain(hello, undo)
        connection.draining = not undo
        return self.journal.note(DrainAsked(node=node, undo=undo))

    def note_fault(self, spec: str, target: str, at: float) -> int:
        """Somebody caused a fault, at a time of day. Returns the event's number."""
        return self.journal.note(FaultInjected(spec=spec, target=target, at=at))

    def finish(self) -> None:
        """No new epochs are cut; what was cut is delivered, and the run is over."""
        self._finishing = True

    def fail(self, failure: Failure) -> None:
        """Ends the run with a reason."""
        self._enactor.fail(failure)

    def shut_down(self) -> None:
        """Ends all nodes; the run can be resumed."""
        self.memory.store.keep(self._enactor.books())
        self.observer.members.broadcast(Shutdown())

    # -- what people look at most; `view` has the rest

    @property
    def run(self) -> RunSpec:
        return self.memory.run

    def state(self) -> RunState:
        return self.view.state()

    def report(self) -> Report:
        return self.view.report()

    def events(self, after: int = 0, limit: int | None = None) -> list[Event]:
        return self.view.events(after, limit)
