"""What is known of plugs and houses, and what follows from it. Plain Python, no Spark.

Time is cut into slices of an hour, numbered from 1970. Load is in whole milliwatts and work in whole milliwatt-hours;
means and medians are rounded down. So nothing depends on the order in which numbers are added.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

SLICE_S = 3600
A_DAY = 24  # slices
DAYS = 7  # that a prediction looks back
WORK = 0  # the property that is work; the other is load


class Reading(NamedTuple):
    """In order of time, work before load."""

    at: int
    property: int
    value: int


class Load(NamedTuple):
    """The mean load of a plug in a slice; `completed` if it was not measured but follows from the work."""

    slice: int
    load: int
    completed: bool


@dataclass
class Plug:
    """Turns the readings of one plug into loads, and completes those that are missing.

    A slice is over with the first reading of a later one. If its load was never measured, and that reading is work,
    the load is the mean between the last two readings of work.
    """

    slice: int = -1
    sum: int = 0
    count: int = 0
    work: int = -1
    work_at: int = 0

    def read(self, reading: Reading) -> list[Load]:
        """Takes in a reading; returns the loads of the slices that are over by it."""
        now = reading.at // SLICE_S
        over = self._close(reading, now) if self.slice >= 0 and now > self.slice else []
        if now > self.slice:
            self.slice, self.sum, self.count = now, 0, 0
        if reading.property == WORK:
            self.work, self.work_at = reading.value, reading.at
        elif now == self.slice:
            self.sum, self.count = self.sum + reading.value, self.count + 1
        return over

    def _close(self, reading: Reading, now: int) -> list[Load]:
        mean = self._mean_by_work(reading)
        loads = [Load(self.slice, self.sum // self.count, completed=False)] if self.count else []
        missing = range(self.slice + bool(self.count), now)
        return loads + ([] if mean is None else [Load(number, mean, completed=True) for number in missing])

    def _mean_by_work(self, reading: Reading) -> int | None:
        if reading.property != WORK or self.work < 0 or reading.at <= self.work_at:
            return None
        return (reading.value - self.work) * 3600 // (reading.at - self.work_at)


def median(values: Iterable[int]) -> int:
    """The middle one, or the mean of the two in the middle, rounded down.

    >>> median([5, 1, 2]), median([1, 4])
    (2, 2)
    """
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) // 2


class History:
    """The loads of a plug, or of a house, by slice; kept as two lists between two epochs."""

    def __init__(self, slices: Iterable[int] = (), loads: Iterable[int] = ()) -> None:
        self._loads = dict(zip(slices, loads, strict=True))

    def state(self) -> tuple[list[int], list[int]]:
        return list(self._loads), list(self._loads.values())

    def add(self, slice: int, load: int) -> None:
        """Adds to the load of a slice, and forgets what no prediction looks at any more."""
        self._loads[slice] = self._loads.get(slice, 0) + load
        oldest = max(self._loads) - DAYS * A_DAY
        self._loads = {number: load for number, load in self._loads.items() if number >= oldest}

    def predict(self, slice: int) -> int | None:
        """The load two slices later: half way between now and the median of that time of day on earlier days.

        The slice in between is not over yet when this one is. On the first day nothing is known but the load itself.
        None for a slice that is forgotten.
        """
        if slice not in self._loads:
            return None
        now, ahead = self._loads[slice], slice + 2
        before = [self._loads[day] for n in range(1, DAYS + 1) if (day := ahead - n * A_DAY) in self._loads]
        return (now + median(before or [now])) // 2


class Grid:
    """The loads of all plugs in the last slices: whose plugs use more than others?

    Kept between two epochs as the list of all loads, and the last percentages by house.
    """

    def __init__(self, window: int, loads: Iterable[Sequence[int]] = (), shown: Iterable[Sequence[int]] = ()) -> None:
        self._window = window
        self._loads = {(house, plug, slice): load for house, plug, slice, load in loads}
        self._shown = {pair[0]: pair[1] for pair in shown}

    def state(self) -> tuple[list[list[int]], list[list[int]]]:
        return [[*whose, load] for whose, load in self._loads.items()], [list(pair) for pair in self._shown.items()]

    def add(self, house: int, plug: int, slice: int, load: int) -> None:
        self._loads[house, plug, slice] = load

    def outliers(self) -> tuple[int, dict[int, int]]:
        """The newest slice, and how many per cent of a house's plugs have a median load above the median of all loads.

        Houses are named where the percentage has changed.
        """
        newest = max(slice for _, _, slice in self._loads)
        self._loads = {whose: load for whose, load in self._loads.items() if whose[2] > newest - self._window}
        overall = median(self._loads.values())
        plugs: dict[tuple[int, int], list[int]] = {}
        for (house, plug, _), load in self._loads.items():
            plugs.setdefault((house, plug), []).append(load)
        above: dict[int, list[bool]] = {}
        for (house, _), loads in plugs.items():
            above.setdefault(house, []).append(median(loads) > overall)
        found = {house: 100 * sum(marks) // len(marks) for house, marks in above.items()}
        changed = {house: percent for house, percent in found.items() if self._shown.get(house) != percent}
        self._shown |= changed
        return newest, changed
