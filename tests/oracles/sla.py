"""What `examples/sla` must deliver: exact percentiles of sorted lists, rounded as the sketch may round them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from tests.oracles.lines import Lines, iso
from tests.oracles.rows import Epochs, Row

MICROSECOND = timedelta(microseconds=1)
EARLY = datetime.fromtimestamp(0, UTC)
PANES = 5


def micros(row: Row) -> int:
    return round(float(row["value"]) * 1000)


def exact(values: list[int], percent: int) -> int:
    """The smallest value that so many per cent of all values do not exceed."""
    return sorted(values)[math.ceil(Fraction(percent * len(values), 100)) - 1]


def rounded(value: int) -> int:
    """The middle of the range that holds a value; ranges end at 1, and at 101/99 of the end before or one more."""
    below, end = -1, 1
    while end < value:
        below, end = end, max(end + 1, end * 101 // 99)
    return (below + 1 + end) // 2


def percentiles(epochs: Epochs, pane_s: int = 60) -> Lines:
    """When the first request of a later pane comes, a pane of a service is over."""
    arrived: dict[str, list[tuple[int, int]]] = defaultdict(list)
    newest: dict[str, int] = {}
    found: Lines = []
    for rows in epochs:
        over: list[Row] = []
        for row in sorted(rows, key=lambda row: (row["timestamp"], micros(row))):
            service = row.get("service", "server")
            pane = (row["timestamp"] - EARLY) // timedelta(seconds=pane_s)
            last = newest.get(service, pane)
            if pane > last:
                values = [value for number, value in arrived[service] if last - PANES < number <= last]
                over.append(_line(service, last * pane_s, values))
            newest[service] = max(last, pane)
            arrived[service].append((pane, micros(row)))
        found.append(over)
    return found


def _line(service: str, second: int, values: list[int]) -> Row:
    marks = {f"p{percent}": rounded(exact(values, percent)) for percent in (50, 95, 99)}
    return {"service": service, "requests": len(values), **marks, "start": iso(datetime.fromtimestamp(second, UTC))}


def budgets(epochs: Epochs, slow_ms: int = 250) -> Lines:
    requests: Counter[str] = Counter()
    slow: Counter[str] = Counter()
    found: Lines = []
    for rows in epochs:
        for row in rows:
            requests[row["service"]] += 1
            slow[row["service"]] += micros(row) > slow_ms * 1000
        found.append(
            [
                {
                    "service": service,
                    "requests": requests[service],
                    "slow": slow[service],
                    "per_mille": slow[service] * 1000 // requests[service],
                }
                for service in {row["service"] for row in rows}
            ]
        )
    return found


def expected(epochs: Epochs) -> dict[str, Lines]:
    return {"percentiles": percentiles(epochs), "budgets": budgets(epochs)}
