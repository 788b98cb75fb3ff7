"""Whether a recovery kept its objective, and if not, why."""

from __future__ import annotations

from collections.abc import Mapping

from understudy.model.capabilities import rank
from understudy.model.recovery import Scheme


def missed(
    objective_s: float | None,
    away_s: float,
    wanted: Scheme,
    protected_by: Scheme,
    steps: Mapping[str, float],
    predicted: Mapping[str, float] | None,
) -> str | None:
    """The reason in a sentence; None if the promise was kept, or none was made."""
    if objective_s is None or away_s <= objective_s:
        return None
    broken = f"away for {away_s:.2f} s instead of {objective_s:g} s"
    if rank(protected_by) < rank(wanted):
        wished, there = (scheme.replace("_", " ") for scheme in (wanted, protected_by))
        return f"{broken}: {wished} was not established yet, {there} was all there was"
    if predicted is None:
        return f"{broken}: too little was known to predict anything"
    name, excess = max(
        ((name, value - predicted.get(name, 0.0)) for name, value in steps.items() if name != "idle"),
        key=lambda pair: pair[1],
    )
    if excess <= 0:
        return f"{broken}, as predicted: no scheme would have kept it"
    return f"{broken}: {name} took {steps[name]:.2f} s, {predicted.get(name, 0.0):.2f} s were predicted"
