"""Named load shapes: rows a second at any second of a run, for `Generator(…, rate=shapes.Spikes(1000))`.

Each is a pure function of the time, which follows from the epoch, and uses only arithmetic that is the same on every
machine: no sine, no clock, no chance but a hash of a seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, isfinite
from typing import ClassVar

from understudy.errors import InvalidInput

Rate = Callable[[float], float]
"""Rows a second and slice, so many seconds after the first epoch; must always answer the same."""

_MASK = (1 << 64) - 1


def rows_at(rate: Rate, seconds: float, epoch_s: float) -> int:
    """The rows of an epoch that begins at this second, to the nearest row."""
    value = rate(seconds)
    if not (isfinite(value) and value >= 0):
        raise InvalidInput(
            f"the rate at {seconds:g} s is {value}",
            why="rows a second are counted, so a rate is 0 or more",
            fix="let the function of the rate answer a number for every second",
        )
    return floor(value * epoch_s + 0.5)


@dataclass(frozen=True)
class Constant:
    name: ClassVar[str] = "constant"
    rate: float = 1000.0

    def __call__(self, seconds: float) -> float:  # noqa: ARG002 - the interface's
        return self.rate


@dataclass(frozen=True)
class Diurnal:
    """Quiet at night, busy by day: from `low` of the rate to all of it and back in `day_s` seconds, smoothly."""

    name: ClassVar[str] = "diurnal"
    rate: float = 1000.0
    low: float = 0.2
    day_s: float = 240.0

    def __call__(self, seconds: float) -> float:
        part = (seconds % self.day_s) / self.day_s
        hill = 4.0 * part * (1.0 - part)
        return self.rate * (self.low + (1.0 - self.low) * hill * hill * (3.0 - 2.0 * hill))


@dataclass(frozen=True)
class Spikes:
    """`height` times the rate for two seconds in every twenty, as in the experiments of seed 004, chapter 6."""

    name: ClassVar[str] = "spikes"
    rate: float = 1000.0
    height: float = 5.0
    every_s: float = 20.0
    for_s: float = 2.0

    def __call__(self, seconds: float) -> float:
        # The spike ends the period: a run does not begin with one.
        return self.rate * (self.height if seconds % self.every_s >= self.every_s - self.for_s else 1.0)


@dataclass(frozen=True)
class Steps:
    name: ClassVar[str] = "steps"
    rate: float = 1000.0
    factors: tuple[float, ...] = (1.0, 3.0, 6.0, 2.0)
    each_s: float = 60.0

    def __call__(self, seconds: float) -> float:
        return self.rate * self.factors[int(seconds // self.each_s) % len(self.factors)]


# Messages an hour of a day and day of a week, against the mean: nights are quiet, evenings and Sundays are not.
_HOURS = (0.62, 0.42, 0.3, 0.24, 0.22, 0.26, 0.4, 0.64, 0.86, 0.98, 1.06, 1.12,
          1.2, 1.18, 1.12, 1.1, 1.14, 1.22, 1.34, 1.52, 1.7, 1.78, 1.52, 1.06)  # fmt: skip
_DAYS = (0.94, 0.95, 0.97, 0.99, 1.03, 1.02, 1.1)


@dataclass(frozen=True)
class Messages:
    """A month of short messages in `month_s` seconds: hours, weekdays, and bursts when something happens.

    Made up after the shape the seeds describe for their recorded month, which is not public: a steady daily rhythm, and
    rates that multiply within moments. One hour in `calm` begins a burst that fades over four hours.
    """

    name: ClassVar[str] = "messages"
    rate: float = 1000.0
    month_s: float = 720.0
    seed: int = 0
    calm: int = 24
    height: float = 5.0

    def __call__(self, seconds: float) -> float:
        hours = (seconds % self.month_s) * (30 * 24) / self.month_s
        hour = int(hours)
        rhythm = _HOURS[hour % 24] + (_HOURS[(hour + 1) % 24] - _HOURS[hour % 24]) * (hours - hour)
        burst = sum(self._burst(begun) * (1.0 - (hours - begun) / 4.0) for begun in range(max(0, hour - 3), hour + 1))
        return self.rate * rhythm * _DAYS[hour // 24 % 7] * (1.0 + burst)

    def _burst(self, hour: int) -> float:
        """How strong a burst begins in this hour, mostly 0."""
        number = _mix(self.seed * 100_003 + hour)
        return 0.0 if number % self.calm else (self.height - 1.0) * ((number >> 32) % 1000) / 1000.0


def _mix(number: int) -> int:
    """Numbers that follow each other become numbers that do not (the finaliser of SplitMix64)."""
    number = (number + 0x9E3779B97F4A7C15) & _MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)


Shape = Constant | Diurnal | Spikes | Steps | Messages
SHAPES: dict[str, type[Shape]] = {kind.name: kind for kind in (Constant, Diurnal, Spikes, Steps, Messages)}


def named(name: str, rate: float) -> Shape:
    """A shape by its name, with everything else as it comes: `--set shape=spikes` in the examples."""
    if name not in SHAPES:
        raise InvalidInput(
            f"there is no load shape '{name}'", why="shapes have names", fix=f"use one of {', '.join(SHAPES)}"
        )
    return SHAPES[name](rate=rate)
