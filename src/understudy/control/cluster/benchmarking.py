"""The second detector of Zhang et al. 2010 (section IV-A): a host is slow if a known piece of work takes long.

The time for a fixed set of rows is taken once on an idle machine. While the CPU load is above a threshold, the set is
processed again; if it takes too much longer, the machine counts as unavailable. Only the decision is here: whoever
measures tells it load and seconds. Off by default, because bursts that hurt nobody set it off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from understudy.errors import InvalidInput
from understudy.model.config import DEFAULTS


@dataclass(frozen=True)
class BenchmarkDetector:
    """`idle_s`: the time of the set on an idle machine; `load`: share of CPU above which it is worth asking."""

    idle_s: float
    load: float = DEFAULTS.detector.benchmark_load
    slow: float = DEFAULTS.detector.benchmark_slowdown

    def asks(self, load: float) -> bool:
        """Whether the set should be processed now."""
        return load >= self.load

    def alarm(self, load: float, took_s: float | None) -> bool:
        return took_s is not None and self.asks(load) and took_s > self.slow * self.idle_s


def calibrated(
    times: Sequence[float],
    load: float = DEFAULTS.detector.benchmark_load,
    slow: float = DEFAULTS.detector.benchmark_slowdown,
) -> BenchmarkDetector:
    """From some rounds; the fastest of them, because whatever else went on then made the others slower."""
    if not times or not all(time > 0 for time in times):
        raise InvalidInput(
            "no time to compare with", why="the fixed set was not measured", fix="measure it on an idle machine first"
        )
    return BenchmarkDetector(min(times), load, slow)


@dataclass(frozen=True)
class Score:
    """How a detector did: spikes noticed, alarms with no spike, the mean delay of those noticed, and per hour."""

    spikes: int
    noticed: int
    alarms: int
    false_alarms: int
    delay_s: float | None
    watched_s: float

    @property
    def false_per_hour(self) -> float:
        return 3600 * self.false_alarms / self.watched_s if self.watched_s > 0 else 0.0


def score(alarms: Sequence[float], spikes: Sequence[tuple[float, float]], watched_s: float) -> Score:
    """Alarms at these moments, against the spans in which the machine really was too busy."""
    firsts = [next((at for at in sorted(alarms) if begin <= at <= end), None) for begin, end in spikes]
    delays = [at - begin for at, (begin, _) in zip(firsts, spikes, strict=True) if at is not None]
    false = sum(not any(begin <= at <= end for begin, end in spikes) for at in alarms)
    mean = sum(delays) / len(delays) if delays else None
    return Score(len(spikes), len(delays), len(alarms), false, mean, watched_s)
