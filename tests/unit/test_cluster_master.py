"""`--master spark://…`: an error that says what to do, soon, instead of a run that waits for ever."""

from __future__ import annotations

import socket

import pytest

from understudy.errors import Unavailable
from understudy.stream.session import EXECUTORS_S, await_first, check_master

MASTER = "spark://127.0.0.1:7077"


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_node_without_executors_gives_up_within_half_a_minute_of_its_start() -> None:
    time = Time()
    with pytest.raises(Unavailable) as caught:
        await_first(lambda: 0, MASTER, clock=lambda: time.now, sleep=time.sleep)
    assert time.now < EXECUTORS_S + 1 <= 20
    error = caught.value
    assert "gave this node no executor" in error.what
    assert "takes all cores" in error.why
    assert "spark.deploy.defaultCores" in error.fix


def test_the_first_executor_is_enough() -> None:
    time = Time()
    await_first(lambda: int(time.now > 3.0), MASTER, clock=lambda: time.now, sleep=time.sleep)
    assert 3.0 < time.now < 4.0


def test_a_master_that_is_not_there_is_named_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_master(f"spark://127.0.0.1:{port}")
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{port}")
    with pytest.raises(Unavailable, match="there is no Spark master"):
        check_master(f"spark://127.0.0.1:{port}")
    with pytest.raises(Unavailable, match="there is no Spark master"):
        check_master("spark://nowhere")


def test_local_masters_need_no_look() -> None:
    check_master("local[2]")
    check_master("local-cluster[2,1,1024]")
