"""Hashes follow from values, never from layout."""

from __future__ import annotations

import datetime as dt
import decimal
from collections import Counter
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import InvalidInput
from understudy.model.hashing import combine, digest, family, partition, row_hashes, spread

UTC = pa.timestamp("us", tz="UTC")
TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "small": (pa.int8(), st.integers(-128, 127)),
    "flag": (pa.bool_(), st.booleans()),
    "float": (pa.float64(), st.floats()),
    "text": (pa.string(), st.text(max_size=20)),
    "bytes": (pa.large_binary(), st.binary(max_size=20)),
    "day": (pa.date32(), st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))),
    "decimal": (pa.decimal128(10, 2), st.decimals(-1000, 1000, places=2)),
    "list": (pa.list_(pa.string()), st.lists(st.none() | st.text(max_size=3), max_size=4)),
    "map": (
        pa.map_(pa.int32(), pa.string()),
        st.dictionaries(st.integers(0, 9), st.text(max_size=2), max_size=3),
    ),
    "struct": (
        pa.struct({"x": pa.int32(), "y": pa.list_(pa.bool_())}),
        st.fixed_dictionaries(
            {"x": st.none() | st.integers(0, 5), "y": st.none() | st.lists(st.booleans(), max_size=3)}
        ),
    ),
}  # fmt: skip


@st.composite
def tables(draw: st.DrawFn, min_rows: int = 0, max_rows: int = 12) -> pa.Table:
    names = draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=3, unique=True))
    rows = draw(st.integers(min_rows, max_rows))
    columns = {}
    for name in names:
        kind, values = TYPES[name]
        items = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        columns[name] = pa.array([list(v.items()) if isinstance(v, dict) and name == "map" else v for v in items], kind)
    return pa.table(columns)


@st.composite
def layouts(draw: st.DrawFn, table: pa.Table) -> pa.Table:
    """The same rows cut out of a longer table and put together from odd pieces."""
    padded = pa.concat_tables([table, table, table]).combine_chunks()
    middle = padded.slice(table.num_rows, table.num_rows)
    cuts = sorted(draw(st.lists(st.integers(0, table.num_rows), max_size=3)))
    edges = [0, *cuts, table.num_rows]
    return pa.concat_tables([middle.slice(a, b - a) for a, b in pairwise(edges)])


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_chunks_and_slices_change_nothing(data: st.DataObject) -> None:
    table = data.draw(tables())
    other = data.draw(layouts(table))
    assert other.equals(table) or other.num_rows == table.num_rows  # NaN is not equal to itself
    assert np.array_equal(row_hashes(table), row_hashes(other))
    assert digest(table) == digest(other)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_row_order_changes_hashes_with_the_rows_and_the_digest_not_at_all(data: st.DataObject) -> None:
    table = data.draw(tables(min_rows=1))
    order = data.draw(st.permutations(range(table.num_rows)))
    moved = table.take(pa.array(order))
    assert np.array_equal(row_hashes(moved), row_hashes(table)[list(order)])
    assert digest(moved) == digest(table)


def _plain(value: Any) -> Any:
    """What counts as the same value: -0.0 is 0.0, a NaN is a NaN."""
    if isinstance(value, float):
        return "nan" if value != value else value + 0.0
    if isinstance(value, dict):
        # A struct has its fields in one order, whatever order they were given in.
        return repr(sorted((name, _plain(part)) for name, part in value.items()))
    return repr(value)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_digests_are_equal_exactly_when_the_multisets_are(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(set(TYPES) - {"map"})))
    kind, values = TYPES[name]
    left, right = (data.draw(st.lists(st.none() | values, max_size=4)) for _ in range(2))
    same = Counter(map(_plain, left)) == Counter(map(_plain, right))
    assert (digest(pa.table({"x": pa.array(left, kind)})) == digest(pa.table({"x": pa.array(right, kind)}))) == same


@settings(max_examples=100, deadline=None)
@given(st.data(), st.integers(1, 5))
def test_parts_hold_every_row_once_in_order_and_equal_keys_together(data: st.DataObject, slices: int) -> None:
    table = data.draw(tables(max_rows=30))
    key = table.column_names[:1]
    numbered = table.append_column("row", pa.array(np.arange(table.num_rows)))
    parts = partition(numbered, key, slices)
    assert len(parts) == slices
    assert all(part.schema == numbered.schema for part in parts)
    rows = [part["row"].to_pylist() for part in parts]
    assert sorted(chain(*rows)) == list(range(table.num_rows))
    assert all(part == sorted(part) for part in rows)
    homes: dict[int, int] = {}
    for home, part in enumerate(parts):
        for value in row_hashes(part, key).tolist():
            assert homes.setdefault(value, home) == home


