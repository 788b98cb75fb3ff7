"""How even the work is spread over the nodes, and which replica had better be elsewhere.

The unevenness of a placement is the sum of the squares of what every node carries. Where the rule of placement is
`interleaved`, the squares of what every node would take over from every other one are added. A step takes one replica
to another node. It is worthwhile if it lessens the unevenness by so much that the target, with the replica, still
carries less than the source did, by a margin. Its reverse would then need loads that differ by twice that margin, so
steps do not go to and fro; and because unevenness only falls, there is an end of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from understudy.control.cluster.moving import may_work_twice
from understudy.control.cluster.placement import candidates
from understudy.control.cluster.sites import Placing, apart
from understudy.control.placement import chained, interleaved
from understudy.model.capabilities import OFF, ROWS
from understudy.model.layout import Kind, Layout
from understudy.model.names import SliceId
from understudy.model.snapshot import Assignment, NodeView, Secondary

K = TypeVar("K")
LEAST_MARGIN = 0.25
"""In slices: where nodes carry little, small differences are large shares."""


@dataclass(frozen=True)
class Step:
    """One replica had better be on another node: the primary of a slice, or its secondary."""

    slice: SliceId
    source: str
    target: str
    primary: bool
    gain: float
    reason: str


class Balance:
    """The assignments as they are, and as they would be after some steps."""

    def __init__(
        self,
        assignments: Iterable[Assignment],
        nodes: Mapping[str, NodeView],
        layout: Layout,
        placing: Placing,
        gain: float,
    ) -> None:
        self._assigned = {one.slice: one for one in assignments}
        self._nodes, self._layout, self._placing, self._gain = nodes, layout, placing, gain
        self._primaries = sorted(node.name for node in candidates(nodes.values()) if not node.draining)
        self._load: dict[str, float] = dict.fromkeys(nodes, 0.0)
        self._shares: dict[tuple[str, str], float] = {}
        for one in self._assigned.values():
            self._put(one, +1)

    # -- how even it is

    @property
    def unevenness(self) -> float:
        return sum(load**2 for load in self._load.values()) + sum(share**2 for share in self._shares.values())

    @property
    def average(self) -> float:
        """What a node that takes primaries carries."""
        return sum(self._load[name] for name in self._primaries) / max(1, len(self._primaries))

    @property
    def margin(self) -> float:
        return max(LEAST_MARGIN, self._gain * self.average)

    def carries(self, name: str) -> float:
        return self._load[name]

    def placement(self) -> Mapping[SliceId, Assignment]:
        return dict(self._assigned)

    # -- steps

    def best(self, leave: Iterable[SliceId] = ()) -> Step | None:
        """The step that lessens unevenness most, if one is worthwhile; slices to `leave` stay where they are."""
        if len(self._primaries) < 2:
            return None
        left = set(leave)
        found = [step for one in self._assigned.values() if one.slice not in left for step in self._steps(one)]
        return min(found, key=lambda step: (-step.gain, step.slice, step.primary, step.target), default=None)

    def steps(self, most: int) -> list[Step]:
        """All worthwhile steps, one after the other, each from where the one before leads."""
        found: list[Step] = []
        while len(found) < most and (step := self.best()) is not None:
            found.append(step)
            self.take(step)
        return found

    def take(self, step: Step) -> None:
        before = self._assigned[step.slice]
        after = _after(before, step.target, primary=step.primary)
        self._put(before, -1)
        self._put(after, +1)
        self._assigned[step.slice] = after

    def _put(self, one: Assignment, sign: int) -> None:
        for name, amount in self._loads(one):
            self._load[name] = self._load.get(name, 0.0) + sign * amount
        for key, amount in self._taken(one):
            self._shares[key] = self._shares.get(key, 0.0) + sign * amount

    def _loads(self, one: Assignment) -> Iterator[tuple[str, float]]:
        yield one.node, self._placing.weights.primary(one.slice)
        if one.secondary is not None:
            yield one.secondary.node, self._placing.weights.secondary(one)

    def _taken(self, one: Assignment) -> Iterator[tuple[tuple[str, str], float]]:
        """What the secondary's node would take over from the primary's, where that counts."""
        if one.secondary is not None and self._placing.rule is interleaved.choose:
            yield (one.node, one.secondary.node), self._placing.weights.primary(one.slice)

    def _steps(self, one: Assignment) -> Iterator[Step]:
        if one.moving is not None or one.mishaps or not self._moves_freely(one):
            return
        wanted = 2 * self._placing.weights.primary(one.slice) * self.margin
        for target, primary in (*self._for_primary(one), *self._for_secondary(one)):
            gain = self._gain_of(one, _after(one, target, primary=primary))
            if gain >= wanted:
                source = one.node if primary or one.secondary is None else one.secondary.node
                reason = self._why(one, source, target, primary=primary)
                yield Step(one.slice, source, target, primary, round(gain, 6), reason)

    def _moves_freely(self, one: Assignment) -> bool:
        """Slices that would pause for a move, or lose something, stay where they are."""
        vertex = self._layout[one.slice.operator]
        return vertex.kind is not Kind.OPERATOR or may_work_twice(one, vertex)

    def _for_primary(self, one: Assignment) -> Iterator[tuple[str, bool]]:
        """Not to the secondary's node, unless there is no third: the secondary would have to go elsewhere then."""
        here = one.secondary.node if one.secondary and len(self._primaries) > 2 else ""
        domain = self._domain(one.secondary.node) if one.secondary else ""
        for name in self._primaries:
            together = bool(domain) and self._domain(name) == domain
            if name not in (one.node, here) and (not together or self._domain(one.node) == domain):
                yield name, True

    def _for_secondary(self, one: Assignment) -> Iterator[tuple[str, bool]]:
        """In a chain the place of a secondary follows from its primary's."""
        if one.secondary is None or ROWS[one.scheme] == OFF or self._placing.rule is chained.choose:
            return
        able = [n for n in candidates(self._nodes.values(), standby=True) if n.name != one.node and not n.draining]
        for node in apart(able, self._nodes.get(one.node)):
            if node.name != one.secondary.node:
                yield node.name, False

    def _domain(self, name: str) -> str:
        node = self._nodes.get(name)
        return node.domain if node else ""

    def _gain_of(self, before: Assignment, after: Assignment) -> float:
        loads = [*((name, -x) for name, x in self._loads(before)), *self._loads(after)]
        shares = [*((key, -x) for key, x in self._taken(before)), *self._taken(after)]
        return -_growth(self._load, loads) - _growth(self._shares, shares)

    def _why(self, one: Assignment, source: str, target: str, *, primary: bool) -> str:
        carried = (
            f"{source} carries {self._load[source]:.1f} and {target} {self._load[target]:.1f} slices' worth of work"
        )
        if primary:
            return f"{one.slice} moves from {source} to {target}: {carried}"
        taken = [self._shares.get((one.node, name), 0.0) for name in (source, target)]
        if self._placing.rule is interleaved.choose and taken[0] > taken[1]:
            carried = f"of {one.node} {source} would take over {taken[0]:.1f} and {target} {taken[1]:.1f} slices' worth"
        return f"{one.slice}: {target} will stand by instead of {source}: {carried}"


def _after(one: Assignment, target: str, *, primary: bool) -> Assignment:
    """With a replica on the target. A secondary that was there changes places with its primary."""
    if not primary:
        generation = one.secondary.generation if one.secondary else 0
        return replace(one, secondary=Secondary(target, generation))
    if one.secondary is not None and one.secondary.node == target:
        return replace(one, node=target, secondary=replace(one.secondary, node=one.node))
    return replace(one, node=target)


def _growth(amounts: Mapping[K, float], changes: Iterable[tuple[K, float]]) -> float:
    """By how much the sum of squares grows with these changes."""
    together: dict[K, float] = {}
    for key, change in changes:
        together[key] = together.get(key, 0.0) + change
    return sum(change * (2 * amounts.get(key, 0.0) + change) for key, change in together.items())
