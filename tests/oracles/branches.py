"""What `tests/apps/branches.py` must deliver, in plain Python."""

from __future__ import annotations

from collections import Counter

from tests.oracles.rows import Make, Output, generated


def groups(make: Make, epochs: int) -> Output:
    counts: dict[int, tuple[int, int]] = {}
    best: dict[int, tuple[int, int]] = {}
    delivered: Output = []
    for rows in generated(make, 200, 11, epochs, 0.5, slices=2):
        for row in rows:
            number, total = counts.get(row["key"], (0, 0))
            counts[row["key"]] = (number + 1, total + row["value"])
        changed = {row["key"] for row in rows}
        for key in changed:
            most, largest = best.get(key % 10, (0, 0))
            best[key % 10] = (max(most, counts[key][0]), max(largest, counts[key][1]))
        delivered.append(Counter((key % 10, *best[key % 10]) for key in {k % 10 for k in changed}))
    return delivered
