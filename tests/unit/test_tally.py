"""A tally says of all epochs what reading every receipt again would say."""

from __future__ import annotations

import statistics
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.model import hashing
from understudy.model.messages import Receipt
from understudy.model.run import Rhythm
from understudy.model.tally import Tally, bucket, delay_of, median, take

RHYTHM = Rhythm(epoch=0, time=1000.0, epoch_s=1.0)
DELAYS = st.floats(0.0, 5000.0)


def receipts(delays: list[float], first: int = 0) -> list[Receipt]:
    return [
        Receipt(sink="out", epoch=epoch, rows=epoch % 7, digest=f"d{epoch}", at=RHYTHM.due(epoch) + delay)
        for epoch, delay in enumerate(delays, first)
    ]


@settings(deadline=None)
@given(st.lists(DELAYS, max_size=30), st.data())
def test_taken_in_pieces_or_at_once_a_tally_is_the_same(delays: list[float], data: st.DataObject) -> None:
    everything = receipts(delays)
    cut = data.draw(st.integers(0, len(everything)))
    whole = take(Tally(), everything, RHYTHM)
    first = take(Tally(), everything[:cut], RHYTHM)
    second = take(first.tally, everything[cut:], RHYTHM)
    assert second.tally == whole.tally
    assert first.delays + second.delays == whole.delays


@settings(deadline=None)
@given(st.lists(DELAYS, min_size=1, max_size=30))
def test_a_tally_agrees_with_the_receipts_it_stands_for(delays: list[float]) -> None:
    everything = receipts(delays)
    tally = take(Tally(), everything, RHYTHM).tally
    assert tally.epochs == len(everything)
    assert tally.rows == sum(r.rows for r in everything)
    assert tally.digest == hashing.combine((r.epoch, r.digest, r.rows) for r in everything)
    assert tally.last_at == everything[-1].at
    assert tally.max_gap_s == max([0.0, *(b.at - a.at for a, b in pairwise(everything))])
    assert tally.delayed_at_most_s == max(r.at - RHYTHM.due(r.epoch) for r in everything)


@settings(deadline=None)
@given(st.lists(DELAYS, min_size=1, max_size=50))
def test_the_median_is_known_to_a_millisecond_or_a_thousandth(delays: list[float]) -> None:
    found = median(take(Tally(), receipts(delays), RHYTHM).delays)
    assert found == pytest.approx(statistics.median(delays), abs=0.0006, rel=0.0006)


@settings(deadline=None)
@given(DELAYS, DELAYS)
def test_a_longer_delay_never_has_a_lower_bucket(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert bucket(low) <= bucket(high)
    assert delay_of(bucket(low)) == pytest.approx(low, abs=0.0005001, rel=0.0005001)


def test_buckets_are_few_however_long_the_delay() -> None:
    assert bucket(-3.0) == 0
    assert bucket(30 * 24 * 3600.0) < 20_000


def test_a_new_rhythm_begins_new_delays() -> None:
    before = take(Tally(), receipts([50.0, 60.0]), RHYTHM)
    later = Rhythm(epoch=2, time=9000.0, epoch_s=1.0)
    resumed = Receipt(sink="out", epoch=2, rows=1, digest="d2", at=9000.2)
    after = take(before.tally, [resumed], later)
    assert (before.anew, after.anew) == (True, True)
    assert after.tally.delayed_at_most_s == pytest.approx(0.2)
    assert dict(after.delays) == {200: 1}
    assert not take(after.tally, [], later).anew


@pytest.mark.parametrize("rhythm", [None, Rhythm(epoch=0, time=0.0, epoch_s=1.0, fast=True)])
def test_a_fast_run_has_no_delays(rhythm: Rhythm | None) -> None:
    taken = take(Tally(), receipts([1.0, 2.0]), rhythm)
    assert (taken.tally.delayed_at_most_s, taken.delays, taken.anew) == (None, {}, False)
    assert median(taken.delays) is None


def test_the_digest_of_a_stream_goes_on_from_the_digest_of_its_beginning() -> None:
    epochs = [(epoch, f"d{epoch}", 3) for epoch in range(6)]
    whole = hashing.combine(epochs)
    assert hashing.combine(epochs[4:], before=hashing.combine(epochs[:4])) == whole
    assert hashing.combine(epochs[:5]) != whole
    assert hashing.combine([epochs[1], epochs[0], *epochs[2:]]) != whole
    assert hashing.combine([]) == hashing.NOTHING
