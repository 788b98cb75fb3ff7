"""One node more while a primary is behind its input, one less when nobody has been and the others would do."""

from __future__ import annotations

from collections.abc import Sequence

from understudy.control.scaling import target_cpu
from understudy.control.scaling.sample import Sample, Wish
from understudy.model.config import ScalingSection

KEPT_UP = 1
"""Epochs that a primary may be behind and still count as keeping up."""


def suggest(history: Sequence[Sample], limits: ScalingSection) -> Wish:
    now = history[-1]
    if now.behind >= limits.behind_epochs:
        return Wish(now.nodes + 1, f"a primary is {now.behind} epochs behind its input")
    if max(one.behind for one in history) > KEPT_UP:
        return Wish(now.nodes, "a primary was behind its input lately")
    fewer = target_cpu.suggest(history, limits)
    return Wish(max(now.nodes - 1, min(now.nodes, fewer.nodes)), f"every primary keeps up; {fewer.reason}")
