"""What `examples/calls` must deliver: for every number and window, a look at all its calls so far."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta

from tests.oracles.lines import Lines, iso
from tests.oracles.rows import Epochs, Row
from tests.oracles.windows import starts

LENGTH, SLIDE = timedelta(minutes=30), timedelta(minutes=10)
Place = tuple[int, datetime]
"""A number and the start of a window."""


def places(call: Row) -> list[Place]:
    """Whose features in which windows a call changes."""
    return [
        (number, start) for number in (call["caller"], call["callee"]) for start in starts(call["at"], LENGTH, SLIDE)
    ]


def features(place: Place, calls: list[Row]) -> Row:
    number, start = place
    made = [call for call in calls if call["caller"] == number]
    answered = [call["seconds"] for call in made if call["seconds"] > 0]
    return {
        "number": number,
        "start": iso(start),
        "calls": len(made),
        "callees": len({call["callee"] for call in made}),
        "answered": len(answered),
        "talked": sum(answered),
        "received": sum(call["callee"] == number for call in calls),
    }


def points(row: Row) -> int:
    """Of eight: a machine calls much, hardly anybody twice, is never called, not answered, and soon done."""
    score = 0
    if row["calls"] >= 10:
        score += 2
    if row["calls"] == 0 or row["callees"] / row["calls"] >= 0.9:
        score += 2
    if row["received"] == 0:
        score += 2
    if row["answered"] < row["calls"] / 2:
        score += 1
    if row["answered"] and row["talked"] / row["answered"] < 30:
        score += 1
    return score


def expected(epochs: Epochs, enough: int = 7) -> dict[str, Lines]:
    """No call may be later than the watermark: such calls are not modelled."""
    known: dict[Place, list[Row]] = defaultdict(list)
    cases: dict[int, list[Row]] = defaultdict(list)
    out: dict[str, Lines] = {"features": [], "cases": []}
    for calls in epochs:
        touched: set[Place] = set()
        for call in calls:
            for place in places(call):
                known[place].append(call)
                touched.add(place)
        found = [features(place, known[place]) for place in touched]
        suspects = [row | {"points": points(row)} for row in found if points(row) >= enough]
        for row in suspects:
            cases[row["number"]].append(row)
        out["features"].append(found)
        out["cases"].append([_case(number, cases[number]) for number in {row["number"] for row in suspects}])
    return out


def _case(number: int, rows: list[Row]) -> Row:
    best = {name: max(row[name] for row in rows) for name in ("points", "calls")}
    return {"number": number, **best, "first": min(row["start"] for row in rows)}
