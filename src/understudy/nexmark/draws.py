"""Random numbers that belong to an event, not to a sequence: the same for the same seed, event and purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of SplitMix64 (Steele, Lea and Flood 2014): every bit of the result depends on every bit given."""
    bits = (bits ^ (bits >> _SHIFTS[0])) * _FIRST
    bits = (bits ^ (bits >> _SHIFTS[1])) * _SECOND
    return bits ^ (bits >> _SHIFTS[2])


def below(limit: int | NDArray[np.int64], numbers: NDArray[np.int64], purpose: int, seed: int) -> NDArray[np.int64]:
    """For every event number a whole number from 0 to `limit` - 1.

    A different `purpose` gives independent draws for the same event. Nothing depends on which other events are drawn,
    so an event is the same in whatever epoch and on whatever machine it is made.

    Examples
    --------
    >>> below(6, np.arange(5), purpose=1, seed=7).tolist() == below(6, np.arange(3, 5), purpose=1, seed=7).tolist()
    False
    >>> below(6, np.arange(5), purpose=1, seed=7)[3:].tolist() == below(6, np.arange(3, 5), purpose=1, seed=7).tolist()
    True
    """
    start = _mixed(np.array([seed], np.uint64) * _STEP + np.uint64(purpose))
    drawn = _mixed(start + numbers.astype(np.uint64) * _STEP)
    return (drawn % np.asarray(limit).astype(np.uint64)).astype(np.int64)
