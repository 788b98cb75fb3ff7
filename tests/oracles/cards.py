"""What `examples/cards` must deliver: every payment judged by a look at all payments of its card before it."""

from __future__ import annotations

import math
from collections import defaultdict
from datetime import timedelta
from fractions import Fraction

from tests.oracles.lines import Lines, iso
from tests.oracles.rows import Epochs, Row

FIVE_MINUTES, HOUR = timedelta(minutes=5), timedelta(hours=1)
RADIUS_KM = 6371.0


def kilometres(one: Row, other: Row) -> float:
    """Along the surface, by the angle between the two directions from the middle of the earth."""

    def direction(row: Row) -> tuple[float, float, float]:
        north, east = math.radians(row["latitude"]), math.radians(row["longitude"])
        return math.cos(north) * math.cos(east), math.cos(north) * math.sin(east), math.sin(north)

    # By the chord: the angle's cosine says nothing about points that are close to each other.
    return 2 * RADIUS_KM * math.asin(math.dist(direction(one), direction(other)) / 2)


def broken(payment: Row, before: list[Row]) -> dict[str, int]:
    """The rules that a payment breaks, given all earlier payments of its card in order."""
    found = {}
    recent = 1 + sum(one["at"] > payment["at"] - FIVE_MINUTES for one in before)
    if recent > 3:
        found["velocity"] = recent
    if before:
        km = kilometres(before[-1], payment)
        if km > 100 and km > 900 * ((payment["at"] - before[-1]["at"]) / HOUR):
            found["distance"] = round(km)
    if len(before) >= 3:
        usual = Fraction(sum(one["cents"] for one in before), len(before))
        if payment["cents"] > 10 * usual:
            found["spike"] = math.floor(100 * payment["cents"] / usual)
    return found


def alerts(epochs: Epochs) -> Lines:
    history: dict[int, list[Row]] = defaultdict(list)
    found: Lines = []
    for payments in epochs:
        rows: list[Row] = []
        for payment in sorted(payments, key=lambda row: (row["at"], row["id"])):
            before = history[payment["card"]]
            for rule, value in broken(payment, before).items():
                told = {name: payment[name] for name in ("card", "merchant", "cents")}
                rows.append({**told, "payment": payment["id"], "at": iso(payment["at"]), "rule": rule, "value": value})
            before.append(payment)
        found.append(rows)
    return found


def shops(alerts: Lines) -> Lines:
    """The totals of the shops that an epoch's alerts are about."""
    cents: dict[int, list[int]] = defaultdict(list)
    found: Lines = []
    for rows in alerts:
        for row in rows:
            cents[row["merchant"]].append(row["cents"])
        touched = {row["merchant"] for row in rows}
        found.append([{"merchant": shop, "alerts": len(cents[shop]), "cents": sum(cents[shop])} for shop in touched])
    return found


def expected(epochs: Epochs) -> dict[str, Lines]:
    found = alerts(epochs)
    return {"alerts": found, "shops": shops(found)}