@given(st.integers(0, 20), st.integers(1, 5))
def test_spread_deals_rows_out(rows: int, slices: int) -> None:
    parts = spread(pa.table({"row": pa.array(np.arange(rows))}), slices)
    assert [part["row"].to_pylist() for part in parts] == [list(range(i, rows, slices)) for i in range(slices)]


def test_widths_of_numbers_do_not_matter() -> None:
    values = [0, 1, -1, 100, None]
    hashes = [row_hashes(pa.table({"x": pa.array(values, kind)})) for kind in (pa.int8(), pa.int32(), pa.int64())]
    assert np.array_equal(hashes[0], hashes[1])
    assert np.array_equal(hashes[0], hashes[2])
    parts = [1.5, -0.0, float("nan"), None]
    floats = [row_hashes(pa.table({"x": pa.array(parts, kind)})) for kind in (pa.float32(), pa.float64())]
    assert np.array_equal(floats[0], floats[1])
    assert floats[0][1] == row_hashes(pa.table({"x": [0.0]}))[0]


def test_names_and_order_of_columns_count_in_the_digest_only() -> None:
    table = pa.table({"a": [1, 2], "b": [3, 4]})
    renamed = table.rename_columns(["a", "c"])
    assert digest(renamed) != digest(table)
    assert digest(table.select(["b", "a"])) != digest(table)
    assert digest(table.slice(0, 0)) != digest(renamed.slice(0, 0))
    assert np.array_equal(row_hashes(renamed), row_hashes(table))


def test_neighbouring_texts_differ() -> None:
    texts = ["", "\0", "\0\0", "a", "b", "ab", "ba", "a\0", "\0a", "aab", "aba", "baa"]
    assert len(set(row_hashes(pa.table({"x": texts})).tolist())) == len(texts)
    # The texts of Thue and Morse collide under every polynomial modulo 2^64.
    bits = "".join(str(i.bit_count() % 2) for i in range(2048))
    flipped = bits.translate(str.maketrans("01", "10"))
    assert len(set(row_hashes(pa.table({"x": [bits, flipped]})).tolist())) == 2


def test_texts_longer_than_a_block_hash_like_short_ones_and_mix_with_them() -> None:
    long = "x" * 100_000 + "y"
    table = pa.table({"x": ["a", long, "", long[:-1] + "z", "a", "b" * 32768, "c" * 32767]})
    hashes = row_hashes(table)
    alone = [int(row_hashes(table.slice(i, 1))[0]) for i in range(table.num_rows)]
    assert hashes.tolist() == alone
    assert len(set(alone)) == 6


def test_many_rows_span_blocks() -> None:
    n = 100_000
    table = pa.table({"a": np.arange(n) % 1000, "b": [str(i % 777) for i in range(n)]})
    hashes = row_hashes(table)
    assert np.array_equal(hashes[40_000:], row_hashes(table.slice(40_000)))
    assert len(np.unique(hashes)) == n
    parts = partition(table, ["a"], 3)
    assert sum(part.num_rows for part in parts) == n
    assert min(part.num_rows for part in parts) > n // 3 * 0.9


def test_values_are_frozen() -> None:
    """Slices of running topologies depend on these numbers: a change is a change of the format."""
    table = pa.table(
        {
            "i": pa.array([0, 1, None, -5], pa.int32()),
            "f": [0.0, 1.5, None, float("nan")],
            "s": ["", "word", None, "grüße"],
            "d": pa.array([decimal.Decimal("1.10"), decimal.Decimal("-2.00"), None, decimal.Decimal("0.00")]),
            "t": pa.array(
                [dt.datetime(2013, 1, 1, tzinfo=dt.UTC), None, None, dt.datetime(1969, 1, 1, tzinfo=dt.UTC)],
                UTC,
            ),
            "l": [[1, 2], [], None, [3]],
            "b": [True, False, None, True],
        }
    )
    hashes = {name: [f"{v:016x}" for v in row_hashes(table, [name])] for name in table.column_names}
    assert hashes == GOLDEN
    assert digest(table) == "4f1606dbf7e6b9927d5d691187b772f500000004"
    assert (
        combine([(0, digest(table), 4), (1, digest(table), 4)])
        == "b0deeb4c36eb3101affe7d4a5e8565b0ce14fa4eaf8fc42e64d54367c7d94cc2"
    )


