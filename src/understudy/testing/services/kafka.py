"""Kafka 4.1 in KRaft mode: one broker, or several that replicate to each other. No ZooKeeper."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import psutil

from understudy.errors import InvalidInput, Unavailable
from understudy.testing.services import jars, jvm
from understudy.testing.services.base import POLL_S, READY_WITHIN_S, Service, SingleService
from understudy.testing.services.ivy import Coordinates
from understudy.testing.services.ports import free_ports, is_open

BUNDLE = jars.Bundle(
    "kafka",
    "4.1.2",
    (
        Coordinates("org.apache.kafka", "kafka_2.13", "4.1.2"),
        Coordinates("org.slf4j", "slf4j-simple", "1.7.36"),
    ),
)

# Short sessions: a killed broker is given up, and may register again, after two seconds instead of nine. One partition
# for each internal topic: the default fifty would all be created at the first transaction.
CONFIGURATION = """process.roles=broker,controller
node.id={id}
controller.quorum.voters={voters}
listeners=BROKER://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=BROKER://127.0.0.1:{port}
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=BROKER
controller.listener.names=CONTROLLER
log.dirs={data}
broker.heartbeat.interval.ms=200
broker.session.timeout.ms=2000
controller.quorum.election.timeout.ms=300
controller.quorum.fetch.timeout.ms=1000
controller.quorum.election.backoff.max.ms=200
default.replication.factor={copies}
min.insync.replicas={quorum}
offsets.topic.replication.factor={copies}
offsets.topic.num.partitions=1
transaction.state.log.replication.factor={copies}
transaction.state.log.min.isr={quorum}
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor={copies}
share.coordinator.state.topic.min.isr={quorum}
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
num.network.threads=2
num.io.threads=2
log.cleaner.dedupe.buffer.size=8000000
message.max.bytes=16777216
replica.fetch.max.bytes=16777216
"""


@dataclass(frozen=True)
class Seat:
    """The place of one broker among the others: fixed before the first of them starts."""

    id: int
    port: int
    controller: int


class Broker(SingleService):
    """One process that is broker and controller. `Kafka` makes them; each can be killed or frozen by itself."""

    name: ClassVar[str] = "kafka"

    def __init__(self, seat: Seat, seats: Sequence[Seat], cluster: str) -> None:
        self.seat = seat
        self.port = seat.port
        self.address = f"127.0.0.1:{seat.port}"
        self._seats = seats
        self._cluster = cluster

    @classmethod
    def check(cls) -> None:
        Kafka.check()

    @property
    def configuration(self) -> Path:
        return self.directory / "server.properties"

    def prepare(self) -> None:
        copies = len(self._seats)
        text = CONFIGURATION.format(
            id=self.seat.id,
            port=self.seat.port,
            controller=self.seat.controller,
            voters=",".join(f"{seat.id}@127.0.0.1:{seat.controller}" for seat in self._seats),
            data=self.directory / "data",
            copies=copies,
            quorum=copies // 2 + 1,
        )
        self.configuration.write_text(text)
        arguments = ["format", "--cluster-id", self._cluster, "--config", str(self.configuration)]
        command = jvm.command(BUNDLE, heap_mb=64, main="kafka.tools.StorageTool", arguments=arguments)
        done = subprocess.run(command, capture_output=True, text=True, timeout=READY_WITHIN_S, check=False)
        if done.returncode != 0:
            raise Unavailable(
                "Kafka's directory could not be formatted.",
                why="; ".join((done.stdout + done.stderr).strip().splitlines()[-3:]),
                fix=f"See that {self.directory} is empty and can be written.",
            )

    def command(self) -> Sequence[str]:
        return jvm.command(BUNDLE, heap_mb=192, main="kafka.Kafka", arguments=[str(self.configuration)])

    def answers(self) -> bool:
        return is_open(self.port) and self.seat.id in known_brokers(self.address)


class Kafka(Service):
    """Kafka in KRaft mode; clients take `address` for ``bootstrap.servers``.

    With three brokers every topic has three copies, and ``acks=all`` needs two of them.

    Parameters
    ----------
    brokers : {1, 3}, optional
        Number of brokers. Default: 1. The attribute of the same name holds them, to be killed one by one.

    Raises
    ------
    InvalidInput
        If another number of brokers is asked for.

    Examples
    --------
    >>> with Kafka() as kafka:  # doctest: +SKIP
    ...     kafka.create_topic("orders")
    ...     kafka.kill()
    ...     kafka.restart()
    """

    name: ClassVar[str] = "kafka"

    def __init__(self, brokers: int = 1) -> None:
        if brokers not in (1, 3):
            raise InvalidInput(
                f"Kafka with {brokers} brokers is not offered.",
                why="One has no copies, three survive the loss of one; two survive nothing.",
                fix="Ask for 1 or 3.",
            )
        ports = free_ports(2 * brokers)
        seats = [Seat(number + 1, ports[2 * number], ports[2 * number + 1]) for number in range(brokers)]
        cluster = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=").replace("-", "a")
        self.brokers = tuple(Broker(seat, seats, cluster) for seat in seats)

    @classmethod
    def check(cls) -> None:
        jvm.check(BUNDLE, clients=("confluent_kafka",))

    @classmethod
    def install(cls) -> str:
        return jvm.install(BUNDLE)

    def start(self, directory: Path) -> str:
        self.check()
        for broker in self.brokers:
            broker.directory = directory.resolve() / f"broker-{broker.seat.id}"
            shutil.rmtree(broker.directory, ignore_errors=True)
            broker.directory.mkdir(parents=True)
            broker.prepare()
        self.address = ",".join(broker.address for broker in self.brokers)
        return self._launch()

    def _launch(self) -> str:
        # None is ready before most of them run, so all are started before any is awaited.
        for broker in self.brokers:
            broker.launch()
        for broker in self.brokers:
            broker.wait_ready()
        return self.address

    def stop(self) -> None:
        # All at once: the last one alone has no quorum to take its leave of, and would wait for it.
        for broker in self.brokers:
            broker.ask_to_end()
        for broker in self.brokers:
            broker.stop()

    def kill(self) -> None:
        for broker in self.brokers:
            broker.kill()

    def freeze(self) -> None:
        for broker in self.brokers:
            broker.freeze()

    def thaw(self) -> None:
        for broker in self.brokers:
            broker.thaw()

    def restart(self) -> str:
        self.stop()
        return self._launch()

    def logs(self, lines: int = 40) -> str:
        return "\n".join(f"broker {broker.seat.id}:\n{broker.logs(lines)}" for broker in self.brokers)

    @property
    def alive(self) -> bool:
        return all(broker.alive for broker in self.brokers)

    @property
    def processes(self) -> Sequence[psutil.Process]:
        return [process for broker in self.brokers for process in broker.processes]

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Creates a topic and waits until every partition of it has a leader.

        Parameters
        ----------
        name : str
            Name of the topic.
        partitions : int, optional
            Number of partitions. Default: 1.

        Raises
        ------
        Unavailable
            If a partition has no leader in time.
        """
        admin, topic = _admin(self.address), import_module("confluent_kafka.admin").NewTopic(name, partitions)
        admin.create_topics([topic])[name].result(READY_WITHIN_S)
        deadline = time.monotonic() + READY_WITHIN_S
        while not _has_leaders(admin, name, partitions):
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"Topic {name} has partitions without a leader.",
                    why=f"None was elected within {READY_WITHIN_S:.0f} s.",
                    fix="See whether most brokers run, and what they say: Kafka.logs().",
                )
            time.sleep(POLL_S)


def _admin(address: str) -> Any:
    # An optional package, and one whose type hints leave out half of what it has.
    client: Any = import_module("confluent_kafka.admin")
    return client.AdminClient({"bootstrap.servers": address, "log_level": 0})


def _has_leaders(admin: Any, topic: str, partitions: int) -> bool:
    found = admin.list_topics(topic, timeout=READY_WITHIN_S).topics[topic].partitions
    return len(found) == partitions and all(one.leader > 0 for one in found.values())


def known_brokers(address: str) -> set[int]:
    """The brokers that this one lists; none while it does not respond."""
    try:
        return set(_admin(address).list_topics(timeout=1).brokers)
    except import_module("confluent_kafka").KafkaException:
        return set()
