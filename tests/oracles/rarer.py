"""What `tests/apps/rarer.py` must deliver, and the files it reads."""

from __future__ import annotations

import csv
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.oracles import joins, operators, windows
from tests.oracles.rows import Epochs, Output, Row, dealt
from tests.oracles.windows import EARLY

SECOND = timedelta(seconds=1)
START = EARLY + 1000 * SECOND
EPOCH_S = 2.0
ORDERS, ORDERS_RATE = 12_000, 30
OFFERS, OFFERS_RATE = 20, 0.05
AHEAD = 30 * SECOND


def order(number: int) -> Row:
    """Three seconds of orders to an epoch. Every eighth is a repetition, every 31st comes much too late.

    Half of the users order now and then, and not again for a while.
    """
    original = number - 37 if number % 8 == 7 and number > 37 else number
    steps = original - (200 if original % 31 == 30 else original * 3 % 20)
    user = original % 9 if original % 2 else 100 + original // 40
    return {"id": original, "user": user, "at": START + steps * SECOND / 20, "amount": original % 50}


def offer(number: int) -> Row:
    """One in ten epochs, from a clock that runs ahead: so the watermark is that of the orders."""
    return {"user": 2 * number % 9, "at": START + AHEAD + number * 30 * SECOND, "percent": number}


def visit(number: int) -> tuple[Any, ...]:
    """What the live source gives as its n-th row."""
    steps = number - (160 if number % 23 == 22 else number * 7 % 20)
    return number, number**2 % 7, START + steps * SECOND / 20, number % 100


def write_files(folder: Path) -> None:
    orders = [order(number) for number in range(ORDERS)]
    with (folder / "orders.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(orders[0]))
        writer.writeheader()
        writer.writerows({**row, "at": row["at"].isoformat()} for row in orders)
    offers = [offer(number) for number in range(OFFERS)]
    (folder / "offers.jsonl").write_text(
        "".join(json.dumps({**row, "at": row["at"].isoformat()}) + "\n" for row in offers)
    )


def cuts(seen: Output) -> Epochs:
    """The visits of every epoch as `seen` shows them: nobody but the run knows where it cut its live source.

    They must be all visits from the first on, each once and in one piece.
    """
    found: Epochs = []
    count = 0
    for epoch, rows in enumerate(seen):
        expected = [visit(number) for number in range(count, count + rows.total())]
        assert sorted(rows.elements()) == expected, f"visits of epoch {epoch} are not those from {count} on"
        found.append([dict(zip(("n", "user", "at", "amount"), row, strict=True)) for row in expected])
        count += rows.total()
    return found


def expected(visits: Epochs) -> dict[str, Output]:
    epochs = len(visits)
    orders = dealt([order(number) for number in range(ORDERS)], ORDERS_RATE, epochs, EPOCH_S)
    offers = dealt([offer(number) for number in range(OFFERS)], OFFERS_RATE, epochs, EPOCH_S)
    unique = windows.first_of_each(orders, "id", 3 * SECOND)
    return {
        "unique": operators.selected(unique, lambda _: True, lambda row: tuple(row.values())),
        "patient": windows.with_timeout(unique, "user", "amount", 5 * SECOND, 3 * SECOND),
        "sessions": windows.sessions(visits, "user", 0.3 * SECOND, 2 * SECOND),
        "matched": joins.left_outer(
            (orders, 3 * SECOND),
            (offers, 3 * SECOND),
            "user",
            (9 * SECOND, 9 * SECOND),
            lambda one, other: (one["id"], one["at"], other["percent"] if other else None),
        ),
        "sliding": windows.updated_windows([(orders, 3 * SECOND), (visits, SECOND)], 4 * SECOND, 2 * SECOND, "amount"),
    }
