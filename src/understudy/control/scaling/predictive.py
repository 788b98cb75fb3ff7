"""As many nodes as the work will need when a new one could be there: the trend of the last minutes goes on.

A straight line through what was measured, never below what is needed now. It comes before a rise that lasts; against a
jump it is as late as `target_cpu`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from understudy.control.scaling import target_cpu
from understudy.control.scaling.demand import nodes_for
from understudy.control.scaling.sample import Sample, Wish
from understudy.model.config import ScalingSection

LEAST = 4
"""Samples that make a trend, over no less than it is told ahead."""
WINDOWS = 3
"""It is seen over so many times what it is told ahead."""


def suggest(history: Sequence[Sample], limits: ScalingSection) -> Wish:
    now = history[-1]
    seen = [one for one in history if now.age_s - one.age_s <= WINDOWS * limits.ahead_s]
    if len(seen) < LEAST or now.age_s - seen[0].age_s < limits.ahead_s:
        return target_cpu.suggest(history, limits)
    ages = np.array([one.age_s - now.age_s for one in seen])
    slope, level = np.polyfit(ages, np.array([one.busy_cores for one in seen]), 1)
    expected = max(target_cpu.lately(history), float(level + slope * limits.ahead_s))
    return nodes_for(expected, now, limits, f"in {limits.ahead_s:.0f} s the work will take")
