"""The manager: observes nodes, decides, carries it out, saves. Start reading at `Manager.tick`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from understudy.control.cluster.balance import Step
from understudy.control.cluster.decide import decide
from understudy.control.cluster.detector import Detector
from understudy.control.cluster.instructions import AdoptPlan, Decision, Instruction, ShipCheckpoint
from understudy.control.cluster.planned import check_plan, remembered, sentence
from understudy.control.cluster.rebalancing import plan_steps, requested
from understudy.control.cluster.requests import check_move, check_switch, shipping
from understudy.control.cluster.snapshot import Snapshot
from understudy.control.schemes.objectives import Settings
from understudy.coordination.interface import StateStore
from understudy.model.events import Event, FaultInjected, ManagerStarted, NodeJoined
from understudy.model.messages import Begin, Checked, Failure, Goal, Goodbye, Heartbeat, Hello, Shutdown, Welcome
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme
from understudy.model.replication import ReplicaPlan
from understudy.model.report import Report
from understudy.model.run import RunSpec
from understudy.model.snapshot import Assignment, Move, Phase
from understudy.model.topology import Topology
from understudy.model.view import RunState
from understudy.runtime.clock import RunClock
from understudy.runtime.enactor import Enactor
from understudy.runtime.journal import Journal, LineFile, Lines
from understudy.runtime.members import Send
from understudy.runtime.memory import RunMemory
from understudy.runtime.observer import Observer
from understudy.runtime.opening import Opening
from understudy.runtime.plans import Beside, Plans, in_thread
from understudy.runtime.run_view import RunView

logger = logging.getLogger(__name__)

SAVE_EVERY_S = 1.0
TELL_GAP_S = 1.0


class Manager:
    """A loop around a memory, a journal and an observer. Called from one thread.

    Time is passed in: `clock` for intervals, `wall` for what is written down. `beside` runs what takes too long for the
    loop. `lines` takes the journal, by default a file in the home directory. `view` is what people and programs read.
    """

    def __init__(
        self,
        home: Path,
        topology: Topology,
        store: StateStore,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        beside: Beside = in_thread,
        lines: Lines | None = None,
    ) -> None:
        self._home = home
        self.memory = memory = RunMemory(store, topology, wall)
        config = memory.run.config
        file = LineFile(home / "events.jsonl", config.retention.journal_bytes)
        self.journal = Journal(store, file if lines is None else lines, wall)
        delivered = min(memory.delivered().values(), default=0)
        self.clock = RunClock(clock, wall, memory.rhythm, delivered, store.fact("running_since"))
        self._detector = Detector(config.detector)
        self.observer = Observer(memory, self.journal, self.clock, self._detector)
        self._plans = Plans(memory, self.clock, beside)
        self._enactor = Enactor(
            memory, self.journal, self.observer, self.clock, self._detector, fidelity=self._plans.predicted
        )
        self._opening = Opening(memory, self.journal, self._enactor, self.clock)
        self.view = RunView(home, memory, self.observer, self.clock, self._plans)
        self._controller = Settings.of(config.controller, topology.costs)
        self._tentative_sinks = frozenset(sink.name for sink in topology.sinks if sink.takes_tentative)
        self._finishing = False
        self._saved = clock()
        if memory.phase is Phase.RUNNING:
            # A slice of a lost domain that waits for its turn is still assigned to the node it was lost with.
            awaited = {name for assignment in memory.assignments.values() for name in _awaited(assignment)}
            hosts = sorted(awaited - memory.lost.keys())
            self.observer.members.expect(hosts, clock() + config.manager.grace_s)
        self.journal.note(ManagerStarted(phase=memory.phase))
        self._opening.refuse_changes()

    # -- hearing nodes

    def refuses(self, hello: Hello) -> Failure | None:
        """Why a node may not join, None if it may."""
        return self.observer.members.refuses(hello)

    def connect(self, hello: Hello, send: Send) -> None:
        memory, now, age_s = self.memory, self.clock.now(), self.clock.age_s
        leaves_at = memory.leaves_at(hello)
        ends_at = None if leaves_at is None else now + leaves_at - age_s
        self.observer.members.connect(hello, send, now, draining=memory.is_draining(hello), leaves_at=ends_at)
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
                for replica in message.replicas:
                    self._plans.hear(replica)
                if message.leaves_s is not None and connection.leaves_at is None:
                    self.drain(name, within_s=message.leaves_s)
        return True

    # -- the tick

    def tick(self) -> tuple[Instruction, ...]:
        """Observe, decide, enact, then greet new nodes and save."""
        snapshot = self._observe()
        decision = decide(snapshot)
        self._enact(decision)
        self._greet_and_save(snapshot)
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
            wanted_nodes=run.config.cluster.all_nodes,
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
            controller=self._controller,
            measured=self.observer.measured(views) if running else {},
            loads=self.observer.predictions.loads(),
            busy_cores=self.observer.cores.busy(),
            ended=self.observer.predictions.take_ended(),
            memory=memory.decisions,
            planned=self._plans.budget is not None,
            proposal=self._plans.turn() if running else None,
            lost_together=memory.lost_together,
            tentative_s=memory.topology.tentative_s,
            tentative_sinks=self._tentative_sinks,
            first_epoch=memory.rhythm.epoch if memory.rhythm else 0,
            branch=memory.branch,
            last_branch=memory.last_branch,
        )

    def _enact(self, decision: Decision) -> None:
        for instruction in decision.instructions:
            self._enactor.enact(instruction)
        self.memory.remember(decision.memory)

    def _greet_and_save(self, snapshot: Snapshot) -> None:
        """Tells new nodes what they need, writes down what has changed, and saves counters once a second."""
        self._greet()
        self.observer.note_changes(snapshot.by_name)
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

    def apply_plan(self, slices: Sequence[SliceId], budget: int, algorithm: str) -> ReplicaPlan:
        """Lets other slices have working secondaries, from the next decision on; raises InvalidInput if it cannot.

        The plan is adapted to the rates later, under the same budget.
        """
        layout = check_plan(slices, budget, self.memory.layout)
        proposal = self._plans.proposed(tuple(slices), budget, layout)
        update = {"fixed": False, "algorithm": algorithm, "age_s": self.clock.age_s}
        plan = proposal.plan.model_copy(update=update)
        proposal = proposal.model_copy(update={"plan": plan})
        adopted = AdoptPlan(proposal, sentence(proposal))
        self._enactor.enact(adopted)
        self.memory.remember(remembered(self.memory.decisions, adopted))
        return plan

    def move(self, slice_id: SliceId, node: str, legacy: bool = False) -> None:
        """Lets a slice go to another node, from the next decision on; raises InvalidInput if it cannot.

        `legacy`: it is stopped first, for comparison.
        """
        wanted = Move(node, legacy=legacy)
        check_move(slice_id, wanted, self.memory.layout, self.memory.assignments, self.observer.views())
        self.memory.remember(self.memory.decisions.asked_to_move(slice_id, wanted))

    def checkpoint(self, slices: Sequence[SliceId] = ()) -> dict[SliceId, int]:
        """Lets slices, or all of them, ship what they have now. Returns the newest epoch each was heard to have done.

        Raises InvalidInput if one of them cannot.
        """
        views = self.observer.views()
        found = shipping(slices, self.memory.layout, self.memory.assignments, views)
        for slice_id, (node, primary) in found.items():
            self._enactor.enact(ShipCheckpoint(node, slice_id, primary.generation, "somebody asked for it"))
        return {slice_id: primary.epoch for slice_id, (_, primary) in found.items()}

    def rebalance(self, dry_run: bool = False) -> list[Step]:
        """Lets replicas go elsewhere for an even load, one at a time from the next decision on.

        Returns the steps as they look now. The decision looks again before each, because loads change; it begins no
        more than these. `dry_run`: nothing is begun. Raises InvalidInput before data flows.
        """
        memory, config = self.memory, self.memory.run.config
        loads = self.observer.predictions.loads()
        steps = plan_steps(memory.assignments.values(), self.observer.views(), memory.layout, loads, config)
        if not dry_run and steps:
            memory.remember(requested(memory.decisions, len(steps)))
        return steps

    def drain(self, node: str, undo: bool = False, within_s: float | None = None) -> int:
        """Marks a node: nothing new comes to it, and what it hosts moves away. Returns the event's number.

        `within_s`: the node is given notice. What has not moved by then is handed over by its scheme, and the node
        ends as soon as it is empty.
        """
        return self._enactor.drain(node, undo, within_s)

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


def _awaited(assignment: Assignment) -> Iterator[str]:
    """Nodes that a slice needs: a restarted manager waits for them."""
    yield assignment.node
    if assignment.moving is not None:
        yield assignment.moving.node
