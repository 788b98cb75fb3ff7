"""A simulated node: the real agent and its replicas, and a connection to the manager that can break."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.simulated.edge import SimEdge
from tests.simulated.query import Pace, slower
from tests.simulated.scheduler import Actor, Process
from understudy.model.faults import domain_name
from understudy.model.messages import Analysis, Begin, Checked, Hello, Shutdown, Welcome
from understudy.model.names import SliceId
from understudy.runtime.agent import Agent
from understudy.stream.context import NodeContext, NodeLoad
from understudy.stream.replica import Replica

if TYPE_CHECKING:
    from tests.simulated.cluster import Cluster

MEASURE_S = 1.0
RETRY_S = 0.2


class SimHost:
    """The process of a simulated node."""

    slow = False
    usage = (0.0, 0)

    def __init__(self, cluster: Cluster, name: str, python: Process, jvm: Process, pace: Pace) -> None:
        self._cluster, self._name, self._scheduler = cluster, name, cluster.scheduler
        self.edge = SimEdge(cluster.world, cluster.scheduler, python, jvm, pace)
        self.ready = False
        self.jvm_frozen_at: float | None = None
        self._welcome: Welcome | None = None
        self.drift = 1.0

    @property
    def jvm_silent_s(self) -> float:
        return 0.0 if self.jvm_frozen_at is None else self._cluster.now - self.jvm_frozen_at

    def clock(self) -> float:
        """A monotonic clock of its own, which may run fast or slow."""
        return self._scheduler.now * self.drift

    def prepare(self, welcome: Welcome) -> None:
        self._welcome = welcome
        self.ready = True

    def check(self) -> Checked:
        topology = self._cluster.topology
        stateful = {v.name: v.stateful for v in self._cluster.layout.vertices}
        return Checked(
            operators={op.name: Analysis(stateful=stateful[op.name], output="{}") for op in topology.operators}
        )

    def begin(self, begin: Begin) -> NodeContext:
        cluster = self._cluster
        run = cluster.manager.run
        return NodeContext(
            home=Path("home"),
            local=Path("local") / self._name,
            run=run.id,
            log=cluster.world.log,
            edge=self.edge,
            topology=cluster.topology,
            layout=cluster.layout,
            rhythm=begin.rhythm.anchored(self.clock(), begin.age_s),
            backlog=run.backlog,
            clock=self.clock,
            wall=cluster.wall,
            thread_cpu=lambda: 0.0,
            load=NodeLoad(run.config.overload, counts=run.primaries_first and not run.fast),
            shipping=run.config.shipping,
        )

    def measure(self) -> None:
        pass

    def close(self) -> None:
        pass


class Node:
    """Two halves: `python` runs agent, sources and sinks, `jvm` the queries. A message takes `delay_s` each way."""

    def __init__(self, name: str, cluster: Cluster, pace: Pace, *, standby: bool = False) -> None:
        self.name, self._cluster = name, cluster
        domains = cluster.manager.run.domains
        domain = domain_name((int(name.rpartition("-")[2]) - 1) % domains) if domains else ""
        self.python, self.jvm = Process(), Process()
        self.host = SimHost(cluster, name, self.python, self.jvm, pace)
        self.agent = Agent(name, self.host, self._say, lambda: cluster.now)
        self.reachable = True
        self.delay_s = cluster.delay_s
        self._send: Callable[[Any], None] | None = None
        self.hello = Hello(node=name, token="", pid=next(cluster.pids), instance=name, domain=domain, standby=standby)
        Actor(cluster.scheduler, self.python, self._beat)
        Actor(cluster.scheduler, self.python, self._measure)

    @property
    def replicas(self) -> dict[SliceId, Replica]:
        return self.agent.replicas

    # -- the connection

    @property
    def connected(self) -> bool:
        return self._send is not None

    def connect(self) -> None:
        cluster, own = self._cluster, self.python

        def send(message: Any) -> None:
            cluster.scheduler.after(self.delay_s, self._receive, own, send, message)

        manager = cluster.manager
        if manager.refuses(self.hello) is not None:
            return
        self._send = send
        manager.connect(self.hello, send)

    def disconnect(self) -> None:
        """Both sides learn of it."""
        if self._send is not None:
            self._cluster.manager.disconnect(self.name, self._send)
            self._send = None

    def forget_manager(self) -> None:
        """The manager is gone; the node calls again."""
        self._send = None

    def _receive(self, connection: Callable[[Any], None], message: Any) -> None:
        if connection is not self._send or not self.reachable:
            return
        if isinstance(message, Shutdown):
            self._leave()
        else:
            self.agent.obey(message)

    def _say(self, message: Any) -> None:
        connection, manager = self._send, self._cluster.manager
        if connection is not None:
            self._cluster.scheduler.after(self.delay_s, self._deliver, None, connection, manager, message)

    def _deliver(self, connection: Callable[[Any], None], manager: object, message: Any) -> None:
        """At the manager. A manager that was restarted, or has given the node up, does not know the connection."""
        if self._cluster.manager_paused:
            self._cluster.waiting.append(lambda: self._deliver(connection, manager, message))
            return
        if connection is not self._send or manager is not self._cluster.manager or not self.reachable:
            return
        if not self._cluster.manager.hear(self.name, message):
            self._send = None

    def _beat(self) -> float:
        if self._send is None and self.reachable and self.agent.is_fit():
            self.connect()
        if self._send is None:
            return RETRY_S
        self._say(self.agent.beat())
        return self._cluster.manager.run.heartbeat_s

    def _measure(self) -> float:
        self.agent.measure()
        return MEASURE_S

    # -- what can happen

    def give_notice(self) -> None:
        """SIGTERM: it leaves when it is empty, at the latest when its time is up."""
        self._cluster.scheduler.after(self.agent.leave(), self._time_is_up, self.python)

    def _time_is_up(self) -> None:
        self.agent.say_goodbye("its notice is over")
        self._cluster.scheduler.after(2 * self.delay_s, self._leave, self.python)

    def _leave(self) -> None:
        """The process ends by itself."""
        if self._cluster.nodes.get(self.name) is self:
            self._cluster.kill(self.name)

    def kill(self) -> None:
        self.python.kill()
        self.jvm.kill()
        self.disconnect()

    def freeze(self) -> None:
        self.python.freeze()
        self.jvm.freeze()

    def freeze_jvm(self) -> None:
        self.jvm.freeze()
        self.host.jvm_frozen_at = self._cluster.now

    def thaw(self) -> None:
        self.host.jvm_frozen_at = None
        for process in (self.python, self.jvm):
            if process.frozen:
                self._cluster.scheduler.thaw(process)

    def slow_down(self, factor: float) -> None:
        """Its operators take so many times as long from now on; its heartbeats are not affected."""
        self.host.edge.pace = slower(self.host.edge.pace, factor)

    @property
    def frozen(self) -> bool:
        return self.python.frozen

    @frozen.setter
    def frozen(self, frozen: bool) -> None:
        self.freeze() if frozen else self.thaw()
