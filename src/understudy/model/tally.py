"""What a sink has delivered, in a few numbers. Epochs are taken in one after the other and need not be kept."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from understudy.model import hashing
from understudy.model.messages import Receipt
from understudy.model.run import Rhythm

FINE_S = 1.0
"""Delays up to here are counted by the millisecond, longer ones by steps of a thousandth."""
_STEP = math.log(1.001)
_FINE = round(FINE_S * 1000)


@dataclass(frozen=True)
class Tally:
    """`epochs` were delivered from the first on without a gap; everything else is about them.

    `digest` covers them in order, `duplicates` of them were written twice. `last_at` is when the newest was delivered,
    `max_gap_s` the longest pause between two. `delayed_at_most_s` counts from `rhythm_at`, the time at which the run's
    present rhythm began: a run that goes on after a pause begins a new one.
    """

    epochs: int = 0
    rows: int = 0
    digest: str = hashing.NOTHING
    duplicates: int = 0
    last_at: float | None = None
    max_gap_s: float = 0.0
    rhythm_at: float | None = None
    delayed_at_most_s: float | None = None


@dataclass(frozen=True)
class Taken:
    """A tally with more epochs in it. `delays` are those of the new epochs, by bucket; `anew`: forget the earlier."""

    tally: Tally
    delays: Counter[int]
    anew: bool


def take(tally: Tally, receipts: Iterable[Receipt], rhythm: Rhythm | None = None) -> Taken:
    """Takes receipts in, which must be in epoch order; those of the next epochs make no gap."""
    paced = rhythm is not None and not rhythm.fast
    anew = rhythm is not None and paced and rhythm.time != tally.rhythm_at
    if anew and rhythm is not None:
        tally = replace(tally, rhythm_at=rhythm.time, delayed_at_most_s=None)
    epochs, rows, digest = tally.epochs, tally.rows, tally.digest
    last_at, max_gap, most = tally.last_at, tally.max_gap_s, tally.delayed_at_most_s
    delays: Counter[int] = Counter()
    for receipt in receipts:
        epochs, rows = epochs + 1, rows + receipt.rows
        digest = hashing.chain(digest, receipt.epoch, receipt.digest, receipt.rows)
        if last_at is not None and receipt.at - last_at > max_gap:
            max_gap = receipt.at - last_at
        last_at = receipt.at
        if rhythm is not None and paced and receipt.epoch >= rhythm.epoch:
            delay = receipt.at - rhythm.due(receipt.epoch)
            delays[bucket(delay)] += 1
            most = delay if most is None or delay > most else most
    changed = replace(
        tally, epochs=epochs, rows=rows, digest=digest, last_at=last_at, max_gap_s=max_gap, delayed_at_most_s=most
    )
    return Taken(changed, delays, anew)


def bucket(delay_s: float) -> int:
    """Which delays count as the same; an epoch that came before its time has none."""
    if delay_s <= FINE_S:
        return max(0, round(delay_s * 1000))
    return _FINE + round(math.log(delay_s / FINE_S) / _STEP)


def delay_of(number: int) -> float:
    """The delay a bucket stands for."""
    return number / 1000 if number <= _FINE else FINE_S * math.exp((number - _FINE) * _STEP)


def median(delays: Mapping[int, int]) -> float | None:
    """Of all delays that were counted: exact to a millisecond up to a second, to a thousandth beyond."""
    total = sum(delays.values())
    if not total:
        return None
    middle = ((total - 1) // 2, total // 2)
    found, passed = [], 0
    for number in sorted(delays):
        found += [delay_of(number) for wanted in middle if passed <= wanted < passed + delays[number]]
        passed += delays[number]
    return sum(found) / len(found)
