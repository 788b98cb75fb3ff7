"""Between a policy and the nodes: bounds, a cool-down, and patience before a node is released."""

from __future__ import annotations

from collections.abc import Sequence

from understudy.control.scaling.sample import Sample, Wish
from understudy.model.config import ScalingSection


def bounded(wish: Wish, limits: ScalingSection, needed: int) -> Wish:
    """Between the least and the largest number, and never below what protection needs."""
    least = min(max(limits.min_nodes, needed), limits.max_nodes)
    nodes = min(max(wish.nodes, least), limits.max_nodes)
    return wish if nodes == wish.nodes else Wish(nodes, f"{wish.reason}; between {least} and {limits.max_nodes}")


def due(
    wish: Wish, history: Sequence[Sample], wishes: Sequence[int], changed_at: float | None, limits: ScalingSection
) -> bool:
    """Whether the number changes now. `wishes` are those of the last cool-down, with this one.

    More nodes come at once, unless the number has just changed. A node goes only after a whole cool-down in which no
    sample asked for more nodes than that.
    """
    now = history[-1]
    rested = changed_at is None or now.age_s - changed_at >= limits.cool_down_s
    if not rested or wish.nodes == now.nodes:
        return False
    if wish.nodes > now.nodes:
        return True
    return now.age_s - history[0].age_s >= limits.cool_down_s and max(wishes) < now.nodes
