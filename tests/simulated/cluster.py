"""A cluster in memory: the real manager, real agents and replicas, and everything that can happen to them.

Time is a number; `step` lets a heartbeat pass. One seed decides about chance: delays, torn files, non-determinism.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from tests.simulated.log import SimLog
from tests.simulated.node import Node
from tests.simulated.query import Pace
from tests.simulated.scheduler import Scheduler
from tests.simulated.store import MemoryStore
from tests.simulated.tokens import Oracle
from tests.simulated.topologies import word_count
from tests.simulated.world import TokenSink, World
from understudy.control.application.fusion import lay_out
from understudy.control.cluster.instructions import Assign, Instruction
from understudy.control.cluster.secondaries import effective
from understudy.coordination.interface import StateStore
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
    """`pace` says how long queries take; `stateful` names the operators that keep state.

    With a `home` the manager writes its journal there and keeps what it must not forget in SQLite. Without one both are
    in memory, which is faster.
    """

    def __init__(
        self,
        home: Path | None = None,
        nodes: int = 3,
        recovery: Recovery | None = None,
        topology: Topology | None = None,
        stateful: tuple[str, ...] = ("counts",),
        pace: Pace | None = None,
        seed: int = 0,
        tick_s: float = TICK_S,
        **spec: Any,
    ) -> None:
        self.home, self.rng = home or Path("home"), random.Random(seed)
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
        self.store: StateStore = MemoryStore() if home is None else SqliteStore(Path(":memory:"))
        self.lines: list[Mapping[str, Any]] | None = [] if home is None else None
        usual: dict[str, Any] = {"heartbeat_s": BEAT_S, "misses": 5}
        run = RunSpec.of("r", "app.py", nodes=nodes, **(usual | spec))
        self.store.keep({"run": run.model_dump(), "goal": run.epochs})
        self.generations: dict[SliceId, int] = {}
        self.started = 0
        self.pids = itertools.count(2)
        self.manager_paused = False
        self.waiting: list[Callable[[], None]] = []
        """What arrived at the manager while it was paused."""
        self.broken: dict[SliceId, Failure] = {}
        self.last: tuple[Instruction, ...] = ()
        self.planning_s = 0.05
        self.manager = self._manage()
        self.nodes: dict[str, Node] = {}
        for _ in range(nodes):
            self.start_node()
        for _ in range(run.config.cluster.standby_nodes):
            self.start_node(standby=True)

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
        return Manager(
            self.home,
            self.topology,
            self.store,
            clock=partial(getattr, self.scheduler, "now"),
            wall=self.wall,
            beside=self._plan_later,
            lines=self.lines,
        )

    def _plan_later(self, job: Callable[[], None]) -> None:
        """A planner takes some time, and nobody waits for it."""
        self.scheduler.after(self.planning_s, job)

    # -- what can happen to nodes

    def start_node(self, name: str = "", *, standby: bool = False) -> Node:
        self.started += not name
        node = Node(name or f"node-{self.started}", self, self.pace, standby=standby)
        self.nodes[node.name] = node
        return node

    def of_domain(self, domain: str) -> list[str]:
        """The nodes that run there."""
        return [name for name, node in self.nodes.items() if node.hello.domain == domain]

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

    def heal(self, *names: str) -> None:
        """These nodes, or all."""
        for node in [node for name, node in self.nodes.items() if name in (names or self.nodes)]:
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

    def move(self, slice_id: SliceId, node: str, *, legacy: bool = False) -> None:
        """Somebody wants a slice elsewhere; refused where it is, before data flows, and where it cannot be."""
        with suppress(InvalidInput):
            self.manager.move(slice_id, node, legacy)

    def rebalance(self) -> None:
        """Somebody wants an even load; refused before data flows."""
        with suppress(InvalidInput):
            self.manager.rebalance()

    def drain(self, node: str, within_s: float | None = None) -> None:
        """Somebody wants a node empty, or gone within so many seconds."""
        with suppress(InvalidInput):
            self.manager.drain(node, within_s=within_s)

    def give_notice(self, node: str) -> None:
        """SIGTERM to a node."""
        self.nodes[node].give_notice()

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
        known = self.manager.observer.members.connections
        assert all(assignment.node in known for assignment in assigned), "assigned to a dead node"
        assert len({assignment.slice for assignment in assigned}) == len(assigned), "decided twice in one tick"
        for assignment in assigned:
            if assignment.secondary is not None:
                assert assignment.secondary.generation > assignment.generation, "a take-over would go back"
                assert assignment.secondary.node != assignment.node, "one failure would take both"
            if assignment.moving is not None and assignment.moving.generation:
                assert assignment.moving.generation > assignment.generation, "a move would go back"
                hosts = [assignment.node, assignment.moving.node]
                hosts += [assignment.secondary.node] if assignment.secondary else []
                assert len(set(hosts)) == len(hosts), "two replicas of a slice on one node"
            before = self.generations.get(assignment.slice, 0)
            assert assignment.generation >= before, "a generation went down"
            self.generations[assignment.slice] = assignment.generation

    def check_one_history(self) -> None:
        """No bag was published with two contents, whatever its operator does."""
        assert self.world.log.conflicts == [], f"published with two contents: {self.world.log.conflicts[:5]}"

    def pause_manager(self, seconds: float) -> None:
        """The manager is stopped for so long. Heartbeats wait, and it ticks before it hears them."""
        self.manager_paused = True
        self.scheduler.run_until(self.now + seconds)
        self.manager_paused = False
        self._check(self.manager.tick())
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

    def check_corrected(self) -> None:
        """Of every epoch that was delivered nothing tentative is left, neither outside nor in the run's memory."""
        for sink, written in self.world.written.items():
            left = [epoch for epoch in self.world.tentative.get(sink, {}) if epoch in written]
            assert left == [], f"{sink}: tentative rows of epochs {left} were not withdrawn"
            known = [epoch for epoch in self.world.copies.get(sink, {}) if epoch in written]
            assert known == [], f"{sink}: copies of epochs {known} are left"

    def check_losses(self) -> None:
        """Where nothing is replayed: no epoch is missing, and none is wrong unless the report says what was lost.

        A successor leaves gaps, and forgets epochs whose bags its predecessor had published. What it makes after them
        differs from a run without failures; what was made before does not. A bag that is damaged once it was delivered
        becomes a gap too; offered again, it finds the epoch there.
        """
        told = self.manager.observer.ledger.replicas
        lost = [first for replica in told for first, _ in replica.gaps]
        lost += [last + 1 for replica in told for _, last in replica.forgotten]
        verdict = self.manager.report().verdict
        assert verdict in ("lossy" if lost else "exact", "failed"), f"{verdict}: {lost}\n{self.story()}"
        epochs = max((max(found, default=-1) + 1 for found in self.world.written.values()), default=0)
        for sink, expected in Oracle(self.layout, self.world.log.first_cuts).delivered(epochs).items():
            written = self.world.written.get(sink, {})
            assert sorted(written) == list(range(len(written))), f"{sink}: an epoch is missing"
            sound = range(min(lost, default=epochs))
            wrong = [epoch for epoch in written if epoch in sound and written[epoch] != expected[epoch]]
            assert wrong == [], f"{sink}: epochs {wrong[:5]} are wrong, and nobody says so\n{self.story()}"

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
            if assignment.moving is not None:
                return False
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
