"""Epochs of a source follow from the input and the epoch's number, never from where reading started."""

from __future__ import annotations

import datetime as dt
import json
import tempfile
from fractions import Fraction
from itertools import pairwise
from math import floor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from understudy.model.hashing import digest
from understudy.sources import EndOfSource, Files, Generator, Source, SourceReader, formats
from understudy.sources.pace import ByRate, ByTime, exact, rows_before


def drain(reader: SourceReader, first: int = 0, most: int = 200) -> list[pa.Table]:
    epochs: list[pa.Table] = []
    for epoch in range(first, first + most):
        try:
            end = reader.cut(epoch, None)
        except EndOfSource:
            return epochs
        epochs.append(reader.read(epoch, None, end))
    raise AssertionError("the source does not end")


rates = st.sampled_from([1, 3, 0.3, 2.5, 7.77, 1000])
epoch_lengths = st.sampled_from([1.0, 0.1, 0.25, 3.0])


@given(rates, epoch_lengths, st.integers(1, 4), st.integers(0, 50), st.integers(1, 40))
def test_rows_find_their_epoch_exactly(rate: float, epoch_s: float, slices: int, first: int, rows: int) -> None:
    pace = ByRate(exact(rate), exact(epoch_s), slices)
    table = pa.table({"x": np.arange(rows)})
    for offset, epoch in enumerate(pace.epochs(table, first).tolist()):
        local = (first + offset) // slices
        assert rows_before(epoch, exact(rate), exact(epoch_s)) <= local
        assert local < rows_before(epoch + 1, exact(rate), exact(epoch_s))


@given(st.lists(st.none() | st.integers(0, 10_000), max_size=30), epoch_lengths, st.sampled_from([1.0, 60.0, 0.7]))
def test_times_find_their_epoch_exactly(seconds: list[int | None], epoch_s: float, speed: float) -> None:
    pace = ByTime("at", exact(epoch_s), exact(speed))
    cut = len(seconds) // 2
    got: list[int] = []
    for part in (seconds[:cut], seconds[cut:]):
        got += pace.epochs(pa.table({"at": pa.array(part, pa.int64())}), 0).tolist()
    known = [s for s in seconds if s is not None]
    expected, last = [], 0
    for second in seconds:
        if second is not None:
            last = max(last, floor(Fraction(second - known[0]) / (exact(epoch_s) * exact(speed))))
        expected.append(last)
    assert got == expected


def _write(folder: Path, rows: int, files: int, seed: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    at = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)
    items = []
    for n in range(rows):
        at += dt.timedelta(seconds=int(rng.integers(-1, 5)))
        items.append({"n": n, "at": at.strftime("%Y-%m-%d %H:%M:%S"), "text": "x" * int(rng.integers(0, 3))})
    bounds = sorted([0, rows, *rng.integers(0, rows + 1, files - 1).tolist()])
    for i, (a, b) in enumerate(pairwise(bounds)):
        lines = "".join(json.dumps(item) + "\n" for item in items[a:b])
        (folder / f"part-{i}.json").write_text(lines)
    return items


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that small files have many pieces."""
    monkeypatch.setattr(formats, "BLOCK", 200)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 60), st.integers(1, 3), st.integers(1, 3), st.booleans(), st.integers(0, 9), st.data())
def test_files_are_cut_the_same_from_everywhere(
    rows: int, files: int, slices: int, by_time: bool, seed: int, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as name:
        items = _write(Path(name), rows, files, seed)
        pace: dict[str, Any] = {"event_time": "at", "speed": 2.0} if by_time else {"rate": 2.5}
        source = Files(name, "json", "n long, at timestamp, text string", **pace)
        whole = [drain(source.open(i, slices, 1.0)) for i in range(slices)]
        assert len({len(epochs) for epochs in whole}) == 1, "slices end together"
        for i, epochs in enumerate(whole):
            numbers = [n for table in epochs for n in table["n"].to_pylist()]
            assert numbers == [item["n"] for item in items][i::slices], "each row once, in order"
            if epochs:
                first = data.draw(st.integers(0, len(epochs) - 1))
                later = drain(source.open(i, slices, 1.0), first)
                assert [t.to_pylist() for t in later] == [t.to_pylist() for t in epochs[first:]]
                _check_any_order(source, i, slices, epochs, data)
                _check_bookmark(source, i, slices, epochs, data)


def _check_bookmark(source: Source, i: int, slices: int, epochs: list[pa.Table], data: st.DataObject) -> None:
    """A reader that goes to a bookmark reads what the one that made it would have read, also before it."""
    at = data.draw(st.integers(0, len(epochs) - 1))
    first = source.open(i, slices, 1.0)
    for epoch in range(at + 1):
        first.read(epoch, None, first.cut(epoch, None))
    later = source.open(i, slices, 1.0)
    later.seek(json.loads(json.dumps(first.bookmark(at))))
    assert [t.to_pylist() for t in drain(later, at)] == [t.to_pylist() for t in epochs[at:]]
    before = data.draw(st.integers(0, at))
    assert later.read(before, None, later.cut(before, None)).to_pylist() == epochs[before].to_pylist()


def _check_any_order(source: Source, i: int, slices: int, epochs: list[pa.Table], data: st.DataObject) -> None:
    reader = source.open(i, slices, 1.0)
    for epoch in data.draw(st.lists(st.integers(0, len(epochs) - 1), max_size=4)):
        end = reader.cut(epoch, None)
        assert reader.read(epoch, None, end).to_pylist() == epochs[epoch].to_pylist()
    reader.close()


def _make(epoch: int, slice_index: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return pa.table({"n": rng.integers(0, 1000, rows), "epoch": np.full(rows, epoch)})


@given(rates, epoch_lengths, st.integers(0, 3), st.integers(0, 5), st.integers(0, 30))
def test_any_epoch_is_generated_alone(rate: float, epoch_s: float, seed: int, slice_index: int, epoch: int) -> None:
    source = Generator(_make, "n long, epoch int", rate, seed)
    reader = source.open(slice_index, 6, epoch_s)
    tables = [reader.read(e, None, reader.cut(e, None)) for e in range(epoch + 1)]
    alone = source.open(slice_index, 6, epoch_s).read(epoch, None, None)
    assert digest(alone) == digest(tables[-1])
    assert sum(t.num_rows for t in tables) == floor((epoch + 1) * exact(rate) * exact(epoch_s))


def test_seeds_slices_and_epochs_give_different_rows() -> None:
    rows = {
        (seed, i, epoch): tuple(Generator(_make, "n long, epoch int", 10, seed).open(i, 2, 1.0).read(epoch, None, None)["n"].to_pylist())  # noqa: E501
        for seed in range(3) for i in range(2) for epoch in range(3)
    }  # fmt: skip
    assert len(set(rows.values())) == len(rows)


def test_generated_rows_are_frozen() -> None:
    read = Generator(_make, "n long, epoch int", 5, 7).open(1, 2, 1.0).read(3, None, None)
    assert read["n"].to_pylist() == [452, 243, 706, 282, 202]


@pytest.mark.parametrize("number", [0.1, 0.3, 1 / 3])
def test_numbers_are_taken_as_written(number: float) -> None:
    assert exact(number) == Fraction(repr(number))
