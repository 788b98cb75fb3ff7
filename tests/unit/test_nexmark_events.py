"""The events of Nexmark: proportions, ids, hot ones, times; the same however they are cut into epochs."""

from __future__ import annotations

import doctest
import importlib
from collections import Counter
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.errors import InvalidInput
from understudy.model.schema import conform, parse
from understudy.nexmark.draws import below
from understudy.nexmark.events import AUCTION, BID, PERSON, SCHEMA, START, Events
from understudy.sources import Generator

ROWS = 50_000


def made(rows: int, seed: int = 0, group: int = 1) -> pa.Table:
    return Events(1000.0, rows / 1000, seed, group).make(0, 0, rows, None)


@pytest.fixture(scope="module")
def events() -> pa.Table:
    return made(ROWS)


def of(events: pa.Table, kind: int) -> pa.Table:
    return events.filter(pc.equal(events["kind"], kind))


def test_one_person_three_auctions_and_46_bids_in_fifty(events: pa.Table) -> None:
    assert Counter(events["kind"].to_pylist()) == {PERSON: ROWS // 50, AUCTION: ROWS * 3 // 50, BID: ROWS * 46 // 50}


def test_people_and_auctions_are_numbered_without_a_gap(events: pa.Table) -> None:
    assert of(events, PERSON)["person"].to_pylist() == list(range(1000, 1000 + ROWS // 50))
    assert of(events, AUCTION)["auction"].to_pylist() == list(range(1000, 1000 + ROWS * 3 // 50))


def test_half_of_the_bids_go_to_hot_auctions_and_most_come_from_hot_bidders(events: pa.Table) -> None:
    bids = of(events, BID).to_pydict()
    hot_auction = sum(auction % 100 == 0 for auction in bids["auction"]) / len(bids["auction"])
    hot_bidder = sum(bidder % 100 == 1 for bidder in bids["person"]) / len(bids["person"])
    sellers = of(events, AUCTION)["person"].to_pylist()
    hot_seller = sum(seller % 100 == 0 for seller in sellers) / len(sellers)
    assert hot_auction == pytest.approx(0.5, abs=0.03)
    assert hot_bidder == pytest.approx(0.75, abs=0.03)
    assert hot_seller == pytest.approx(0.75, abs=0.03)


def test_ids_name_what_is_there_or_comes_soon(events: pa.Table) -> None:
    newest = {"person": 1000, "auction": 999}
    ahead = Counter[str]()
    for row in events.to_pylist():
        if row["kind"] == PERSON:
            newest["person"] = row["person"]
        elif row["kind"] == AUCTION:
            newest["auction"] = row["auction"]
        for name in ("person", "auction"):
            if row[name] is not None:
                assert 1000 <= row[name] <= newest[name] + 10
                ahead[name] += row[name] > newest[name]
    assert min(ahead.values()) > 10, "a bid before its auction is part of the benchmark"


def test_times_follow_from_the_number_and_auctions_end_after_they_begin(events: pa.Table) -> None:
    times = events["at"].to_pylist()
    assert times[0] == START
    assert times == [START + timedelta(milliseconds=n) for n in range(ROWS)]
    lengths = [
        (row["expires"] - row["at"]) / timedelta(seconds=1) for row in of(events, AUCTION).slice(0, 2000).to_pylist()
    ]
    # A hundred auctions are open on average: the time in which a hundred new ones come.
    assert sum(lengths) / len(lengths) == pytest.approx(100 / 60, rel=0.1)
    assert min(lengths) > 0


def test_every_kind_has_its_columns_and_its_size(events: pa.Table) -> None:
    everywhere = {"number", "kind", "at", "person", "extra"}
    columns = {
        PERSON: {"name", "email", "card", "city", "state"},
        AUCTION: {"auction", "item", "description", "initial", "reserve", "expires", "category"},
        BID: {"auction", "price", "channel", "url"},
    }
    for kind, own in columns.items():
        rows = of(events, kind)
        there = {name for name in rows.column_names if rows[name].null_count < len(rows)}
        assert there == everywhere | own
        assert all(rows[name].null_count == 0 for name in there)
    # The benchmark asks for 200, 500 and 100 bytes; it does not count the address and the channel of a bid.
    for kind, size in {PERSON: 200, AUCTION: 500, BID: 100}.items():
        counted = [name for name in everywhere | columns[kind] if name not in ("number", "kind", "channel", "url")]
        rows = of(events, kind).to_pylist()[:1000]
        bytes_ = sum(len(row[name]) if isinstance(row[name], str) else 8 for row in rows for name in counted)
        assert bytes_ / 1000 == pytest.approx(size, rel=0.12)


def test_rows_have_the_declared_schema(events: pa.Table) -> None:
    schema = parse(SCHEMA)
    assert sorted(events.column_names) == sorted(schema.names)
    assert conform(events, schema).schema == schema


@given(st.integers(1, 400), st.integers(1, 400), st.integers(0, 2**32), st.sampled_from((1, 7, 100)))
def test_an_event_is_the_same_in_whatever_epoch(one: int, other: int, seed: int, group: int) -> None:
    """However the stream is cut, together the epochs have the same events, in the same order."""
    whole = Events(100.0, 8.0, seed, group).make(0, 0, 800, None)
    for size in (one, other):
        epochs = Events(100.0, size / 100, seed, group)
        assert epochs.make(0, 0, size, None) == whole.slice(0, size)
        assert epochs.make(1, 0, size, None) == whole.slice(size, size)


def test_groups_put_events_out_of_order_and_lose_none() -> None:
    mixed, ordered = made(1000, group=200), made(1000)
    assert mixed != ordered
    assert mixed.sort_by("number") == ordered
    numbers = mixed["number"].to_numpy()
    assert (numbers // 200 == np.arange(1000) // 200).all()


def test_another_seed_makes_other_events_at_the_same_times() -> None:
    one, other = made(1000, seed=1), made(1000, seed=2)
    assert one["at"] == other["at"]
    assert one["price"] != other["price"]


def test_a_start_and_a_broken_rate_are_exact() -> None:
    start = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
    rows = Events(0.3, 100.0, start=start).make(1, 0, 30, None)
    assert rows["number"][0].as_py() == 30
    assert rows["at"][0].as_py() == start + timedelta(seconds=100)
    assert rows["at"][1].as_py() == start + timedelta(seconds=103, milliseconds=333)


@pytest.mark.parametrize("group", [0, 953, 1906])
def test_a_group_that_would_lose_events_is_refused(group: int) -> None:
    with pytest.raises(InvalidInput, match="group"):
        made(10, group=group)


def test_the_source_reads_what_is_made() -> None:
    source = Generator(Events(70.0, 0.5, 5).make, SCHEMA, rate=70.0)
    reader = source.open(0, 1, 0.5)
    tables = [reader.read(epoch, None, None) for epoch in range(4)]
    assert [table.num_rows for table in tables] == [35] * 4
    assert pa.concat_tables(tables)["number"].to_pylist() == list(range(140))


def test_draws_are_even_and_independent() -> None:
    numbers = np.arange(100_000)
    one, other = below(10, numbers, 1, 0), below(10, numbers, 2, 0)
    assert abs(np.bincount(one) - 10_000).max() < 500
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.02
    assert abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < 0.02


@pytest.mark.parametrize("module", ["draws", "events", "figures"])
def test_every_doctest_shows_what_happens(module: str) -> None:
    found = doctest.testmod(importlib.import_module(f"understudy.nexmark.{module}"))
    assert found.attempted
    assert not found.failed
