"""How many cores every node keeps busy, from the CPU time that its heartbeats tell."""

from __future__ import annotations

MEASURE_S = 2.0
"""Over so long; between two heartbeats chance would decide."""
STALE_S = 30.0
"""A node that says nothing for so long is forgotten."""


class BusyCores:
    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, float]] = {}
        self._busy: dict[str, tuple[float, float]] = {}

    def hear(self, node: str, cpu_s: float, now: float) -> None:
        at, before = self._seen.setdefault(node, (now, cpu_s))
        if cpu_s < before:
            # Another process of that name.
            self._seen[node] = (now, cpu_s)
        elif now - at >= MEASURE_S:
            self._seen[node] = (now, cpu_s)
            self._busy[node] = (now, (cpu_s - before) / (now - at))

    def busy(self) -> dict[str, float]:
        newest = max((at for at, _ in self._busy.values()), default=0.0)
        return {node: cores for node, (at, cores) in self._busy.items() if newest - at <= STALE_S}
