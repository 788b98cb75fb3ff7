"""The function of an operator that a query became."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from understudy.queries.plans import Plan


@dataclass(frozen=True)
class Compiled:
    """Called with one streaming DataFrame per input, like any operator's function."""

    plan: Plan

    def __call__(self, *inputs: Any) -> Any:
        from understudy.queries.frames import build

        return build(self.plan, inputs)
