"""What `tests/apps/kinds.py` must deliver."""

from __future__ import annotations

from datetime import timedelta

from tests.oracles import joins, operators, windows
from tests.oracles.rows import Make, Output, generated

DELAY = timedelta(seconds=2)
BEFORE = timedelta(seconds=1), timedelta(0)


def expected(
    make: Make,
    epochs: int,
    rate: float = 400,
    slices: int = 2,
    epoch_s: float = 0.5,
    make_clicks: Make | None = None,
) -> dict[str, Output]:
    payments = generated(make, rate, 7, epochs, epoch_s, slices)
    clicks = generated(make_clicks or make, rate / 4, 8, epochs, epoch_s)
    totals = operators.sums(payments, "user", "amount")
    return {
        "large": operators.selected(
            payments, lambda row: row["amount"] > 50, lambda row: (row["user"], row["at"], row["amount"] * 2)
        ),
        "totals": operators.listed(totals, lambda user, n, total: (user, n, total)),
        "running": operators.listed(totals, lambda user, _, total: (user, total)),
        "windows": windows.closed_windows(payments, timedelta(seconds=3), DELAY),
        "joined": joins.inner(
            (payments, DELAY),
            (clicks, DELAY),
            "user",
            BEFORE,
            lambda one, other: (one["user"], one["at"], one["amount"], other and other["amount"]),
        ),
    }
