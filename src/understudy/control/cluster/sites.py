"""The nodes as rules of placement see them: what each carries, and what it would take over from each other one.

`cluster.placement` names the rule (`control/placement`). It chooses where secondaries stand by, and who takes a slice
that lost its node and had no secondary. `least_loaded` goes by counts alone; the other rules use measured loads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from understudy.control.cluster.snapshot import Snapshot
from understudy.control.cluster.weights import MOVER_WEIGHT, Weights
from understudy.control.placement import RULES, Question, Rule, least_loaded, named
from understudy.control.placement.question import Floats
from understudy.model.config import Config
from understudy.model.layout import Layout
from understudy.model.snapshot import Assignment, NodeView

DEFAULT = RULES["least_loaded"]


@dataclass(frozen=True)
class Placing:
    """How the run places: the rule, and what it goes by."""

    rule: Rule
    weights: Weights

    @classmethod
    def of(cls, snapshot: Snapshot, layout: Layout) -> Placing:
        found = cls.named(snapshot.config, layout)
        return cls(found.rule, Weights(layout, snapshot.loads)) if found.spreads else found

    @classmethod
    def named(cls, config: Config, layout: Layout) -> Placing:
        """The rule of the run, going by counts."""
        return cls(named(config.cluster.placement), Weights(layout))

    @property
    def spreads(self) -> bool:
        """Whether the rule looks at what a node would take over from another."""
        return self.rule is not least_loaded.choose


class Sites:
    """Changes as replicas are put somewhere in the course of one decision."""

    def __init__(self, names: Iterable[str], assignments: Iterable[Assignment], placing: Placing) -> None:
        known = list(assignments)
        self._names = sorted({*names, *(one.node for one in known)})
        self._index = {name: number for number, name in enumerate(self._names)}
        self._placing = placing
        self.load = np.zeros(len(self._names))
        self._shares: dict[str, Floats] = {}
        for assignment in known:
            self._add(assignment)

    def _add(self, assignment: Assignment) -> None:
        weights = self._placing.weights
        self._carry(assignment.node, weights.primary(assignment.slice))
        if assignment.secondary is not None:
            self.stand_by(assignment, assignment.secondary.node)
        if assignment.moving is not None:
            self._carry(assignment.moving.node, MOVER_WEIGHT)

    def _carry(self, name: str, weight: float) -> None:
        if name in self._index:
            self.load[self._index[name]] += weight

    def stand_by(self, assignment: Assignment, name: str) -> None:
        """A secondary of the slice is put on a node."""
        self._carry(name, self._placing.weights.secondary(assignment))
        self.would_take(assignment, assignment.node, name)

    def take(self, assignment: Assignment, home: str, name: str) -> None:
        """A slice of a lost home is put on a node, without a secondary to take over."""
        self._carry(name, self._placing.weights.primary(assignment.slice))
        self.would_take(assignment, home, name)

    def would_take(self, assignment: Assignment, home: str, name: str) -> None:
        if name in self._index:
            self._share(home)[self._index[name]] += self._placing.weights.primary(assignment.slice)

    def _share(self, home: str) -> Floats:
        return self._shares.setdefault(home, np.zeros(len(self._names)))

    def carried(self, name: str) -> float:
        return float(self.load[self._index[name]])

    def choose(self, home: str, able: Sequence[str]) -> str:
        """The node, of those that may, for a replica whose primary is, or was, on `home`."""
        mask = np.zeros(len(self._names), dtype=np.bool_)
        mask[[self._index[name] for name in able]] = True
        return self._names[self._placing.rule(Question(self._index[home], mask, self._share(home), self.load))]


def apart(nodes: Sequence[NodeView], home: NodeView | None) -> list[NodeView]:
    """Nodes that do not fail together with another one, or all if there are none; standby nodes first."""
    others = [node for node in nodes if home is None or not node.domain or node.domain != home.domain] or list(nodes)
    return [node for node in others if node.standby] or others
