"""How many nodes some work needs, with hysteresis: what several policies have in common."""

from __future__ import annotations

import math

from understudy.control.scaling.sample import Sample, Wish
from understudy.model.config import ScalingSection

ROUNDING = 1e-9


def nodes_for(busy_cores: float, now: Sample, limits: ScalingSection, what: str) -> Wish:
    """More nodes if each would be above the target by the slack, fewer if the rest would be below it by the slack.

    One node more is taken when n are above ``target * (1 + slack)``, and given back when n would be below
    ``target * (1 - slack)``: work in between changes nothing.
    """
    room = now.cores * limits.target_cpu
    share = busy_cores / (now.nodes * now.cores)
    said = f"{what} {share:.0%} of {now.nodes} nodes, and {limits.target_cpu:.0%} is the target"
    if share > limits.target_cpu * (1 + limits.slack):
        return Wish(max(now.nodes + 1, math.ceil(busy_cores / room - ROUNDING)), said)
    fewer = max(1, math.ceil(busy_cores / (room * (1 - limits.slack)) - ROUNDING))
    return Wish(min(now.nodes, fewer), said)
