"""A bag gives back the rows that were put in, or says that it is damaged."""

from __future__ import annotations

import datetime as dt
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import WORDS, rows_of
from understudy.errors import InvalidInput
from understudy.log import bag
from understudy.log.bag import Bag, DamagedBag
from understudy.log.sizes import payload_bytes
from understudy.model import hashing
from understudy.model.layout import Split

KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "n": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "flag": (pa.bool_(), st.booleans()),
    "x": (pa.float64(), st.floats(allow_nan=False)),
    "word": (pa.string(), st.text(max_size=8)),
    "raw": (pa.binary(), st.binary(max_size=8)),
    "at": (pa.timestamp("us", tz="UTC"), st.datetimes(timezones=st.just(dt.UTC))),
    "tags": (pa.list_(pa.string()), st.lists(st.none() | st.text(max_size=3), max_size=3)),
    "point": (pa.struct({"x": pa.int32()}), st.fixed_dictionaries({"x": st.none() | st.integers(0, 9)})),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    names = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4, unique=True))
    count = draw(st.integers(0, 10))
    columns = {name: draw(st.lists(st.none() | KINDS[name][1], min_size=count, max_size=count)) for name in names}
    return pa.table({name: pa.array(values, KINDS[name][0]) for name, values in columns.items()})


@st.composite
def tables_and_splits(draw: st.DrawFn) -> tuple[pa.Table, list[Split]]:
    table = draw(tables())
    keys = st.lists(st.sampled_from(table.column_names), max_size=2, unique=True).map(tuple)
    splits = st.builds(Split, key=keys, slices=st.integers(1, 4))
    return table, draw(st.lists(splits, max_size=3, unique_by=lambda split: split.label))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bags") / "a.bag"


def write(path: Path, made: Bag) -> bytes:
    content = b"".join(bytes(part) for part in made.parts)
    path.write_bytes(content)
    return content


def read(path: Path, split: Split, part: int, schema: pa.Schema) -> pa.Table:
    header, start = bag.read_header(path)
    return bag.read_rows(path, start, header.part(split, part), schema)


def multiset(*many: pa.Table) -> Counter[str]:
    return Counter(repr(row) for table in many for row in table.to_pylist())


@settings(max_examples=60, deadline=None)
@given(drawn=tables_and_splits(), segment_rows=st.integers(1, 12))
def test_every_split_covers_all_rows_once(path: Path, drawn: tuple[pa.Table, list[Split]], segment_rows: int) -> None:
    table, splits = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bag, "_SEGMENT_ROWS", segment_rows)
        made = bag.make(WORDS, 7, table, splits)
    content = write(path, made)
    assert made.size == len(content)
    header, start = bag.read_header(path)
    assert (header, start) == (made.header, made.start)
    assert (header.slice, header.epoch, header.rows) == (WORDS, 7, table.num_rows)
    for split in splits:
        parts = [read(path, split, part, table.schema) for part in range(split.slices)]
        assert multiset(*parts) == multiset(table)
        assert all(part.schema == table.schema for part in parts)
        for name in split.key[:1] if len(split.key) == 1 else ():
            seen = [set(map(repr, part.column(name).to_pylist())) for part in parts]
            assert sum(map(len, seen)) == len(set().union(*seen)), "a key went to two slices"


@settings(max_examples=30, deadline=None)
@given(drawn=tables_and_splits())
def test_a_reader_of_the_whole_bag_gets_all_rows_whatever_the_sections(
    path: Path, drawn: tuple[pa.Table, list[Split]]
) -> None:
    table, splits = drawn
    write(path, bag.make(WORDS, 0, table, splits))
    whole = read(path, Split(), 0, table.schema)
    assert multiset(whole) == multiset(table)
    if not splits or splits[0].whole:
        assert whole.to_pylist() == table.to_pylist()


def test_the_same_rows_make_the_same_bytes(path: Path) -> None:
    """Replicas that agree publish the same bag to the byte, however their rows were chunked."""
    table = rows_of(*range(20))
    odd = pa.concat_tables([table.slice(0, 3), table.slice(3, 0), table.slice(3)])
    splits = [Split(("word",), 3), Split((), 2)]
    headers = [bag.make(WORDS, 1, rows, splits).header.digest for rows in (table, odd)]
    assert headers[0] == headers[1]
    assert write(path, bag.make(WORDS, 1, table, splits)) == write(path, bag.make(WORDS, 1, table, splits))


