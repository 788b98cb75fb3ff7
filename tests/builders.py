"""Small things most tests need: interruptions, slices, bags, topologies."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from understudy.control.application.fusion import lay_out
from understudy.log import bag
from understudy.log.bag import Bag
from understudy.log.disk import Disk
from understudy.model.layout import Layout, Split
from understudy.model.names import SliceId
from understudy.model.recovery import Recovery
from understudy.model.topology import Topology

WORDS = SliceId("words", 0)
COUNTS = SliceId("counts", 0)
OTHER = SliceId("counts", 1)


class Crash(BaseException):
    """A power cut: nothing of ours catches it."""


def crash_at(step: int, action: Callable[[], object] | None = None) -> Disk:
    """A disk that stops right after its step number `step`, by raising or by what `action` does."""
    seen = 0

    def hook(_: str) -> None:
        nonlocal seen
        seen += 1
        if seen > step:
            if action is not None:
                action()
            raise Crash

    return Disk(on_step=hook)


def count_steps(work: Callable[[Disk], object]) -> int:
    """How often a procedure can be interrupted."""
    names: list[str] = []
    work(Disk(on_step=names.append))
    return len(names)


def interrupted(work: Callable[[Disk], object], step: int) -> bool:
    """Runs a procedure that is stopped after a step; False if it had ended before."""
    try:
        work(crash_at(step))
    except Crash:
        return True
    return False


def killed(work: Callable[[Disk], object], step: int) -> bool:
    """The same in a process of its own, which dies at the step without cleaning up."""
    child = os.fork()
    if child == 0:
        try:
            work(crash_at(step, lambda: os._exit(9)))
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def everything_in(directory: Path) -> dict[str, bytes]:
    """All files below a directory, by name."""
    found = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in found}


def rows_of(*numbers: int) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int64()), "word": pa.array([f"w{n}" for n in numbers], pa.string())})


def a_bag(epoch: int, table: pa.Table | None = None, slice_id: SliceId = WORDS, *splits: Split) -> Bag:
    return bag.make(slice_id, epoch, rows_of(epoch) if table is None else table, splits)


class Input:
    """A source that nobody opens."""

    schema = pa.schema([("word", pa.string()), ("at", pa.int64())])

    def open(self, slice_index: int, slices: int, epoch_s: float) -> Any:
        raise NotImplementedError


class Output:
    """A sink that nobody opens."""

    def open(self, name: str, home: Path, run: str) -> Any:
        raise NotImplementedError


def one(rows: Any) -> Any:
    """An operator's function that nobody calls."""
    return rows


def two(left: Any, right: Any) -> Any:
    return left


def word_count(counts: int = 2, recovery: Recovery | None = None) -> Topology:
    """lines -> words -> counts (stateful, by key) -> out."""
    app = Topology("wordcount")
    lines = app.source("lines", Input(), slices=2)
    words = app.operator(lines, name="words", slices=2, recovery=recovery)(one)
    counted = app.operator(words, name="counts", key="word", slices=counts, recovery=recovery)(one)
    app.sink("out", counted, Output())
    return app


def stateful(*names: str, of: Topology) -> Mapping[str, bool]:
    return {operator.name: operator.name in names for operator in of.operators}


def word_count_layout(counts: int = 2) -> Layout:
    app = word_count(counts)
    return lay_out(app, stateful("counts", of=app))
