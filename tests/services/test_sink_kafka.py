"""Every row once for a read_committed reader: whatever is killed, frozen, restarted or offered twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from tests.services.topics import committed
from understudy.clients import kafka as client_module
from understudy.errors import InvalidInput, Unavailable
from understudy.sinks.interface import Written
from understudy.sinks.kafka import TOKENS, KafkaWriter
from understudy.sinks.kafka import Kafka as Sink
from understudy.sinks.note import Superseded
from understudy.testing.services import Kafka

STEPS = ["begun", "sent", "noted", "committed"]


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int64()), "word": [f"w{n % 3}" for n in numbers]})


def nothing(_: str) -> None:
    pass


def opened(server: Kafka, topic: str, run: str = "run-1", on_step: Callable[[str], None] = nothing) -> KafkaWriter:
    return KafkaWriter(Sink(server.address, topic, key="word"), "out", run, on_step)


def numbers(server: Kafka, topic: str, partitions: int = 1) -> list[int]:
    return [json.loads(message.value())["n"] for message in committed(server, topic, range(partitions))]


class Crash(BaseException):
    """The writer's process ends here."""


def test_an_epoch_offered_twice_is_written_once(kafka: Kafka) -> None:
    kafka.create_topic("twice", 3)
    first = opened(kafka, "twice")
    assert [first.write(0, rows(1, 2)), first.write(0, rows(1, 2)), first.write(1, rows())] == [
        Written.ONCE,
        Written.THERE,
        Written.ONCE,
    ]
    second = opened(kafka, "twice")
    assert [second.write(1, rows()), second.write(2, rows(3, 4))] == [Written.THERE, Written.ONCE]
    assert sorted(numbers(kafka, "twice", 3)) == [1, 2, 3, 4]
    with pytest.raises(InvalidInput, match="lacks epochs 3 to 6"):
        second.write(7, rows(7))


def test_rows_of_a_key_are_in_the_order_of_epochs(kafka: Kafka) -> None:
    kafka.create_topic("ordered", 4)
    writer = opened(kafka, "ordered")
    for epoch in range(5):
        writer.write(epoch, rows(*range(epoch * 30, epoch * 30 + 30)))
    found = committed(kafka, "ordered", range(4))
    places: dict[bytes, set[int]] = {}
    for message in found:
        places.setdefault(message.key(), set()).add(message.partition())
    assert [len(place) for place in places.values()] == [1, 1, 1], "a key stays in its partition"
    for key in places:
        mine = [json.loads(message.value())["n"] for message in found if message.key() == key]
        assert mine == [n for n in range(150) if f"w{n % 3}".encode() == key]


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_the_epoch_is_whole_or_not_there(kafka: Kafka, step: str) -> None:
    topic = f"killed-{step}"
    kafka.create_topic(topic)
    opened(kafka, topic).write(0, rows(0))
    alive: list[str] = []

    def crash(name: str) -> None:
        if name == step and alive:
            torn._producer.flush(60)  # what was sent has reached the brokers
            raise Crash

    torn = opened(kafka, topic, on_step=crash)
    alive.append("open")
    with pytest.raises(Crash):
        torn.write(1, rows(1, 2))
    written = opened(kafka, topic).write(1, rows(1, 2))
    assert written is (Written.THERE if step == "committed" else Written.ONCE)
    assert numbers(kafka, topic) == [0, 1, 2]


@pytest.mark.parametrize("step", STEPS[:3])
def test_a_zombie_writes_nothing_after_its_successor(kafka: Kafka, step: str) -> None:
    topic = f"zombie-{step}"
    kafka.create_topic(topic)
    opened(kafka, topic).write(0, rows(0))
    successor: list[KafkaWriter] = []
    alive: list[str] = []

    def freeze(name: str) -> None:
        if name == step and alive and not successor:
            successor.append(opened(kafka, topic))
            assert successor[0].write(1, rows(1)) is Written.ONCE

    zombie = opened(kafka, topic, on_step=freeze)
    alive.append("open")
    with pytest.raises(Superseded):
        zombie.write(1, rows(1))
    with pytest.raises(Superseded):
        zombie.write(1, rows(100))
    assert successor[0].write(2, rows(2)) is Written.ONCE
    assert numbers(kafka, topic) == [0, 1, 2]