def outcome(path: Path, split: Split, schema: pa.Schema) -> list[list[dict[str, Any]]] | None:
    """The rows of every part, or None if the bag says that it is damaged."""
    try:
        return [read(path, split, part, schema).to_pylist() for part in range(split.slices)]
    except DamagedBag:
        return None


SPLIT = Split(("word",), 2)


@pytest.fixture(params=[(), ("a", "b")], ids=["empty", "rows"])
def small(request: pytest.FixtureRequest, path: Path) -> tuple[pa.Table, bytes]:
    table = pa.table({"word": pa.array(request.param, pa.string())})
    return table, write(path, bag.make(WORDS, 12, table, [SPLIT]))


def test_every_truncation_is_noticed(path: Path, small: tuple[pa.Table, bytes]) -> None:
    table, content = small
    for length in reversed(range(len(content))):
        os.truncate(path, length)
        assert outcome(path, SPLIT, table.schema) is None, length
    path.write_bytes(content + b"\0")
    assert outcome(path, SPLIT, table.schema) is None


@pytest.mark.parametrize("flip", [0x01, 0x20, 0xFF])
def test_every_flipped_byte_is_noticed_or_harmless(path: Path, small: tuple[pa.Table, bytes], flip: int) -> None:
    table, content = small
    whole = outcome(path, SPLIT, table.schema)
    header = bag.read_header(path)[0]
    start = len(content) - sum(s.length for parts in header.sections.values() for part in parts for s in part)
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ flip]) + content[place + 1 :])
        found = outcome(path, SPLIT, table.schema)
        assert found in (None, whole), place
        assert found is None or place >= start, "the header says more than its rows"


def test_a_file_of_zeros_is_noticed(path: Path, small: tuple[pa.Table, bytes]) -> None:
    """What a power cut can leave of a file that was not made durable."""
    table, content = small
    path.write_bytes(bytes(len(content)))
    assert outcome(path, SPLIT, table.schema) is None


# -- large parts


def rechunked(table: pa.Table, every: int) -> pa.Table:
    """The same rows, put together differently, with bitmaps for nulls even where there are none."""
    if table.num_rows == 0:
        return table
    pieces = [table.slice(start, every) for start in range(0, table.num_rows, every)]
    again = [
        piece.take(pa.array([*range(piece.num_rows), None], pa.int64())).slice(0, piece.num_rows) for piece in pieces
    ]
    return pa.concat_tables(again)


@settings(deadline=None)
@given(tables(), st.integers(1, 200), st.integers(1, 4))
def test_segments_are_cut_by_bytes_and_only_the_rows_decide_where(table: pa.Table, limit: int, every: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bag, "_SEGMENT_BYTES", limit)
        cuts = [(pa.ipc.open_stream(body).read_all(), count) for body, count in bag.streams(table)]
        other = [count for _, count in bag.streams(rechunked(table, every))]
    assert [count for _, count in cuts] == other
    assert [row for piece, _ in cuts for row in piece.to_pylist()] == table.to_pylist()
    assert all(piece.num_rows == count for piece, count in cuts)
    assert all(count == 1 or payload_bytes(piece) <= limit for piece, count in cuts)


@settings(deadline=None)
@given(tables())
def test_arrows_own_count_is_never_below_ours(table: pa.Table) -> None:
    assert payload_bytes(table) <= table.nbytes


def test_wide_rows_make_small_segments_and_the_digest_does_not_notice() -> None:
    wide = pa.table({"n": pa.array(range(64)), "text": pa.array(["x" * (1 << 20)] * 64)})
    made = bag.make(WORDS, 0, wide, ())
    sizes = [segment.length for segment in made.header.part(Split(), 0)]
    assert max(sizes) <= bag._SEGMENT_BYTES + (1 << 16)
    assert len(sizes) >= 4
    narrow = bag.make(WORDS, 0, wide.slice(0, 0), ())
    assert made.header.digest == hashing.digest(wide)
    assert narrow.header.part(Split(), 0) == ()


def test_a_row_that_no_reader_could_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bag, "_SEGMENT_BYTES", 1 << 10)
    monkeypatch.setattr(bag, "_LARGEST_ROW", 3 << 20)
    with pytest.raises(InvalidInput, match="a row has 4 MB"):
        bag.make(WORDS, 0, pa.table({"text": ["a", "x" * (4 << 20), "b"]}), ())