GOLDEN = {
    "i": ["2cb0f69f4abea221", "edcc99d7f7403620", "e89d6a373a7329cb", "3c59cfc4a6a8cbe1"],
    "f": ["2cb0f69f4abea221", "bc74670435104f23", "e89d6a373a7329cb", "dcb06fac59874392"],
    "s": ["2cb0f69f4abea221", "4b5ae761e0c4434b", "e89d6a373a7329cb", "44ccc8d222c7764c"],
    "d": ["9a1b1f45797cc0e2", "7b058a091078b21e", "e89d6a373a7329cb", "033c05415474018a"],
    "t": ["170095754ad3f4fa", "e89d6a373a7329cb", "e89d6a373a7329cb", "f446afbaaa880b6f"],
    "l": ["ae1ee96f24dd7610", "2cb0f69f4abea221", "e89d6a373a7329cb", "ae83b53f66d768b4"],
    "b": ["edcc99d7f7403620", "2cb0f69f4abea221", "e89d6a373a7329cb", "edcc99d7f7403620"],
}


def test_equal_dictionary_and_fixed_layouts_hash_alike() -> None:
    plain = pa.array(["a", None, "b", "a"])
    expected = row_hashes(pa.table({"x": plain}))
    for other in (plain.dictionary_encode(), plain.cast(pa.large_string()), plain.cast(pa.string_view())):
        assert np.array_equal(row_hashes(pa.table({"x": other})), expected)
    fixed = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2))
    plain_lists = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64()))
    assert np.array_equal(row_hashes(pa.table({"x": fixed})), row_hashes(pa.table({"x": plain_lists})))


def test_what_cannot_be_hashed_is_named() -> None:
    with pytest.raises(InvalidInput, match="there is no column 'b'"):
        row_hashes(pa.table({"a": [1]}), ["b"])
    months = pa.array([pa.MonthDayNano([1, 2, 3])])
    with pytest.raises(InvalidInput, match="month_day_nano_interval cannot be hashed"):
        row_hashes(pa.table({"a": months}))


ALIKE = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_(), pa.string()),
    *(pa.large_string(), pa.binary(), pa.decimal128(10, 0), pa.decimal128(20, 0), pa.decimal128(10, 2)),
    *(pa.dictionary(pa.int32(), pa.int64()), pa.list_(pa.int32()), pa.list_(pa.int64()), pa.list_(pa.float64())),
    *(pa.struct({"x": pa.int8()}), pa.struct({"y": pa.int64()}), pa.struct({"x": pa.float64()})),
]


def _one(kind: pa.DataType) -> pa.Table:
    """The value 1, in whatever form the type has it."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        value: Any = "1"
    elif pa.types.is_binary(kind):
        value = b"1"
    elif pa.types.is_list(kind):
        value = [1]
    elif pa.types.is_struct(kind):
        value = {kind.field(0).name: 1}
    else:
        value = decimal.Decimal(1) if pa.types.is_decimal(kind) else pa.types.is_boolean(kind) or 1
    column = pa.array([1], pa.int64()).dictionary_encode() if pa.types.is_dictionary(kind) else pa.array([value], kind)
    return pa.table({"key": column})


@pytest.mark.parametrize("left", ALIKE, ids=str)
@pytest.mark.parametrize("right", ALIKE, ids=str)
def test_types_of_one_family_hash_alike_and_only_those(left: pa.DataType, right: pa.DataType) -> None:
    same = bool(row_hashes(_one(left))[0] == row_hashes(_one(right))[0])
    assert same == (family(left) == family(right))


def test_half_of_the_keys_part_where_types_differ() -> None:
    """Why types are compared: 1,000 equal keys as long and as double, two slices."""
    keys = np.arange(1000)
    whole, real = (pa.table({"key": pa.array(keys, kind)}) for kind in (pa.int64(), pa.float64()))
    parted = set(partition(whole, ["key"], 2)[0]["key"].to_pylist()) ^ set(
        map(int, partition(real, ["key"], 2)[0]["key"].to_pylist())
    )
    assert 400 < len(parted) < 600
