"""A sink slice: what it reads is never far ahead of it, and every delivery has its receipt."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from tests.sites import a_context, deployed, run_until, until

from understudy.model.names import SliceId
from understudy.model.topology import Topology
from understudy.sinks import Call, Sink
from understudy.sources import Generator
from understudy.stream.context import NodeContext
from understudy.stream.sink import SinkReplica
from understudy.stream.source import SourceReplica

ROWS, OUT = SliceId("rows", 0), SliceId("out", 0)
BACKLOG, EPOCHS = 4, 40


def source_and(sink: Sink) -> Topology:
    app = Topology("slow")
    rows = app.source("rows", Generator(lambda epoch, *_: pa.table({"n": [epoch]}), "n long", rate=1))
    app.sink("out", rows, sink)
    return app


@dataclass
class Gate:
    """A function that returns only for epochs that were let through."""

    let: int = -1
    seen: list[int] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def __call__(self, epoch: int, _: pa.Table) -> None:
        with self.changed:
            self.changed.wait_for(lambda: self.let >= epoch)
        self.seen.append(epoch)

    def open(self, epoch: int) -> None:
        with self.changed:
            self.let = epoch
            self.changed.notify_all()


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open(EPOCHS)


def test_a_slow_sink_holds_back_what_it_reads(tmp_path: Path, gate: Gate) -> None:
    site = a_context(tmp_path, source_and(Call(gate)), epochs=EPOCHS, backlog=BACKLOG)
    source, sink = SourceReplica(site, deployed(ROWS)), SinkReplica(site, deployed(OUT))
    source.start()
    sink.start()
    try:
        for epoch in range(6):
            # The sink stands in this epoch.
            newest = epoch + BACKLOG - 1
            until(lambda last=newest: site.log.newest(ROWS) >= last)  # type: ignore[misc]
            assert not site.room(ROWS, newest + 1)
            assert site.log.newest(ROWS) == newest, "bags pile up before a sink that stands"
            gate.open(epoch)
        gate.open(EPOCHS)
        until(lambda: len(gate.seen) == EPOCHS)
    finally:
        gate.open(EPOCHS)
        for replica in (source, sink):
            replica.stop()
            assert replica.ended.wait(10)
    assert gate.seen == list(range(EPOCHS))


def test_a_sink_that_returns_says_how_far_it_is(tmp_path: Path, gate: Gate) -> None:
    """After a power cut the note may be gone; nobody must wait for ever."""
    site = a_context(tmp_path, source_and(Call(gate)), epochs=EPOCHS, backlog=BACKLOG)
    sink = SinkReplica(site, deployed(OUT, resume_at=7))
    run_until(sink, lambda: site.log.reached(OUT) == 6)
    assert site.room(ROWS, 10)
    assert not site.room(ROWS, 11)


def crashing(after: int) -> Callable[[int, pa.Table], None]:
    def deliver(epoch: int, _: pa.Table) -> None:
        if epoch == after:
            raise KeyboardInterrupt("the process dies in the middle of a call")

    return deliver


def test_an_interrupted_call_is_reported_as_repeated(tmp_path: Path) -> None:
    """Delivered twice and reported once was the defect: nobody could see that an epoch may have come twice."""

    def site(function: Callable[[int, pa.Table], None]) -> NodeContext:
        return a_context(tmp_path, source_and(Call(function)), epochs=5)

    run_until(SourceReplica(site(crashing(-1)), deployed(ROWS)), lambda: site(crashing(-1)).log.newest(ROWS) == 4)
    first = SinkReplica(site(crashing(3)), deployed(OUT))
    with pytest.raises(AssertionError, match="KeyboardInterrupt"):
        run_until(first, lambda: False)
    assert [(r.epoch, r.repeated) for r in first.receipts()] == [(0, False), (1, False), (2, False)]
    second = SinkReplica(site(crashing(-1)), deployed(OUT, 2, resume_at=3))
    run_until(second, lambda: len(second.receipts()) == 2)
    assert [(r.epoch, r.fresh, r.repeated) for r in second.receipts()] == [(3, True, True), (4, True, False)]
