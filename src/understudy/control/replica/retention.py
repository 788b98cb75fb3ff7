"""Which shipped checkpoints a slice keeps, and how much of its input it gives away.

A bag that a reader may still ask for can be damaged at any time. To make it again, its slice needs a state from before
that epoch and the input since. So a slice keeps, besides its two newest checkpoints, the newest one that is not newer
than what all its readers have acknowledged: the *base*. It acknowledges its own input up to the base only, and the
slices above it then do the same for the bags it may read again.

Checkpoints between the base and the two newest are dropped, but for the oldest: it becomes the base when the readers
have come that far. So a slice never keeps more than four, however far behind its readers are.

Positions count from the newest checkpoint, 0. `released` is the newest epoch that all readers of the slice have
acknowledged, -1 if there is none.
"""

from __future__ import annotations

from collections.abc import Sequence

NEWEST = 2
"""Should the newest checkpoint turn out to be damaged, a successor starts from the one before it. Files that did not
change between the two are one copy, so damage to such a file reaches both."""


def base(epochs: Sequence[int], released: int) -> int | None:
    """The position of the checkpoint from which every bag that is still needed can be made; None: from the start."""
    return next((n for n, epoch in enumerate(epochs) if n >= NEWEST - 1 and epoch <= released), None)


def acknowledgeable(epochs: Sequence[int], released: int) -> int:
    """The newest epoch of its input that a slice never needs again, -1 if it needs everything."""
    found = base(epochs, released)
    return -1 if found is None else epochs[found]


def kept(epochs: Sequence[int], released: int) -> frozenset[int]:
    """The positions of the checkpoints to keep."""
    found = base(epochs, released)
    between = range(NEWEST, len(epochs) if found is None else found)
    return frozenset([*range(min(NEWEST, len(epochs))), *between[-1:], *([] if found is None else [found])])
