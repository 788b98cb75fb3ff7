"""A cluster in memory: the real manager, real agents and replicas, and everything that can happen to them.

Time is a number; `step` lets a heartbeat pass. One seed decides about chance: delays, torn files, non-determinism.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.simulated.log import SimLog
from tests.simulated.node import Node
from tests.simulated.query import Pace
from tests.simulated.scheduler import Scheduler
from tests.simulated.tokens import Oracle
from tests.simulated.topologies import word_count
from tests.simulated.world import TokenSink, World
from understudy.control.application.fusion import lay_out
from understudy.control.cluster.instructions import Assign, Instruction
from understudy.control.cluster.secondaries import effective
from understudy.coordination.sqlite import SqliteStore
from understudy.errors import InvalidInput
from understudy.model.capabilities import ALL, ROWS
from understudy.model.layout import Layout
from understudy.model.messages import Analysis, Failure, Goodbye, State
from understudy.model.names import SliceId
from understudy.model.recovery import Recovery, Scheme
from understudy.model.run import RunSpec
from understudy.model.topology import Topology
from understudy.runtime.manager import Manager

BEAT_S = 0.1
TICK_S = 0.1
OPERATORS = {name: Analysis(stateful=name == "counts", output="{}") for name in ("words", "counts")}
"""What a node finds out about the operators of the word count."""


def failure(*, final: bool = False, damaged: tuple[tuple[SliceId, int], ...] = ()) -> Failure:
    return Failure(what="it broke", why="the test wants it", fix="none", final=final, damaged=damaged)


class Broken(Exception):
    """What a replica fails with when a test wants it."""


class Cluster:
    """`pace` says how long queries take; `stateful` names the operators that keep state."""

    def __init__(
        self,
        home: Path,
        nodes: int = 3,
        recovery: Recovery | None = None,
        topology: Topology | None = None,
        stateful: tuple[str, ...] = ("counts",),
        pace: Pace | None = None,
        seed: int = 0,
        tick_s: float = TICK_S,
        **spec: Any,
    ) -> None:
        self.home, self.rng = home, random.Random(seed)
        self.scheduler = Scheduler()
        self.wall_offset = 0.0
        self.tick_s = tick_s
        self.delay_s = 0.002
        self.pace = pace or Pace()
        self.topology: Topology = topology or word_count(recovery)
        self.layout: Layout = lay_out(self.topology, {op.name: op.name in stateful for op in self.topology.operators})
        self.world = World(self.layout, self.rng, SimLog(self.scheduler))
        for sink in self.topology.sinks:
            assert isinstance(sink.sink, TokenSink)
            sink.sink.write_to(self.world)
        self.store = SqliteStore(Path(":memory:"))
        usual: dict[str, Any] = {"heartbeat_s": BEAT_S, "misses": 5}
        run = RunSpec.of("r", "app.py", nodes=nodes, **(usual | spec))
        self.store.keep({"run": run.model_dump(), "goal": run.epochs})
        self.generations: dict[SliceId, int] = {}
        self.started = 0
        self.manager_paused = False
        self.waiting: list[Callable[[], None]] = []
        """What arrived at the manager while it was paused."""
        self.broken: dict[SliceId, Failure] = {}
        self.last: tuple[Instruction, ...] = ()
        self.manager = self._manage()
        self.nodes: dict[str, Node] = {}
        for _ in range(nodes):
            self.start_node()

    @property
    def now(self) -> float:
        return self.scheduler.now

    @now.setter
    def now(self, time: float) -> None:
        """Only the manager's clock goes on: nobody else does anything meanwhile."""
        self.scheduler.now = time

    def wall(self) -> float:
        return self.now + self.wall_offset

    def _manage(self) -> Manager:
        return Manager(self.home, self.topology, self.store, clock=lambda: self.now, wall=self.wall)

    # -- what can happen to nodes

    def start_node(self, name: str = "") -> Node:
        self.started += not name
        node = Node(name or f"node-{self.started}", self, self.pace)
        self.nodes[node.name] = node
        return node

    def kill(self, name: str) -> None:
        self.nodes.pop(name).kill()

    def kill_jvm(self, name: str) -> None:
        """The node sees its JVM die, says so and ends."""
        self.manager.hear(name, Goodbye(why="its JVM was killed by SIGKILL"))
        self.kill(name)

    def freeze(self, name: str) -> None:
        self.nodes[name].freeze()

    def freeze_jvm(self, name: str) -> None:
        """The Python process goes on: its sources and sinks work, its operators do not."""
        self.nodes[name].freeze_jvm()

    def thaw(self, name: str) -> None:
        self.nodes[name].thaw()

    def restart(self, name: str) -> None:
        """The process dies and comes back under its name, before anybody gave it up."""
        self.kill(name)
        self.start_node(name)

    def cut_off(self, name: str) -> None:
        """The network breaks; the node works on."""
        self.nodes[name].disconnect()
        self.nodes[name].reachable = False

    def partition(self, name: str) -> None:
        """The network swallows everything; neither side learns of it."""
        self.nodes[name].reachable = False

    def heal(self) -> None:
        for node in self.nodes.values():
            node.thaw()
            if not node.reachable:
                node.disconnect()
            node.reachable = True

    # -- to the manager, to replicas, to disks

    def restart_manager(self) -> None:
        for node in self.nodes.values():
            node.forget_manager()
        self.manager = self._manage()

    def fail(self, slice_id: SliceId, **kind: Any) -> bool:
        """The newest replica of a slice fails."""
        hosted = [node.replicas[slice_id] for node in self.nodes.values() if slice_id in node.replicas]
        if not hosted:
            return False
        newest = max(hosted, key=lambda replica: replica.deploy.generation)
        newest.live.update(failure=failure(**kind))
        newest.give_up(Broken())
        return True

    def switch(self, slice_id: SliceId, scheme: Scheme) -> None:
        """Somebody asks for another scheme; refused before data flows."""
        with suppress(InvalidInput):
            self.manager.switch(slice_id, scheme)

    def damage(self, slice_id: SliceId, back: int = 0) -> None:
        """A bag goes bad, so many before the newest, if there is one."""
        self.world.log.damage(slice_id, back)

    def tear(self) -> int:
        """Every bag that is there is torn. Returns how many were."""
        return sum(self.world.log.tear(slice_id) for slice_id in self.layout.slices)

    def lose_power(self) -> None:
        """All processes end, and every disk forgets what was not synced. The manager's database survives."""
        names = sorted(self.nodes)
        for name in names:
            self.kill(name)
        self.world.log.lose_power(self.rng)
        self.manager = self._manage()
        for name in names:
            self.start_node(name)

    # -- time

    def step(self) -> tuple[Instruction, ...]:
        self.scheduler.run_until(self.now + self.tick_s)
        for slice_id in list(self.broken):
            self._break(slice_id)
        self.last = self.manager.tick()
        self._check(self.last)
        return self.last

    def _break(self, slice_id: SliceId) -> None:
        """Every replica of a slice fails, as long as a test wants it."""
        for node in self.nodes.values():
            replica = node.replicas.get(slice_id)
            if replica is not None and replica.live["state"] is not State.FAILED:
                replica.live.update(failure=self.broken[slice_id])
                replica.give_up(Broken())

    def steps(self, seconds: float) -> None:
        for _ in range(round(seconds / self.tick_s)):
            self.step()

    def until(self, done: Callable[[], bool], seconds: float = 120.0) -> None:
        for _ in range(round(seconds / self.tick_s)):
            if done():
                return
            self.step()
        raise AssertionError(f"did not happen within {seconds} s\n{self.story()}")

    def until_quiet(self, ticks: int = 5, seconds: float = 120.0) -> None:
        """Until nothing is left to do, so many ticks in a row: a damaged bag is found when its reader comes to it."""
        idle = 0
        for _ in range(round(seconds / self.tick_s)):
            idle = 0 if self.step() else idle + 1
            if idle == ticks:
                return
        raise AssertionError(f"something was left to do for {seconds} s\n{self.story()}")

    def story(self, newest: int = 25) -> str:
        """What happened lately, and how the slices stand."""
        events = [f"{event.at:9.2f} {event.text}" for event in self.store.newest_events(newest)]
        slices = [f"{one.slice} {one.state} at {one.epoch}: {one.reason or ''}" for one in self.manager.state().slices]
        return "\n".join([*events, *slices, str(self.last)])

    # -- what must hold

    def _check(self, instructions: tuple[Instruction, ...]) -> None:
        """At every tick."""
        assigned = [i.assignment for i in instructions if isinstance(i, Assign)]
        if not assigned:
            return
        known = {node.name for node in self.manager.state().nodes}
        assert all(assignment.node in known for assignment in assigned), "assigned to a dead node"
        assert len({assignment.slice for assignment in assigned}) == len(assigned), "decided twice in one tick"
        for assignment in assigned:
            if assignment.secondary is not None:
                assert assignment.secondary.generation > assignment.generation, "a take-over would go back"
                assert assignment.secondary.node != assignment.node, "one failure would take both"
            before = self.generations.get(assignment.slice, 0)
            assert assignment.generation >= before, "a generation went down"
            self.generations[assignment.slice] = assignment.generation

    def check_one_history(self) -> None:
        """No bag was published with two contents, whatever its operator does."""
        assert self.world.log.conflicts == [], f"published with two contents: {self.world.log.conflicts[:5]}"

    def pause_manager(self, seconds: float) -> None:
        """The manager is stopped for so long; nodes work on and their heartbeats wait."""
        self.manager_paused = True
        self.scheduler.run_until(self.now + seconds)
        self.manager_paused = False
        waiting, self.waiting = self.waiting, []
        for deliver in waiting:
            deliver()

    def check_output(self) -> None:
        """What was delivered is what a run without failures delivers, epoch by epoch, each once."""
        assert self.world.rewritten == [], "an epoch was offered to the outside with another content"
        deterministic = {v.name for v in self.layout.vertices if v.deterministic}
        conflicts = [one for one in self.world.log.conflicts if one[0].operator in deterministic]
        assert conflicts == [], "a bag was published with two contents"
        epochs = max((max(found, default=-1) + 1 for found in self.world.written.values()), default=0)
        for sink, expected in Oracle(self.layout, self.world.log.first_cuts).delivered(epochs).items():
            written = self.world.written.get(sink, {})
            assert sorted(written) == list(range(len(written))), f"{sink}: an epoch is missing"
            wrong = [epoch for epoch in written if written[epoch] != expected[epoch]]
            assert wrong == [], f"{sink}: epochs {wrong[:5]} are not what a run without failures delivers"

    @property
    def over(self) -> bool:
        return self.manager.memory.phase.over

    @property
    def delivered(self) -> int:
        return self.store.delivered("out")

    def hosts(self) -> dict[SliceId, list[tuple[str, int, State]]]:
        return {
            slice_id: [
                (node.name, node.replicas[slice_id].deploy.generation, node.replicas[slice_id].live["state"])
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
            if node is None or node.replicas[assignment.slice].live.capabilities != row:
                return False
        return True
