"""Where slices go: balanced, and slices of one operator apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from understudy.model.layout import Kind, Layout
from understudy.model.names import SliceId
from understudy.model.snapshot import NodeView

# A query keeps a core busy; sources and sinks only copy rows.
WEIGHTS = {Kind.OPERATOR: 1.0, Kind.SOURCE: 0.2, Kind.SINK: 0.2}


def place(
    slices: Sequence[SliceId],
    nodes: Sequence[str],
    hosts: Mapping[SliceId, str],
    layout: Layout,
    burden: Mapping[str, float] | None = None,
) -> dict[SliceId, str]:
    """A node for every slice, given who hosts the others: heaviest first, to the node with the least to do.

    `burden` is what nodes carry besides: the secondaries.
    """
    placed: dict[SliceId, str] = dict(hosts)
    load = {name: (burden or {}).get(name, 0.0) for name in sorted(nodes)}
    for slice_id, node in hosts.items():
        if node in load:
            load[node] += weight(slice_id, layout)
    chosen: dict[SliceId, str] = {}
    for slice_id in sorted(slices, key=lambda s: (-weight(s, layout), s)):
        siblings = [node for other, node in placed.items() if other.operator == slice_id.operator]
        node = min(load, key=lambda name: (load[name] + 0.5 * siblings.count(name), name))
        load[node] += weight(slice_id, layout)
        placed[slice_id] = chosen[slice_id] = node
    return chosen


def candidates(nodes: Iterable[NodeView]) -> list[NodeView]:
    """Who may be given slices. Draining nodes only if there is nobody else: a slice somewhere beats one nowhere."""
    able = [node for node in nodes if node.connected and node.ready]
    return [node for node in able if not node.draining] or able


def weight(slice_id: SliceId, layout: Layout) -> float:
    return WEIGHTS[layout[slice_id.operator].kind]
