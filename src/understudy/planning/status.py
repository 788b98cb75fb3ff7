"""What a planner's answer is worth."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    TIMEOUT = "timeout"
