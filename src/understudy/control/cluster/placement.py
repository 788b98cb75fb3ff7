"""Where primaries go: balanced, and slices of one operator apart. `sites.py` places secondaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from understudy.control.cluster.weights import Weights
from understudy.model.layout import Layout
from understudy.model.names import SliceId
from understudy.model.snapshot import NodeView


def place(
    slices: Sequence[SliceId],
    nodes: Sequence[str],
    hosts: Mapping[SliceId, str],
    layout: Layout,
    burden: Mapping[str, float] | None = None,
    weights: Weights | None = None,
) -> dict[SliceId, str]:
    """A node for every slice, given who hosts the others: heaviest first, to the node with the least to do.

    `burden` is what nodes carry besides: the secondaries. Without `weights` all operator slices count the same.
    """
    weight = (weights or Weights(layout)).primary
    placed: dict[SliceId, str] = dict(hosts)
    load = {name: (burden or {}).get(name, 0.0) for name in sorted(nodes)}
    for slice_id, node in hosts.items():
        if node in load:
            load[node] += weight(slice_id)
    chosen: dict[SliceId, str] = {}
    for slice_id in sorted(slices, key=lambda s: (-weight(s), s)):
        siblings = [node for other, node in placed.items() if other.operator == slice_id.operator]
        node = min(load, key=lambda name: (load[name] + 0.5 * siblings.count(name), name))
        load[node] += weight(slice_id)
        placed[slice_id] = chosen[slice_id] = node
    return chosen


def candidates(nodes: Iterable[NodeView], *, standby: bool = False) -> list[NodeView]:
    """Who may be given slices. Draining nodes only if there is nobody else: a slice somewhere beats one nowhere.

    The same holds for standby nodes, unless `standby`: secondaries and slices that lost their node may go there.
    """
    able = [node for node in nodes if node.connected and node.ready]
    able = [node for node in able if not node.draining] or able
    return able if standby else [node for node in able if not node.standby] or able
