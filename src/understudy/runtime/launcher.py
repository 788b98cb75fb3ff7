"""Runs a topology on this machine: a manager, nodes, and the faults that were asked for."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType

from understudy.control.cluster.replacement import may_replace
from understudy.errors import InvalidInput, Unavailable
from understudy.model.faults import MANAGER, Fault, FaultKind, domain_name
from understudy.model.layout import Kind
from understudy.model.report import Report
from understudy.model.run import RunSpec
from understudy.model.snapshot import Phase
from understudy.model.view import RunState
from understudy.runtime import faults
from understudy.runtime.client import Client
from understudy.runtime.faults import LastingFaults
from understudy.runtime.home import Home
from understudy.runtime.journal import trim_outputs
from understudy.runtime.manager_restarts import Measure, Vigil
from understudy.runtime.node_commands import NodeCommands
from understudy.runtime.prepare import check_switches
from understudy.runtime.processes import Child, spawn

POLL_S = 0.05
TRIM_EVERY_S = 10.0


@dataclass
class Launcher:
    """`with Launcher(…) as launcher: report = launcher.run()`. Whatever was started is ended on the way out."""

    home: Home
    spec: RunSpec
    port: int
    script: Sequence[Fault] = ()
    host: str = "127.0.0.1"
    watch: Callable[[RunState], None] = lambda _: None
    tell: Callable[[str], None] = lambda _: None
    _nodes: dict[str, Child] = field(default_factory=dict, init=False)
    _domains: dict[str, str] = field(default_factory=dict, init=False)
    """Of every node that was started, if the run has domains."""
    _manager: Child | None = field(default=None, init=False)
    _pending: list[Fault] = field(default_factory=list, init=False)
    _lasting: LastingFaults = field(default_factory=LastingFaults, init=False)
    _vanished: dict[str, Child] = field(default_factory=dict, init=False)
    """Nodes that stand still for ever, until they are given up."""
    _unsaid: list[tuple[Fault, float]] = field(default_factory=list, init=False)
    _started: int = field(default=0, init=False)
    _grown: int = field(default=0, init=False)
    """Nodes that were started because the run asked for them."""
    _local_grown: int = field(default=0, init=False)
    _commands: NodeCommands | None = field(default=None, init=False)
    _missing_since: float = field(default=0.0, init=False)
    _interrupted: bool = field(default=False, init=False)
    _swept: tuple[object, ...] = field(default=(), init=False)
    begun: bool = field(default=False, init=False)
    """Whether data has flowed: what fails before is a mistake in the application."""
    _trim_at: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._vigil = Vigil(time.monotonic(), self.spec.config.manager)
        self._pending = list(self.script)
        self.port = self.port or free_port()
        self._client = Client(self.url, self.home.token())
        if self.spec.config.scaling.start_command:
            self._commands = NodeCommands(self.spec.config.scaling, self.url, self.home.token(), self.tell)

    @property
    def url(self) -> str:
        return f"http://{reachable(self.host)}:{self.port}"

    def __enter__(self) -> Launcher:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._end_all()

    def run(self) -> Report:
        """Until the run is over; the report says how it went."""
        self._start_manager()
        for _ in range(self.spec.nodes):
            self._start_node()
        for _ in range(self.spec.config.cluster.standby_nodes):
            self._start_node("--standby")
        while True:
            if self._interrupted:
                raise KeyboardInterrupt
            state = self._client.state()
            if state is not None:
                self.watch(state)
                self._note_begin(state)
                if state.phase.over:
                    break
                self._bury(state)
                self._act(state)
            # Also while a frozen manager does not answer.
            self._lasting.release(time.monotonic())
            self._keep_alive(state)
            self._keep_short()
            time.sleep(POLL_S)
        report = self._client.report()
        if report is None:
            raise Unavailable("the manager ended before its report", why="it does not answer", fix="use --resume")
        return report

    def _note_begin(self, state: RunState) -> None:
        if self.begun or state.phase is not Phase.RUNNING:
            return
        self.begun = True
        # Which operators share a query, and so which slices there are, is known only now.
        slices = [one.slice for one in state.slices if one.kind == Kind.OPERATOR]
        if slices:
            check_switches(self._pending, slices)

    def inject(self, spec: str, length_s: float = 0.0) -> None:
        """Causes a fault, a switch or a move at the next moment, as a script of tests or a person does in between."""
        self._pending.append(Fault.parse(f"{spec}@0s" + (f"+{length_s:.3f}s" if length_s else "")))

    def interrupt(self) -> None:
        """Ends `run` at its next turn, as Ctrl-C does; raised wherever a signal hits, it may be lost on the way."""
        self._interrupted = True

    def finish(self) -> bool:
        """Lets the run come to its end: what was cut is delivered."""
        return self._client.finish()

    def stop(self) -> Report | None:
        """Ends a run that goes on; it can be resumed."""
        report = self._client.report()
        self._client.stop()
        return report

    def _act(self, state: RunState) -> None:
        """What the state asks for: new nodes, and faults whose moment has come."""
        now = time.monotonic()
        self._follow_work(state)
        running = sum(child.alive for child in self._nodes.values())
        if len(self._nodes) - self._local_grown >= self.spec.config.cluster.all_nodes + state.replacements:
            self._missing_since = now
        elif may_replace(state, now - self._missing_since, running, self.spec.config.cluster):
            # A run that is as fast as it can be would leave a polite node nothing.
            self._start_node(*([] if self.spec.fast else ["--polite"]))
        for fault in [f for f in self._pending if f.due(state.elapsed_s, state.epoch_of(f.target))]:
            if state.goal is None or state.epoch < state.goal:
                self._pending.remove(fault)
                self._ask(fault) if fault.kind in (FaultKind.SWITCH, FaultKind.MOVE) else self._cause(fault)
        self._unsaid = [(f, at) for f, at in self._unsaid if not self._client.note_fault(f.spec, f.target, at)]

    def _follow_work(self, state: RunState) -> None:
        """Starts the nodes that the run has asked for because of its work, here or by a command."""
        while self._grown < state.grown:
            self._grown += 1
            if self._commands is not None:
                self._started += 1
                self._commands.start(f"node-{self._started}")
            else:
                self._local_grown += 1
                self._start_node(*([] if self.spec.fast else ["--polite"]))
        if self._commands is not None:
            self._commands.look({node.name for node in state.nodes}, time.monotonic())

    def _ask(self, fault: Fault) -> None:
        """A switch or a move."""
        ask = self._client.move if fault.kind is FaultKind.MOVE else self._client.switch
        refused = ask(fault.target, fault.node or fault.scheme or "")
        if refused is not None:
            raise InvalidInput(f"--fault {fault.spec}", why=refused, fix="correct the line, or leave it out")

    def _cause(self, fault: Fault) -> None:
        victims = self._victims(fault)
        pids = [child.process.pid for child in victims]
        at, now = time.time(), time.monotonic()
        if fault.kind is FaultKind.KILL:
            faults.kill_all(pids, jvm=fault.jvm)
            for child in victims if not fault.jvm else ():
                child.process.wait()
                faults.wipe(self.home.node(child.name))
        elif fault.kind is FaultKind.VANISH:
            self._vanish(victims)
        elif fault.kind is FaultKind.STARVE:
            for pid in pids:
                self._lasting.starve(pid, now, fault.length_s)
        else:
            for pid in pids:
                self._lasting.freeze(pid, now, fault.length_s, jvm=fault.jvm)
        self._unsaid.append((fault, at))
        self.tell(f"fault injected: {fault.spec}")

    def _vanish(self, victims: Sequence[Child]) -> None:
        """As a host does that loses power and network at once: it is silent from here on, but no connection is closed,
        as the system would for a process that is killed."""
        for child in victims:
            faults.freeze(child.process.pid)
        for child in victims:
            self._vanished[child.name] = child
            if child.name != MANAGER:
                faults.wipe(self.home.node(child.name))

    def _bury(self, state: RunState) -> None:
        """Ends what is left of vanished nodes, once they are given up and nobody listens any more."""
        for name in [name for name in self._vanished if name in state.lost]:
            self._vanished.pop(name).kill()

    def _victims(self, fault: Fault) -> list[Child]:
        """The manager, a node, or all nodes of a domain, as far as they run."""
        found = [child for name, child in self._nodes.items() if fault.target in (name, self._domains.get(name))]
        if fault.target == MANAGER and self._manager is not None:
            found = [self._manager]
        alive = [child for child in found if child.alive]
        if not alive:
            known = [*self._nodes, *dict.fromkeys(self._domains.values())]
            raise InvalidInput(
                f"--fault {fault.spec}: {fault.target} is not running",
                why=f"this run has {', '.join(known)}",
                fix="name one of them, or leave the fault out",
            )
        return alive

    def _keep_alive(self, state: RunState | None) -> None:
        """Brings a dead or hung manager back; gives up if a process cannot even start, or if nobody is left to work."""
        if self._manager is not None:
            self._keep_manager(self._manager, answers=state is not None)
        self._sweep(state)
        begun = state is not None and state.phase is Phase.RUNNING
        for child in self._nodes.values():
            if not begun and not child.alive and child.process.returncode > 0:
                raise Unavailable(f"{child.name} could not start", why=child.tail(), fix="see the lines above")
        joined = state is not None and any(node.connected for node in state.nodes)
        if not self.spec.replace and not joined and not any(child.alive for child in self._nodes.values()):
            raise Unavailable(
                "no node is left",
                why="all of them have ended",
                fix="go on with --resume; with --replace, lost nodes are replaced",
            )

    def _keep_manager(self, manager: Child, *, answers: bool) -> None:
        measure = self._vigil.judge(time.monotonic(), exit_code=manager.process.poll(), answers=answers)
        if measure is Measure.KEEP:
            return
        if manager.alive:
            self.tell("the manager hangs and is replaced")
            manager.kill()
        if measure is Measure.GIVE_UP:
            what = "the manager fails again and again" if self._vigil.ever_answered else "the manager could not start"
            raise Unavailable(
                what,
                why=manager.tail() or "it said nothing",
                fix="see the lines above, then continue with --resume; nothing that was published is lost",
            )
        self._start_manager()

    def _sweep(self, state: RunState | None) -> None:
        """Whenever a process or a node is gone: a node that dies leaves its directory behind."""
        dead = tuple(name for name, child in self._nodes.items() if not child.alive)
        seen = (dead, state.lost if state is not None else None)
        if seen != self._swept:
            self._swept = seen
            self.home.sweep_nodes()

    def _keep_short(self) -> None:
        """Looks now and then whether the output of a process has become too long."""
        if time.monotonic() >= self._trim_at:
            self._trim_at = time.monotonic() + TRIM_EVERY_S
            trim_outputs(self.home.logs.glob("*.log"), self.spec.config.retention.output_bytes)

    def _start_manager(self) -> None:
        arguments = [str(self.home.path), str(self.port), "--host", self.host]
        self.home.announce(self.url)
        self._manager = spawn(MANAGER, "understudy.runtime.serve", arguments, self.home.logs / "manager.log", {})
        self._vigil.started(time.monotonic())

    def _start_node(self, *options: str) -> None:
        self._started += 1
        name = f"node-{self._started}"
        shutil.rmtree(self.home.node(name), ignore_errors=True)
        url = f"ws://{reachable(self.host)}:{self.port}/nodes"
        arguments = [url, name, "--master", self.spec.master, "--child", *options]
        if self.spec.domains:
            self._domains[name] = domain_name((self._started - 1) % self.spec.domains)
            arguments += ["--domain", self._domains[name]]
        token = {"UNDERSTUDY_TOKEN": self.home.token()}
        self._nodes[name] = spawn(name, "understudy.runtime.node", arguments, self.home.logs / f"{name}.log", token)

    def _end_all(self) -> None:
        self._lasting.release_all()
        for child in self._vanished.values():
            child.kill()
        if self._manager is not None and self._manager.alive:
            self._client.stop()
        if self._commands is not None:
            self._commands.stop_all()
        deadline = time.monotonic() + self.spec.config.cluster.stop_s
        for child in self._nodes.values():
            child.end(max(0.1, deadline - time.monotonic()))
        if self._manager is not None:
            self._manager.kill()
        (self.home.path / "address").unlink(missing_ok=True)
        self._client.close()
        # Only what was shipped counts from here on.
        shutil.rmtree(self.home.nodes, ignore_errors=True)


def reachable(host: str) -> str:
    """How a process of this machine calls a manager that listens at this address; 0.0.0.0 and :: are all of them."""
    known = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{known}]" if ":" in known else known


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
