"""Policies suggest, one arbiter disposes.

Every policy looks at the same snapshot and suggests new assignments, each for one slice. Of all suggestions about a
slice the arbiter accepts one, by the order of `Origin`; the others are declined. A policy remembers nothing about a
suggestion that was declined: if its reason still holds at the next tick, it suggests it again.

The order puts what a slice needs to work before what it needs to be protected, and that before what is cheaper. No
policy removes a secondary for the sake of cost alone: the controller and people change the *scheme*, and the rules for
secondaries (`secondaries.py`) then remove what the new scheme does not need.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from understudy.control.schemes.decisions import Decision as Choice
from understudy.model.names import SliceId
from understudy.model.snapshot import Assignment


class Origin(IntEnum):
    """Who suggests a change; the smaller number has precedence."""

    RECOVERY = 1
    """The slice has no working primary: a secondary takes over, or the slice is deployed again or placed anew."""
    DISTRUST = 2
    """Two replicas disagreed, so only one of them may work from now on."""
    REACTION = 3
    """A secondary stands in for a primary that is silent or slow, or is rolled back."""
    REQUEST = 4
    """A person asked for another scheme."""
    FORGIVENESS = 5
    """The slice gets on again: earlier failures and rewinds no longer count."""
    SECONDARY = 6
    """A secondary is missing, has failed, or is no longer wanted."""
    MOVE = 7
    """The next step of a move to another node, or its end."""
    DRAIN = 8
    """The slice leaves a node that is being drained."""
    THROTTLE = 9
    """A full node: the secondary is throttled, or goes on."""
    PLAN = 10
    """The plan for working secondaries names the slice, or names it no longer."""
    CONTROLLER = 11
    """Another scheme keeps the objective at a lower cost, or keeps it at all."""
    REBALANCE = 12
    """A replica goes elsewhere for an even load."""


@dataclass(frozen=True)
class Suggestion:
    """A new assignment for one slice. `choice` has the figures behind a suggestion of the controller."""

    origin: Origin
    assignment: Assignment
    reason: str
    choice: Choice | None = None

    @property
    def slice(self) -> SliceId:
        return self.assignment.slice


@dataclass(frozen=True)
class Ruling:
    """At most one accepted suggestion for every slice, in the order of precedence."""

    accepted: dict[SliceId, Suggestion]
    declined: tuple[Suggestion, ...]


def arbitrate(suggestions: Iterable[Suggestion]) -> Ruling:
    """Accepts the first suggestion about every slice by the order of `Origin`; among equals the earlier one."""
    ordered = sorted(suggestions, key=lambda one: one.origin)
    accepted: dict[SliceId, Suggestion] = {}
    for suggestion in ordered:
        accepted.setdefault(suggestion.slice, suggestion)
    return Ruling(accepted, tuple(one for one in ordered if accepted[one.slice] is not one))
