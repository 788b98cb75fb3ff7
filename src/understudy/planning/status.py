"""What a planner's result is worth: proven, valid, or nothing."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    TIMEOUT = "timeout"
