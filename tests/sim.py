"""A cluster in memory: a real manager, and nodes that obey it, work, die, freeze and come back. Time is a number."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.builders import word_count, word_count_layout
from understudy.control.cluster.instructions import Assign, Instruction
from understudy.control.cluster.secondaries import effective
from understudy.control.replica.retention import acknowledgeable, kept
from understudy.control.schemes.switching import next_step
from understudy.coordination.sqlite import SqliteStore
from understudy.errors import InvalidInput
from understudy.model.capabilities import ALL, ROWS, Capability
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
    Receipt,
    ReplicaStatus,
    State,
    Steps,
    Stop,
    Stored,
    Welcome,
)
from understudy.model.names import SliceId
from understudy.model.recovery import Recovery, Scheme
from understudy.model.run import RunSpec
from understudy.model.topology import Topology
from understudy.runtime.manager import Manager

BEAT_S = 0.1
SHIP_EVERY = 3
OPERATORS = {name: Analysis(stateful=name == "counts", output="{}") for name in ("words", "counts")}


@dataclass
class Bags:
    """The log and the shipped checkpoints: all that nodes share. Bags are trimmed and checkpoints recycled as for real,
    so whoever goes back too far finds its input gone."""

    layout: Layout
    there: dict[SliceId, set[int]] = field(default_factory=dict)
    damaged: set[tuple[SliceId, int]] = field(default_factory=set)
    shipped: dict[SliceId, list[int]] = field(default_factory=dict)
    """Newest first."""
    acks: dict[tuple[SliceId, SliceId], int] = field(default_factory=dict)

    def has(self, slice_id: SliceId, epoch: int) -> bool:
        return epoch in self.there.get(slice_id, ())

    def newest(self, slice_id: SliceId) -> int:
        return max(self.there.get(slice_id, ()), default=-1)

    def first_missing(self, slice_id: SliceId) -> int:
        first = min(self.there.get(slice_id, ()), default=0)
        return next(n for n in range(first, 10**6) if not self.has(slice_id, n))

    def newest_shipped(self, slice_id: SliceId, before: float = math.inf) -> int:
        return max((epoch for epoch in self.shipped.get(slice_id, ()) if epoch < before), default=-1)

    def put(self, slice_id: SliceId, epoch: int) -> bool:
        """False if the bag was there; one that is damaged stays as it is, because only its header is looked at."""
        first = not self.has(slice_id, epoch)
        self.there.setdefault(slice_id, set()).add(epoch)
        return first

    def ship(self, slice_id: SliceId, epoch: int, *, primary: bool) -> None:
        """Ships, acknowledges and recycles, in this order."""
        released = self.released(slice_id)
        if epoch > self.newest_shipped(slice_id):
            self.shipped[slice_id] = [epoch, *self.shipped.get(slice_id, ())]
        shipped = self.shipped[slice_id]
        if primary:
            self.acknowledge(slice_id, min(epoch, acknowledgeable(shipped, released)))
        keep = kept(shipped, released)
        self.shipped[slice_id] = [one for n, one in enumerate(shipped) if n in keep]

    def released(self, slice_id: SliceId) -> int:
        readers = self.layout.readers(slice_id)
        return min((self.acks.get((reader, slice_id), -1) for reader in readers), default=-1)

    def acknowledge(self, reader: SliceId, epoch: int) -> None:
        for channel in self.layout.channels(reader):
            key = (reader, channel.upstream)
            self.acks[key] = max(epoch, self.acks.get(key, -1))

    def trim(self, slice_id: SliceId) -> None:
        newest, released = self.newest(slice_id), self.released(slice_id)
        there = self.there.get(slice_id, set())
        self.there[slice_id] = {epoch for epoch in there if epoch > released or epoch == newest}
        self.damaged = {(one, e) for one, e in self.damaged if self.has(one, e)}

    def gone(self, reader: SliceId, epoch: int) -> bool:
        """Whether the reader has given this epoch of its input away."""
        channels = self.layout.channels(reader)
        return any(
            self.acks.get((reader, c.upstream), -1) >= epoch and not self.has(c.upstream, epoch) for c in channels
        )

    def set_aside(self, slice_id: SliceId, first: int, last: int) -> None:
        """Takes the damaged bags of some epochs away."""
        away = {(one, epoch) for one, epoch in self.damaged if one == slice_id and first <= epoch <= last}
        self.there[slice_id] = {e for e in self.there.get(slice_id, set()) if (slice_id, e) not in away}
        self.damaged -= away

    def damage_of(self, reader: SliceId) -> tuple[tuple[str, int], ...]:
        """Every damaged bag that a slice may still need."""
        upstream = {channel.upstream for channel in self.layout.channels(reader)}
        found = [(e, str(one)) for one, e in self.damaged if one in upstream and e > self.acks.get((reader, one), -1)]
        return tuple((name, epoch) for epoch, name in sorted(found))


@dataclass
class Hosted:
    deploy: Deploy
    next: int
    status: ReplicaStatus
    receipts: list[Receipt] = field(default_factory=list)
    spool: set[int] = field(default_factory=set)
    began: float = 0.0
    stood_by: bool = False
    known: int = -1
    """The newest epoch that was made before it came: only what is newer shows that the slice is back."""

    @property
    def slice(self) -> SliceId:
        return SliceId.parse(self.deploy.slice)

    def change(self, **changes: Any) -> None:
        self.status = self.status.model_copy(update=changes)


@dataclass
class Node:
    name: str
    cluster: Cluster
    inbox: list[Any] = field(default_factory=list)
    replicas: dict[SliceId, Hosted] = field(default_factory=dict)
    send: Callable[[Any], None] | None = None
    goal: float = math.inf
    begun: bool = False
    ready: bool = False
    frozen: bool = False
    jvm_frozen_at: float | None = None
    reachable: bool = True
    pace: int = 1
    """Its operators work in every so many steps; its heartbeats are not affected."""
    burst: int = 1
    """So many epochs they make in such a step, if there is input; sinks do so in every step."""

    def connect(self) -> None:
        self.send = lambda message: self.inbox.append(message)
        self.cluster.manager.connect(Hello(node=self.name, token="", pid=1), self.send)

    def disconnect(self) -> None:
        if self.send is not None:
            self.cluster.manager.disconnect(self.name, self.send)
            self.send = None

    def step(self) -> None:
        if self.frozen:
            return
        if self.send is None and self.reachable and self.jvm_frozen_at is None:
            self.inbox.clear()
            self.connect()
        while self.inbox:
            self._obey(self.inbox.pop(0))
        for slice_id, hosted in list(self.replicas.items()):
            for _ in range(self._epochs_now(slice_id)):
                if hosted.status.state is not State.FAILED:
                    self._work(slice_id, hosted)
            hosted.change(behind=self._behind(slice_id, hosted))
        if self.send is not None:
            receipts = tuple(r for hosted in self.replicas.values() for r in hosted.receipts)
            for hosted in self.replicas.values():
                hosted.change(up_s=self.cluster.now - hosted.began)
            statuses = tuple(hosted.status for hosted in self.replicas.values())
            silent_s = 0.0 if self.jvm_frozen_at is None else self.cluster.now - self.jvm_frozen_at
            beat = Heartbeat(ready=self.ready, replicas=statuses, receipts=receipts, jvm_silent_s=silent_s)
            if not self.cluster.manager.hear(self.name, beat):
                self.send = None

    def _epochs_now(self, slice_id: SliceId) -> int:
        kind = self.cluster.layout[slice_id.operator].kind
        if kind is not Kind.OPERATOR:
            return 1 if kind is Kind.SOURCE else self.burst
        works = self.jvm_frozen_at is None and self.cluster.steps_done % self.pace == 0
        return self.burst if works else 0

    def _behind(self, slice_id: SliceId, hosted: Hosted) -> int:
        bags, channels = self.cluster.bags, self.cluster.layout.channels(slice_id)
        newest = min((bags.newest(channel.upstream) for channel in channels), default=-1)
        works = hosted.deploy.ships and self.cluster.layout[slice_id.operator].kind is Kind.OPERATOR
        return max(0, newest + 1 - hosted.next) if works else 0

    def _obey(self, message: Any) -> None:
        match message:
            case Welcome():
                self.ready = True
            case Check():
                self.cluster.manager.hear(self.name, Checked(operators=OPERATORS))
            case Begin():
                self.begun = True
            case Goal():
                self.goal = message.epochs
            case Deploy():
                self._deploy(message)
            case Stop():
                self._stop(message)
            case Stored():
                for slice_id, hosted in self.replicas.items():
                    if slice_id.operator == message.sink:
                        hosted.receipts = [r for r in hosted.receipts if r.epoch > message.epoch]
                        self.cluster.bags.acknowledge(slice_id, message.epoch)

    def _stop(self, stop: Stop) -> None:
        slice_id = SliceId.parse(stop.slice)
        current = self.replicas.get(slice_id)
        if current is not None and current.deploy.generation == stop.generation:
            del self.replicas[slice_id]

    def _deploy(self, deploy: Deploy) -> None:
        slice_id = SliceId.parse(deploy.slice)
        current = self.replicas.get(slice_id)
        if not self.begun or (current is not None and current.deploy.generation > deploy.generation):
            return
        if current is not None and current.deploy.generation == deploy.generation:
            self._adjust(current, deploy)
            return
        bags, kind = self.cluster.bags, self.cluster.layout[slice_id.operator].kind
        if deploy.rewind is not None:
            bags.set_aside(slice_id, deploy.rewind, deploy.rewind_to)
        first = deploy.resume_at
        if kind is Kind.SOURCE:
            first = max(bags.first_missing(slice_id), bags.released(slice_id) + 1)
            first = first if deploy.rewind is None else min(first, deploy.rewind)
        elif kind is Kind.OPERATOR:
            first = bags.newest_shipped(slice_id, math.inf if deploy.rewind is None else deploy.rewind) + 1
        status = ReplicaStatus(slice=deploy.slice, generation=deploy.generation)
        self.replicas[slice_id] = Hosted(deploy, first, status)
        self._adjust(self.replicas[slice_id], deploy)

    def _adjust(self, hosted: Hosted, deploy: Deploy) -> None:
        """One switch now, the others one by one while it works."""
        if deploy.primary and not (hosted.began and hosted.deploy.primary):
            hosted.began, hosted.known = self.cluster.now, self._known(deploy)
            hosted.change(steps=Steps())
        hosted.deploy = deploy
        hosted.stood_by |= not deploy.primary
        hosted.change(primary=deploy.primary, asked=deploy.capabilities, ship_every=deploy.ship_every)

    def _known(self, deploy: Deploy) -> int:
        slice_id = SliceId.parse(deploy.slice)
        is_sink = self.cluster.layout[slice_id.operator].kind is Kind.SINK
        return deploy.resume_at - 1 if is_sink else self.cluster.bags.newest(slice_id)

    def _turn(self, hosted: Hosted) -> None:
        step = next_step(hosted.status.capabilities, hosted.deploy.capabilities)
        if step is None:
            return
        if step.capability is Capability.PROCESSES and step.on and hosted.stood_by:
            shipped = self.cluster.bags.shipped.get(hosted.slice, ())
            hosted.next = max([hosted.next, *(e + 1 for e in shipped if e >= hosted.next)])
        if step.capability is Capability.SENDS and step.on:
            bags = self.cluster.bags
            for epoch in sorted(e for e in hosted.spool if e > bags.newest(hosted.slice)):
                bags.put(hosted.slice, epoch)
            hosted.spool.clear()
        hosted.change(capabilities=hosted.status.capabilities.turned(step.capability, step.on), state=State.RUNNING)

    def _read_back(self, hosted: Hosted) -> None:
        """Whoever was overtaken takes over the newer state."""
        bags, epoch = self.cluster.bags, hosted.next
        shipped = bags.newest_shipped(hosted.slice)
        if hosted.deploy.rewind is None and min(shipped, bags.newest(hosted.slice)) > epoch:
            hosted.next = shipped + 1
            hosted.change(epoch=shipped, read_back=hosted.status.read_back + shipped + 1 - epoch)

    def _work(self, slice_id: SliceId, hosted: Hosted) -> None:
        """One switch, and when all are turned one epoch, if its input is there."""
        self._turn(hosted)
        if slice_id in self.cluster.broken:
            hosted.change(state=State.FAILED, failure=self.cluster.broken[slice_id])
        elif (
            next_step(hosted.status.capabilities, hosted.deploy.capabilities) is None
            and hosted.status.capabilities.processes
        ):
            self._read_back(hosted)
            if hosted.next < self.goal and self._can_read(slice_id, hosted):
                self._make(slice_id, hosted)

    def _can_read(self, slice_id: SliceId, hosted: Hosted) -> bool:
        bags, epoch = self.cluster.bags, hosted.next
        upstream = [channel.upstream for channel in self.cluster.layout.channels(slice_id)]
        if bags.gone(slice_id, epoch):
            self._lost_input(hosted)
        elif all(bags.has(one, epoch) for one in upstream):
            if not any((one, epoch) in bags.damaged for one in upstream):
                return True
            hosted.change(state=State.FAILED, failure=failure(damaged=bags.damage_of(slice_id)))
        return False

    def _make(self, slice_id: SliceId, hosted: Hosted) -> None:
        epoch = hosted.next
        if self.cluster.layout[slice_id.operator].kind is Kind.SINK:
            self._deliver(slice_id.operator, hosted)
        elif not hosted.status.capabilities.sends:
            hosted.spool.add(epoch)
        else:
            self._publish(slice_id, hosted)
        hosted.next += 1
        steps = Steps(done=hosted.status.steps.done or epoch > hosted.known)
        hosted.change(state=State.RUNNING, epoch=max(epoch, hosted.status.epoch), steps=steps)

    def _deliver(self, sink: str, hosted: Hosted) -> None:
        epoch, written = hosted.next, self.cluster.written
        fresh = (sink, epoch) not in written
        written.add((sink, epoch))
        hosted.receipts.append(
            Receipt(sink=sink, epoch=epoch, rows=1, digest=f"{epoch}", at=self.cluster.now, fresh=fresh)
        )

    def _publish(self, slice_id: SliceId, hosted: Hosted) -> None:
        bags, epoch = self.cluster.bags, hosted.next
        hosted.change(first_bags=hosted.status.first_bags + bags.put(slice_id, epoch))
        every = SHIP_EVERY if hosted.deploy.primary else hosted.deploy.ship_every
        if hosted.deploy.ships and epoch % every == every - 1:
            if self.cluster.layout[slice_id.operator].kind is Kind.OPERATOR:
                bags.ship(slice_id, epoch, primary=hosted.deploy.primary)
            bags.trim(slice_id)

    def _lost_input(self, hosted: Hosted) -> None:
        """What it has given away is in a state that was shipped, or delivered; otherwise it can never go on."""
        bags = self.cluster.bags
        shipped = bags.newest_shipped(hosted.slice)
        if self.cluster.layout[hosted.slice.operator].kind is Kind.SINK:
            hosted.next = (
                max(bags.acks[hosted.slice, c.upstream] for c in self.cluster.layout.channels(hosted.slice)) + 1
            )
        elif hosted.deploy.rewind is None and shipped >= hosted.next:
            hosted.next = shipped + 1
        else:
            hosted.change(state=State.FAILED, failure=failure(final=True))


def failure(*, final: bool = False, damaged: tuple[tuple[str, int], ...] = ()) -> Failure:
    return Failure(what="it broke", why="the test wants it", fix="none", final=final, damaged=damaged)


class Cluster:
    def __init__(self, home: Path, nodes: int = 3, recovery: Recovery | None = None, **spec: Any) -> None:
        self.home, self.now = home, 1000.0
        self.wall_offset = 0.0
        self.topology: Topology = word_count(recovery=recovery)
        self.layout: Layout = word_count_layout()
        self.store = SqliteStore(Path(":memory:"))
        usual: dict[str, Any] = {"heartbeat_s": BEAT_S, "misses": 5}
        run = RunSpec.of("r", "app.py", nodes=nodes, **(usual | spec))
        self.store.keep({"run": run.model_dump(), "goal": run.epochs})
        self.bags = Bags(self.layout)
        self.written: set[tuple[str, int]] = set()
        self.broken: dict[SliceId, Failure] = {}
        self.generations: dict[SliceId, int] = {}
        self.started = self.steps_done = 0
        self.manager = self._manage()
        self.nodes: dict[str, Node] = {}
        for _ in range(nodes):
            self.start_node()

    def _manage(self) -> Manager:
        wall = lambda: self.now + self.wall_offset  # noqa: E731
        return Manager(self.home, self.topology, self.store, clock=lambda: self.now, wall=wall)

    # -- what can happen

    def start_node(self, name: str = "") -> Node:
        self.started += not name
        node = Node(name or f"node-{self.started}", self)
        self.nodes[node.name] = node
        return node

    def kill(self, name: str) -> None:
        self.nodes.pop(name).disconnect()

    def kill_jvm(self, name: str) -> None:
        """The node sees its JVM die, says so and ends."""
        self.manager.hear(name, Goodbye(why="its JVM was killed by SIGKILL"))
        self.kill(name)

    def freeze(self, name: str) -> None:
        self.nodes[name].frozen = True

    def freeze_jvm(self, name: str) -> None:
        """The Python process goes on: its sources and sinks work, its operators do not."""
        self.nodes[name].jvm_frozen_at = self.now

    def thaw(self, name: str) -> None:
        self.nodes[name].frozen, self.nodes[name].jvm_frozen_at = False, None

    def restart(self, name: str) -> None:
        """The process dies and comes back under its name, before anybody gave it up."""
        self.kill(name)
        self.start_node(name)

    def cut_off(self, name: str) -> None:
        """The network breaks; the node works on."""
        self.nodes[name].disconnect()
        self.nodes[name].reachable = False

    def heal(self) -> None:
        for node in self.nodes.values():
            node.frozen, node.jvm_frozen_at, node.reachable = False, None, True

    def restart_manager(self) -> None:
        for node in self.nodes.values():
            node.send = None
        self.manager = self._manage()

    def fail(self, slice_id: SliceId, **kind: Any) -> bool:
        """The newest replica of a slice fails."""
        hosted = [node.replicas[slice_id] for node in self.nodes.values() if slice_id in node.replicas]
        if not hosted:
            return False
        max(hosted, key=lambda h: h.deploy.generation).change(state=State.FAILED, failure=failure(**kind))
        return True

    def switch(self, slice_id: SliceId, scheme: Scheme) -> None:
        """Somebody asks for another scheme; refused before data flows."""
        with suppress(InvalidInput):
            self.manager.switch(slice_id, scheme)

    def damage(self, slice_id: SliceId, back: int = 0) -> None:
        """A bag goes bad, so many before the newest, if there is one."""
        there = sorted(self.bags.there.get(slice_id, ()), reverse=True)
        if there:
            self.bags.damaged.add((slice_id, there[min(back, len(there) - 1)]))

    def tear(self) -> int:
        """A power cut: every bag that is there is torn. Returns how many were."""
        self.bags.damaged |= {(one, epoch) for one, there in self.bags.there.items() for epoch in there}
        return len(self.bags.damaged)

    # -- time

    def step(self) -> tuple[Instruction, ...]:
        self.now += BEAT_S
        self.steps_done += 1
        for node in list(self.nodes.values()):
            node.step()
        instructions = self.manager.tick()
        self._check(instructions)
        return instructions

    def steps(self, seconds: float) -> None:
        for _ in range(round(seconds / BEAT_S)):
            self.step()

    def until(self, done: Callable[[], bool], seconds: float = 120.0) -> None:
        for _ in range(round(seconds / BEAT_S)):
            if done():
                return
            self.step()
        raise AssertionError(f"did not happen within {seconds} s; {self.manager.state()}")

    def until_quiet(self, ticks: int = 5, seconds: float = 120.0) -> None:
        """Until nothing is left to do, so many ticks in a row: a damaged bag is found when its reader comes to it."""
        idle = 0
        for _ in range(round(seconds / BEAT_S)):
            idle = 0 if self.step() else idle + 1
            if idle == ticks:
                return
        raise AssertionError(f"something was left to do for {seconds} s; {self.manager.state()}")

    def _check(self, instructions: tuple[Instruction, ...]) -> None:
        """What must hold at every tick."""
        known = {node.name for node in self.manager.state().nodes}
        assigned = [i.assignment for i in instructions if isinstance(i, Assign)]
        assert all(assignment.node in known for assignment in assigned), "assigned to a dead node"
        assert len({assignment.slice for assignment in assigned}) == len(assigned), "decided twice in one tick"
        for assignment in self.store.assignments():
            if assignment.secondary is not None:
                assert assignment.secondary.generation > assignment.generation, "a take-over would go back"
                assert assignment.secondary.node != assignment.node, "one failure would take both"
            before = self.generations.get(assignment.slice, 0)
            assert assignment.generation >= before, "a generation went down"
            self.generations[assignment.slice] = assignment.generation

    @property
    def delivered(self) -> int:
        return self.store.delivered("out")

    def hosts(self) -> dict[SliceId, list[tuple[str, int, State]]]:
        return {
            slice_id: [
                (node.name, node.replicas[slice_id].deploy.generation, node.replicas[slice_id].status.state)
                for node in self.nodes.values()
                if slice_id in node.replicas
            ]
            for slice_id in self.layout.slices
        }

    def settled(self) -> bool:
        """Every slice is hosted where it is assigned, primary and secondary, and by nobody else."""
        if self.manager.state().phase != "running":
            return False
        wanted: dict[SliceId, list[tuple[str, int, State]]] = {}
        for assignment in self.store.assignments():
            placed = [(assignment.node, assignment.generation)]
            if assignment.secondary is not None:
                placed.append((assignment.secondary.node, assignment.secondary.generation))
            wanted[assignment.slice] = sorted((node, generation, State.RUNNING) for node, generation in placed)
        return {s: sorted(h) for s, h in self.hosts().items()} == wanted and all(wanted.values()) and self.protected()

    def protected(self) -> bool:
        """Everybody does what their scheme asks for, as far as there are nodes for it."""
        alone = len(self.nodes) == 1
        for assignment in self.store.assignments():
            row = ALL if assignment.standing_in else ROWS[effective(assignment)]
            if assignment.secondary is None:
                if row.deployed and not alone:
                    return False
                continue
            node = self.nodes.get(assignment.secondary.node)
            if node is None or node.replicas[assignment.slice].status.capabilities != row:
                return False
        return True
