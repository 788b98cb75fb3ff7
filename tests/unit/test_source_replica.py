"""A source slice: every row of a live input falls into one epoch, whichever slice comes back when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.builders import Output, a_bag, one
from tests.sites import a_context, deployed, run_until

from understudy.log.interface import Log
from understudy.model.layout import Channel, Split
from understudy.model.names import SliceId
from understudy.model.topology import Topology
from understudy.sinks import JsonLines
from understudy.sources import Files, formats
from understudy.sources.interface import EndOfSource, Source, SourceReader
from understudy.stream.context import NodeContext
from understudy.stream.source import SourceReplica

FIRST, SECOND = SliceId("live", 0), SliceId("live", 1)
STEP = 3
SCHEMA = pa.schema({"n": pa.int64()})


@dataclass
class Live(Source):
    """An input in which `STEP` rows arrive between two cuts, whoever makes them. Slices take rows in turn."""

    recorded = True
    schema: pa.Schema = SCHEMA
    arrived: int = 0
    ends_at: int = 10**9
    cuts: list[int] = field(default_factory=list)

    def open(self, slice_index: int, slices: int, epoch_s: float) -> SourceReader:
        return LiveReader(self, slice_index, slices)


@dataclass
class LiveReader(SourceReader):
    live: Live
    index: int
    slices: int

    def cut(self, epoch: int, start: Any) -> Any:
        if epoch >= self.live.ends_at:
            raise EndOfSource
        self.live.cuts.append(epoch)
        self.live.arrived += STEP
        return self.live.arrived

    def read(self, epoch: int, start: Any, end: Any) -> pa.Table:
        mine = [n for n in range(start or 0, end) if n % self.slices == self.index]
        return pa.table({"n": pa.array(mine, pa.int64())})


def topology(live: Live) -> Topology:
    app = Topology("live")
    rows = app.source("live", live, slices=2)
    app.sink("out", app.operator(rows, name="each", slices=2)(one), Output())
    return app


@pytest.fixture
def live() -> Live:
    return Live()


@pytest.fixture
def site(tmp_path: Path, live: Live) -> NodeContext:
    found = a_context(tmp_path, topology(live))
    assert found.layout.readers(SECOND) == (SliceId("each", 1),)
    return found


def published_to(log: Log, slice_id: SliceId, epoch: int) -> Callable[[], bool]:
    """Whether a slice has come so far; its reader acknowledges everything there is at once."""

    def check() -> bool:
        log.acknowledge(SliceId("each", slice_id.index), slice_id, log.newest(slice_id))
        return log.newest(slice_id) >= epoch

    return check


def collect(log: Log, slice_id: SliceId, rows: dict[int, list[int]]) -> None:
    """Remembers what a slice has published; its bags may be trimmed later."""
    for epoch in range(log.newest(slice_id) + 1):
        stored = log.fetch(slice_id, epoch)
        if stored is not None:
            whole = stored.rows(Channel(0, slice_id, Split(), 0), SCHEMA)
            rows.setdefault(epoch, []).extend(whole["n"].to_pylist())


def test_a_slice_that_returns_finds_every_cut_it_needs(site: NodeContext, live: Live) -> None:
    """The first slice runs far ahead and its readers acknowledge; the second was away since epoch 4."""
    rows: dict[int, list[int]] = {}
    run_until(SourceReplica(site, deployed(SECOND)), lambda: site.log.newest(SECOND) >= 4)
    run_until(SourceReplica(site, deployed(FIRST)), published_to(site.log, FIRST, 34))
    last = site.log.newest(FIRST)
    assert site.log.fetch(FIRST, 3) is None, "the first slice has trimmed its bags"
    run_until(SourceReplica(site, deployed(SECOND, 2)), lambda: site.log.newest(SECOND) >= last)
    collect(site.log, SECOND, rows)
    got = sorted(n for epoch in range(last + 1) for n in rows[epoch])
    assert got == list(range(1, (last + 1) * STEP, 2)), "every second row, each once"
    assert live.cuts == list(range(site.log.cuts(FIRST).stop)), "no epoch was cut twice"


def test_cuts_go_when_the_readers_of_all_slices_have_acknowledged(site: NodeContext) -> None:
    run_until(SourceReplica(site, deployed(FIRST)), published_to(site.log, FIRST, 12))
    assert site.log.cuts(FIRST).start == 0, "the other slice has published nothing yet"
    run_until(SourceReplica(site, deployed(SECOND)), published_to(site.log, SECOND, 12))
    assert site.log.cuts(FIRST).start >= 4
    newest = site.log.newest(SECOND)
    run_until(SourceReplica(site, deployed(SECOND, 2)), published_to(site.log, SECOND, newest + 1))


def test_a_lost_cut_is_an_error_and_not_a_new_cut(site: NodeContext, live: Live) -> None:
    run_until(SourceReplica(site, deployed(FIRST)), lambda: site.log.newest(FIRST) >= 20)
    for epoch in range(15):
        (site.home / f"log/live/0/cuts/{epoch:010d}").unlink()
    before = list(live.cuts)
    with pytest.raises(AssertionError, match="does not know where epoch 0 ends"):
        run_until(SourceReplica(site, deployed(SECOND)), lambda: site.log.newest(SECOND) >= 0)
    assert live.cuts == before
    assert site.log.newest(SECOND) == -1


def test_a_missing_history_is_an_error_however_long_it_is(site: NodeContext) -> None:
    """Thousands of epochs whose cuts are all gone: no recursion through them, and no cut of everything at once."""
    site.log.publish(a_bag(4000, pa.table({"n": [1]}), FIRST), durable=False)
    with pytest.raises(AssertionError, match="does not know where epoch 4000 ends"):
        run_until(SourceReplica(site, deployed(FIRST)), lambda: site.log.newest(FIRST) > 4000)


def test_a_source_that_had_ended_has_ended_when_it_returns(tmp_path: Path) -> None:
    """Epochs behind the end were published without cuts. That is no gap in the record."""
    live = Live(ends_at=3)
    site = a_context(tmp_path, topology(live), epochs=8)
    run_until(SourceReplica(site, deployed(FIRST)), lambda: site.log.newest(FIRST) == 7)
    site.goal.epochs = 10
    again = SourceReplica(site, deployed(FIRST, 2))
    run_until(again, lambda: site.log.newest(FIRST) == 9)
    assert again.status().ended_at == 8
    assert live.cuts == [0, 1, 2]


def test_epochs_all_readers_have_are_not_made_again(site: NodeContext) -> None:
    """A power cut may take every bag that was not synced, and leave the acknowledgements of those that were read."""
    run_until(SourceReplica(site, deployed(FIRST)), published_to(site.log, FIRST, 12))
    floor = site.log.floor(FIRST, site.layout.readers(FIRST))
    for path in (site.home / "log/live/0").glob("*.bag"):
        path.unlink()
    run_until(SourceReplica(site, deployed(FIRST, 2)), lambda: site.log.newest(FIRST) > floor)
    assert site.log.first_missing(FIRST, floor) > floor + 1
    assert site.log.fetch(FIRST, floor) is None


def test_a_file_source_that_returns_goes_on_from_its_bookmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "BLOCK", 1000)
    (tmp_path / "a.txt").write_text("".join(f"line {n}\n" for n in range(4000)))
    app = Topology("files")
    app.sink("out", app.source("lines", Files(tmp_path / "a.txt", "text", rate=10)), JsonLines("out"))
    site, lines = a_context(tmp_path, app), SliceId("lines", 0)
    run_until(SourceReplica(site, deployed(lines)), lambda: site.log.newest(lines) >= 300)
    newest = site.log.newest(lines)
    site.log.acknowledge(SliceId("out", 0), lines, newest - 20)
    site.log.trim(lines, site.layout.readers(lines))
    kept = len(list((tmp_path / "log/lines/0/bookmarks").iterdir()))
    assert kept <= 6, "bookmarks are trimmed with the bags"
    begun: list[int] = []
    read = formats.read

    def watch(*arguments: Any) -> Any:
        begun.append(arguments[-1].at)
        return read(*arguments)

    monkeypatch.setattr(formats, "read", watch)
    run_until(SourceReplica(site, deployed(lines, 2)), lambda: site.log.newest(lines) > newest)
    assert len(begun) == 1
    assert begun[0] > 25_000, "it did not begin with the first row"
    stored = site.log.fetch(lines, newest + 1)
    assert stored is not None
    rows = stored.rows(Channel(0, lines, Split(), 0), pa.schema({"value": pa.string()}))["value"].to_pylist()
    assert rows == [f"line {n}" for n in range((newest + 1) * 10, (newest + 2) * 10)]
