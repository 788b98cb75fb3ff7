"""How much room a prediction needs before it may become a promise."""

from __future__ import annotations

from dataclasses import dataclass, replace

from understudy.control.schemes.history import Error
from understudy.model.config import DEFAULTS, ControllerSection

_USUAL = DEFAULTS.controller


@dataclass(frozen=True)
class Caution:
    """A prediction is widened by `base`, and by more after broken promises.

    Each adds at least `step`, and as much as would have kept it; half of that is forgotten every `forget_s`. `limit`
    bounds it, because a margin beyond says only that nothing but an active scheme will do. Erratic load comes on top:
    what jumped lately may jump again (`estimates.jump_s`).
    """

    base: float = _USUAL.margin_share
    step: float = _USUAL.margin_step
    forget_s: float = _USUAL.margin_half_life_s
    limit: float = _USUAL.margin_limit

    @classmethod
    def of(cls, section: ControllerSection) -> Caution:
        return cls(section.margin_share, section.margin_step, section.margin_half_life_s, section.margin_limit)


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


def after_recovery(penalty: Penalty, error: Error, now: float, caution: Caution) -> Penalty:
    """A kept promise changes nothing: the penalty shrinks with time, not with luck."""
    if not error.broken:
        return penalty
    missed = error.actual_s / error.predicted_s - 1.0 if error.predicted_s > 0 else 0.0
    # Asked for more than was missed, and never for less than before.
    amount = max(penalty.now(now, caution), missed) + caution.step
    return replace(penalty, amount=min(amount, caution.limit), at=now)
