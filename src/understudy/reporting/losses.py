"""Nodes that were given up, alone or with their whole domain, and the faults they belong to."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from understudy.model.events import DomainLost, FaultInjected, NodeLost
from understudy.reporting.chronicle import Chronicle, Told


@dataclass(frozen=True)
class Loss:
    """One event, one failure: a node, or all nodes of a domain."""

    number: int
    at: float
    text: str
    nodes: tuple[str, ...]
    domain: str

    @property
    def targets(self) -> tuple[str, ...]:
        """What a fault may have hit."""
        return (*self.nodes, self.domain) if self.domain else self.nodes


class Losses:
    """All losses and faults of a story. A fault of a domain may be noticed node by node, and the other way round."""

    def __init__(self, story: Chronicle) -> None:
        nodes = [Loss(t.number, t.at, t.text, (t.what.node,), t.what.domain) for t in story.of(NodeLost)]
        domains = [Loss(t.number, t.at, t.text, t.what.nodes, t.what.domain) for t in story.of(DomainLost)]
        self._by_number = {loss.number: loss for loss in (*nodes, *domains)}
        self._by_target: dict[str, list[Loss]] = {}
        for loss in sorted(self._by_number.values(), key=lambda one: one.at):
            for target in loss.targets:
                self._by_target.setdefault(target, []).append(loss)
        self._faults: dict[str, list[Told[FaultInjected]]] = {}
        for fault in sorted(story.of(FaultInjected), key=lambda told: told.what.at):
            self._faults.setdefault(fault.what.target, []).append(fault)

    def get(self, number: int) -> Loss | None:
        return self._by_number.get(number)

    def fault_behind(self, loss: Loss) -> Told[FaultInjected] | None:
        """The last fault of a node or its domain before it was given up; nodes also die without one."""
        found: list[Told[FaultInjected]] = []
        for target in loss.targets:
            known = self._faults.get(target, [])
            position = bisect_right(known, loss.at, key=lambda told: told.what.at)
            found += known[position - 1 : position] if position else []
        return max(found, key=lambda told: told.what.at, default=None)

    def noticed(self, fault: Told[FaultInjected]) -> Sequence[Loss]:
        """The losses by which a fault was noticed: one, or several where a domain was given up node by node.

        What was noticed only after the next fault of the same target belongs to that one.
        """
        target, at = fault.what.target, fault.what.at
        until = next((told.what.at for told in self._faults[target] if told.what.at > at), math.inf)
        known = self._by_target.get(target, [])
        first, end = (bisect_left(known, moment, key=lambda one: one.at) for moment in (at, until))
        found = known[first:end]
        if not found or target in found[0].nodes:
            return found[:1]
        own = [loss for loss in found if self.fault_behind(loss) is fault]
        return [
            loss for number, loss in enumerate(own) if not any(set(loss.nodes) & set(o.nodes) for o in own[:number])
        ]
