"""How much room a prediction needs before it may become a promise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Caution:
    """The margin is `base`, and more for two reasons.

    A broken promise adds at least `step`, and as much as would have kept it; that half is forgotten every `forget_s`.
    Erratic load adds the fastest growth seen lately: what doubled within a cool-down may double again. `limit` bounds
    the sum, because a margin beyond it only says that nothing but an active scheme will do.
    """

    base: float = 0.1
    step: float = 0.25
    forget_s: float = 600.0
    limit: float = 8.0


@dataclass(frozen=True)
class Penalty:
    """What broken promises have added to the margin of a slice, and when that was last counted."""

    amount: float = 0.0
    at: float = 0.0

    def now(self, now: float, caution: Caution) -> float:
        if self.amount <= 0.0:
            return 0.0
        left: float = self.amount * 0.5 ** (max(0.0, now - self.at) / caution.forget_s)
        return left


NO_PENALTY = Penalty()
CAREFUL = Caution()


def after_recovery(
    penalty: Penalty, predicted_s: float, actual_s: float, objective_s: float, now: float, caution: Caution
) -> Penalty:
    """A kept promise changes nothing: the penalty shrinks with time, not with luck."""
    if actual_s <= objective_s:
        return penalty
    missed = actual_s / predicted_s - 1.0 if predicted_s > 0 else 0.0
    # Asked for more than was missed, and never for less than before.
    amount = max(penalty.now(now, caution), missed) + caution.step
    return replace(penalty, amount=min(amount, caution.limit), at=now)


def margins(penalties: Floats, growth: Floats, caution: Caution) -> Floats:
    """For many slices at once."""
    return np.minimum(caution.base + penalties + growth, caution.limit)
