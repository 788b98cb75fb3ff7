"""As many nodes as keep their cores busy to a target, by what they used lately."""

from __future__ import annotations

from collections.abc import Sequence

from understudy.control.scaling.demand import nodes_for
from understudy.control.scaling.sample import Sample, Wish
from understudy.model.config import ScalingSection

LATEST = 3
"""Samples that are averaged: one alone may be a burst."""


def suggest(history: Sequence[Sample], limits: ScalingSection) -> Wish:
    return nodes_for(lately(history), history[-1], limits, "the work takes")


def lately(history: Sequence[Sample]) -> float:
    """The cores that were busy, on the average of the last samples."""
    latest = history[-LATEST:]
    return sum(one.busy_cores for one in latest) / len(latest)
