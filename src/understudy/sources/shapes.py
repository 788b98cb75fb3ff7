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
"""Maps seconds since the first epoch to rows a second and slice; must return the same value every time."""

_MASK = (1 << 64) - 1


def rows_at(rate: Rate, seconds: float, epoch_s: float) -> int:
    """Returns the rows of an epoch that begins at this second, to the nearest row.

    Parameters
    ----------
    rate : callable
        Maps seconds since the first epoch to rows a second.
    seconds : float
        When the epoch begins.
    epoch_s : float
        Length of the epoch.

    Returns
    -------
    int

    Raises
    ------
    InvalidInput
        If the rate is negative or not finite.

    Examples
    --------
    >>> rows_at(Constant(10.0), 0.0, 0.25)
    3
    """
    value = rate(seconds)
    if not (isfinite(value) and value >= 0):
        raise InvalidInput(
            f"the rate at {seconds:g} s is {value}",
            why="rows a second are counted, so a rate is 0 or more",
            fix="let the function of the rate return a number, 0 or more, for every second",
        )
    return floor(value * epoch_s + 0.5)


@dataclass(frozen=True)
class Constant:
    """The same rate at any time.

    Parameters
    ----------
    rate : float, optional
        Rows a second and slice. Default: 1000.

    Examples
    --------
    >>> Constant(500.0)(12.5)
    500.0
    """

    name: ClassVar[str] = "constant"
    rate: float = 1000.0

    def __call__(self, seconds: float) -> float:  # noqa: ARG002 - the interface's
        return self.rate


@dataclass(frozen=True)
class Diurnal:
    """A smooth day: the rate rises from `low` times `rate` to `rate` and falls again.

    Parameters
    ----------
    rate : float, optional
        Rows a second and slice at noon. Default: 1000.
    low : float, optional
        Share of the rate at midnight. Default: 0.2.
    day_s : float, optional
        Length of a day in seconds. Default: 240.

    Examples
    --------
    >>> day = Diurnal(1000.0)
    >>> day(0.0), day(120.0)
    (200.0, 1000.0)
    """

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
    """A steady rate with a spike at the end of every period: by default five times the rate for 2 s in every 20 s.

    Spikes of 2 s in every 20 s are the load of Martin 2015, §6.3.4; their height is our choice.

    Parameters
    ----------
    rate : float, optional
        Rows a second and slice between spikes. Default: 1000.
    height : float, optional
        How many times the rate a spike has. Default: 5.
    every_s : float, optional
        Length of a period in seconds. Default: 20.
    for_s : float, optional
        Length of a spike in seconds. Default: 2.

    Examples
    --------
    >>> load = Spikes(1000.0)
    >>> load(0.0), load(19.0)
    (1000.0, 5000.0)
    """

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
    """A rate that jumps from one level to the next and starts again after the last.

    Parameters
    ----------
    rate : float, optional
        Rows a second and slice of level 1. Default: 1000.
    factors : tuple of float, optional
        The levels, as multiples of the rate. Default: 1, 3, 6, 2.
    each_s : float, optional
        Seconds at each level. Default: 60.

    Examples
    --------
    >>> load = Steps(100.0)
    >>> [load(60.0 * minute) for minute in range(5)]
    [100.0, 300.0, 600.0, 200.0, 100.0]
    """

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
    """A month of short messages, compressed: a rhythm of hours and weekdays, and bursts.

    Made up after the description in Martin 2015, §7.4.1, of a recorded month that is not public: a steady daily rhythm,
    and rates that multiply within moments. A burst fades over four hours.

    Parameters
    ----------
    rate : float, optional
        Mean rows a second and slice without bursts. Default: 1000.
    month_s : float, optional
        Seconds in which the month passes. Default: 720.
    seed : int, optional
        Decides when bursts begin, and how strong they are. Default: 0.
    calm : int, optional
        One hour in so many begins a burst. Default: 24.
    height : float, optional
        The strongest burst multiplies the rate by this. Default: 5.

    Examples
    --------
    >>> load = Messages(1000.0)
    >>> round(load(0.0)), round(load(0.5)), load(720.0) == load(0.0)
    (583, 489, True)
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
    """Scatters consecutive numbers over 64 bits: the finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    number = (number + 0x9E3779B97F4A7C15) & _MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)


Shape = Constant | Diurnal | Spikes | Steps | Messages
SHAPES: dict[str, type[Shape]] = {kind.name: kind for kind in (Constant, Diurnal, Spikes, Steps, Messages)}


def named(name: str, rate: float) -> Shape:
    """Returns a shape by its name, with its other parameters at their defaults.

    Parameters
    ----------
    name : {"constant", "diurnal", "spikes", "steps", "messages"}
        Name of the shape; the examples take it as ``--set shape=spikes``.
    rate : float
        Rows a second and slice.

    Returns
    -------
    Constant, Diurnal, Spikes, Steps or Messages

    Raises
    ------
    InvalidInput
        If there is no shape of that name.

    Examples
    --------
    >>> named("spikes", 200.0)
    Spikes(rate=200.0, height=5.0, every_s=20.0, for_s=2.0)
    """
    if name not in SHAPES:
        raise InvalidInput(
            f"there is no load shape '{name}'", why="shapes have names", fix=f"use one of {', '.join(SHAPES)}"
        )
    return SHAPES[name](rate=rate)
