"""Means and 95 % intervals over runs, read back from Parquet."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

Z95 = 1.959963984540054
KEY = ("heuristic", "spare", "placement", "selection", "level", "crash")


@dataclass(frozen=True)
class Point:
    """Percentages of running queries; runs have their own queries and failures, so they are independent."""

    heuristic: str
    spare: float
    placement: str
    selection: str
    level: int
    crash: float
    runs: int
    running: float
    low: float
    high: float
    replicated: float
    unplaced: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def summarise(folder: Path) -> list[Point]:
    """In the order of the strategies' names, then by crash probability."""
    table = pq.read_table(folder)
    columns = {name: table.column(name).to_pylist() for name in KEY}
    running = np.asarray(table.column("running"))
    replicated = np.asarray(table.column("replicated"))
    unplaced = np.asarray(table.column("unplaced"))
    groups: dict[tuple[Any, ...], list[int]] = {}
    for position, key in enumerate(zip(*columns.values(), strict=True)):
        groups.setdefault(key, []).append(position)
    points: list[Point] = []
    for key in sorted(groups):
        rows = groups[key]
        share = 100.0 * running[rows]
        mean = float(share.mean())
        half = Z95 * float(share.std(ddof=1)) / len(rows) ** 0.5 if len(rows) > 1 else float("inf")
        points.append(
            Point(
                **dict(zip(KEY, key, strict=True)),
                runs=len(rows),
                running=mean,
                low=mean - half,
                high=mean + half,
                replicated=float(replicated[rows].mean()),
                unplaced=float(unplaced[rows].mean()),
            )
        )
    return points
