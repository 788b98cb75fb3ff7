"""What a rule of placement is asked, in arrays: one entry for every host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SLACK = 1e-9
"""Loads are sums of fractions: a smaller difference is none."""


@dataclass(frozen=True, eq=False)
class Question:
    """Where does a replica go whose primary is, or was, on the host `home`?

    `able` are the hosts that may take it, at least one. `share` is what every host would take over from `home` if that
    were lost, `load` what it carries altogether.
    """

    home: int
    able: Bools
    share: Floats
    load: Floats


Rule = Callable[[Question], int]
"""The number of the host."""


def least(able: Bools, amounts: Floats) -> Bools:
    """Those of the able hosts that have the least."""
    lowest = amounts[able].min()
    found: Bools = able & (amounts <= lowest + SLACK)
    return found


def first(able: Bools) -> int:
    return int(np.argmax(able))