FROZEN = """
import sys
import pyarrow as pa
from understudy.sinks.kafka import Kafka, KafkaWriter
from understudy.sinks.note import Superseded

def step(name):
    if name == "noted" and ready:
        writer._producer.flush(60)
        print("noted", flush=True)
        sys.stdin.readline()

ready = []
writer = KafkaWriter(Kafka(sys.argv[1], sys.argv[2]), "out", "run-1", step)
ready.append(True)
try:
    writer.write(0, pa.table({"n": [0]}))
except Superseded:
    print("superseded", flush=True)
"""


@contextmanager
def stopped_in_a_transaction(server: Kafka, topic: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has sent the rows and the token of epoch 0 and waits for a line before it commits."""
    server.create_topic(topic)
    command = [sys.executable, "-c", FROZEN, server.address, topic]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "noted\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_frozen_process_that_thaws_commits_nothing(kafka: Kafka) -> None:
    with stopped_in_a_transaction(kafka, "frozen") as process:
        os.kill(process.pid, signal.SIGSTOP)
        writer = opened(kafka, "frozen")
        assert [writer.write(0, rows(0)), writer.write(1, rows(1))] == [Written.ONCE, Written.ONCE]
        os.kill(process.pid, signal.SIGCONT)
        said, _ = process.communicate("go on\n", timeout=120)
    assert said == "superseded\n"
    assert numbers(kafka, "frozen") == [0, 1]


def test_a_process_killed_between_begin_and_commit_leaves_nothing(kafka: Kafka) -> None:
    with stopped_in_a_transaction(kafka, "slain") as process:
        process.kill()
        process.wait(60)
    # Its rows are in the topic, in a transaction that is still open: the successor ends it.
    assert opened(kafka, "slain").write(0, rows(0, 1)) is Written.ONCE
    assert numbers(kafka, "slain") == [0, 1]


def test_a_restarted_broker_is_waited_for(kafka: Kafka) -> None:
    kafka.create_topic("restarted")
    ended: list[str] = []
    armed: list[str] = []

    def restart(name: str) -> None:
        if name == "sent" and armed and not ended:
            ended.append(name)
            kafka.kill()
            kafka.restart()

    writer = opened(kafka, "restarted", on_step=restart)
    armed.append("open")
    assert writer.write(0, rows(0, 1)) is Written.ONCE
    assert writer.write(1, rows(2)) is Written.ONCE
    assert ended
    assert numbers(kafka, "restarted") == [0, 1, 2]


def test_another_run_is_refused(kafka: Kafka) -> None:
    kafka.create_topic("owned")
    mine = opened(kafka, "owned")
    mine.write(0, rows(0))
    with pytest.raises(InvalidInput, match="holds epochs of run run-1, sink 'out'"):
        opened(kafka, "owned", run="run-2")
    with pytest.raises(InvalidInput, match="holds epochs of run run-1"):
        Sink(kafka.address, "owned").open("other", Path(), "run-1")
    assert mine.write(1, rows(1)) is Written.ONCE, "whoever was refused has fenced nobody"


def test_the_last_epoch_is_found_behind_many_tokens(kafka: Kafka) -> None:
    kafka.create_topic("long")
    writer = opened(kafka, "long")
    for epoch in range(100):
        writer.write(epoch, rows())
    again = opened(kafka, "long")
    assert again.write(99, rows(1)) is Written.THERE
    assert again.write(100, rows(1)) is Written.ONCE
    assert len(committed(kafka, f"long{TOKENS}")) == 102, "the claim, and one for every epoch"


def test_raw_values_and_tombstones(kafka: Kafka) -> None:
    kafka.create_topic("raw")
    table = pa.table({"id": pa.array([1, 2]), "body": pa.array(["x", None])})
    Sink(kafka.address, "raw", key="id", format="raw").open("out", Path(), "r").write(0, table)
    assert [(m.key(), m.value()) for m in committed(kafka, "raw")] == [(b"1", b"x"), (b"2", None)]


def test_a_topic_that_is_not_there_is_refused(kafka: Kafka) -> None:
    with pytest.raises(InvalidInput, match="there is no topic 'nowhere'"):
        opened(kafka, "nowhere")


def test_brokers_that_are_not_there_are_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "PATIENCE_S", 0.5)
    with pytest.raises(Unavailable, match=r"Kafka at 127\.0\.0\.1:9 cannot be used") as caught:
        Sink("127.0.0.1:9", "t").open("out", Path(), "r")
    assert "refused" in caught.value.why
