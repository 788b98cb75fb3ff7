"""What policies read and answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from understudy.model.config import ScalingSection


@dataclass(frozen=True)
class Sample:
    """The nodes that take primaries, at one moment. `age_s` is the age of the run, `at` the time of day."""

    age_s: float
    at: float
    nodes: int
    busy_cores: float
    """That all of them used together."""
    cores: int
    """That each has."""
    behind: int
    """Epochs by which the slowest primary is behind its input."""


@dataclass(frozen=True)
class Wish:
    nodes: int
    reason: str


Policy = Callable[[Sequence[Sample], ScalingSection], Wish]
"""Samples, oldest first and at least one, and the settings; the number of nodes there should be."""
