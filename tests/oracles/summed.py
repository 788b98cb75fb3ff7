"""What the small applications must deliver: sums per key, and what is left when epochs are given up."""

from __future__ import annotations

from tests.oracles import operators
from tests.oracles.rows import Make, Output, generated


def sums(make: Make, epochs: int, epoch_s: float = 1.0, rows: float = 1000) -> Output:
    """`tests/apps/sums.py`."""
    found = operators.sums(generated(make, rows, 3, epochs, epoch_s), "key", "value")
    return operators.listed(found, lambda key, _, total: (key, total))


def evens(make: Make, epochs: int, epoch_s: float = 1.0, rows: float = 1000) -> Output:
    """`tests/apps/sums.py`, stateless."""
    made = generated(make, rows, 3, epochs, epoch_s)
    return operators.selected(made, lambda row: row["value"] % 2 == 0, lambda row: (row["key"], row["value"]))


def sums_without(make: Make, epochs: int, lost: frozenset[int]) -> Output:
    """`tests/apps/sums.py` with its state as if the lost epochs had brought nothing; all keys come in each epoch."""
    found = operators.sums(generated(make, 1000, 3, epochs, 1.0), "key", "value", lost)
    return operators.listed(found, lambda key, _, total: (key, total))


def chain(make: Make, epochs: int) -> Output:
    """`tests/apps/chain.py`."""
    rows = [[row for row in rows if row["value"] % 2 == 0] for rows in generated(make, 200, 5, epochs, 0.5)]
    return operators.listed(operators.sums(rows, "key", "value"), lambda key, n, total: (key, total, n))


def naps(make: Make, epochs: int) -> Output:
    """`tests/apps/naps.py`: how long a batch takes has no part in what comes of it."""
    found = operators.sums(generated(make, 200, 3, epochs, 1.0), "key", "value")
    return operators.listed(found, lambda key, _, total: (key, total))
