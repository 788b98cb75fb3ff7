"""How a node gets ready, without Spark: whose directory it takes, and what ends it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from understudy.errors import InvalidInput, Unavailable
from understudy.model.messages import Failure, Goodbye, Refused, Shutdown, Welcome
from understudy.model.run import RunSpec
from understudy.runtime import spark_host as module
from understudy.runtime.agent import Agent
from understudy.runtime.home import Home
from understudy.runtime.spark_host import JVM_ENDED, SparkHost
from understudy.stream import frames, session


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    """Its session is an object, its JVM never ends."""
    spark = SimpleNamespace(stop=lambda: None)
    monkeypatch.setattr(module, "load", lambda *_: SimpleNamespace(operators=[]))
    monkeypatch.setattr(session, "start", lambda *_: spark)
    monkeypatch.setattr(session, "await_executors", lambda *_: None)
    monkeypatch.setattr(frames, "start_meter", lambda _: None)
    monkeypatch.setattr(module, "start_pulse", lambda *_: SimpleNamespace(silent_s=lambda: 2.5))
    monkeypatch.setattr(module, "jvm_process", lambda: None)
    monkeypatch.setattr(module, "watch_end", lambda *_: None)
    monkeypatch.setenv("PYTHONPATH", "")
    return Agent("node-1", SparkHost("node-1", "local[1]"), lambda _: None)


def welcome(home: Path) -> Welcome:
    return Welcome(run=RunSpec(id="r", app=str(home / "app.py")), home=str(home))


def test_a_node_starts_in_an_empty_directory_of_its_own_and_leaves_none(made: Agent, tmp_path: Path) -> None:
    home = Home(tmp_path)
    (home.nodes / "node-1" / "left behind").mkdir(parents=True)
    made._prepare(welcome(tmp_path))
    assert not (home.nodes / "node-1").exists()
    with pytest.raises(InvalidInput, match="there is a node node-1 already"):
        home.hold_node("node-1")
    (home.nodes / "node-1" / "checkpoint").mkdir(parents=True)
    made.receive(Shutdown())
    made.run()
    assert not (home.nodes / "node-1").exists()


def test_a_second_process_of_the_name_does_not_touch_the_directory(made: Agent, tmp_path: Path) -> None:
    home = Home(tmp_path)
    (home.nodes / "node-1" / "checkpoint").mkdir(parents=True)
    with home.hold_node("node-1"):
        made.receive(welcome(tmp_path))
        with pytest.raises(InvalidInput, match="there is a node node-1 already"):
            made.run()
    assert (home.nodes / "node-1" / "checkpoint").exists()


def test_a_refusal_ends_the_node_with_the_reason(made: Agent, tmp_path: Path) -> None:
    made._prepare(welcome(tmp_path))
    made.receive(Refused(failure=Failure(what="there is a node node-1 already", why="w", fix="f")))
    with pytest.raises(InvalidInput, match="there is a node node-1 already"):
        made.run()


def test_a_cluster_without_executors_ends_the_node(
    made: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> None:
        raise Unavailable("no executor", why="w", fix="f")

    monkeypatch.setattr(session, "await_executors", none)
    made.receive(welcome(tmp_path))
    with pytest.raises(Unavailable, match="no executor"):
        made.run()


def test_the_pulse_of_the_jvm_is_in_every_heartbeat(made: Agent, tmp_path: Path) -> None:
    assert (made.beat().jvm_silent_s, made.is_fit()) == (0.0, True), "it has none yet"
    made._prepare(welcome(tmp_path))
    assert (made.beat().jvm_silent_s, made.is_fit()) == (2.5, False)


def test_the_end_of_the_jvm_is_the_end_of_the_node_and_its_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []
    host = SparkHost("node-1", "local[1]")
    made = Agent("node-1", host, said.append)
    host.say_goodbye = made.say_goodbye
    monkeypatch.setattr("os._exit", said.append)
    host._jvm_ended(-9)
    assert said == [Goodbye(why="its JVM was killed by SIGKILL"), JVM_ENDED]
    said.clear()
    host.close()
    host._jvm_ended(0)
    assert said == [], "it ends because the node does"


# -- notice


def test_a_node_that_hosts_nothing_ends_at_once_when_it_is_given_notice(made: Agent, tmp_path: Path) -> None:
    made._prepare(welcome(tmp_path))
    assert made.leave() == 0.0
    made.end()
    made.run()


def test_a_node_says_how_long_it_will_stay(made: Agent, tmp_path: Path) -> None:
    now = 5.0
    said: list[Any] = []
    made._clock, made._send = lambda: now, said.append
    made._welcome, made._context = welcome(tmp_path), SimpleNamespace()  # type: ignore[assignment]
    assert made.beat().leaves_s is None
    assert made.leave() == made._welcome.run.config.cluster.notice_s
    now = 10.0
    assert made.beat().leaves_s == made._welcome.run.config.cluster.notice_s - 5.0
    now = 100.0
    assert made.beat().leaves_s == 0.0
    made.end()
    assert said == [Goodbye(why="its notice is over")]


def test_the_first_signal_gives_notice_and_the_second_ends_the_process() -> None:
    """In a process of its own: the agent there only counts."""
    script = (
        "import os, signal, sys, threading, time\n"
        "from understudy.runtime.node import heed_notice\n"
        "class Agent:\n"
        "    def leave(self): print('leaves', flush=True); return float(sys.argv[1])\n"
        "    def end(self): print('ends', flush=True); os._exit(0)\n"
        "heed_notice(Agent())\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "if len(sys.argv) > 2: os.kill(os.getpid(), signal.SIGTERM)\n"
        "threading.Event().wait(60)\n"
    )
    patient = subprocess.run([sys.executable, "-c", script, "0.01"], capture_output=True, text=True, timeout=120)
    assert (patient.returncode, patient.stdout.split()) == (0, ["leaves", "ends"])
    hasty = subprocess.run([sys.executable, "-c", script, "50", "twice"], capture_output=True, text=True, timeout=120)
    assert (hasty.returncode, hasty.stdout.split()) == (-signal.SIGTERM, ["leaves"])
