"""Events in SQLite: the newest ones, the last of every kind about every slice, and totals over the whole run."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from understudy.model.config import DEFAULTS
from understudy.model.events import COUNT, SUMMED, Event

KEPT = DEFAULTS.retention.events
"""Events kept. Older ones are in the totals; the last of a kind about a slice stays."""
DROP_EVERY = 256

SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
    number INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL,
    fields TEXT NOT NULL, cause INTEGER);
CREATE TABLE IF NOT EXISTS latest (
    kind TEXT NOT NULL, slice TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (kind, slice)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS totals (
    kind TEXT NOT NULL, field TEXT NOT NULL, value REAL NOT NULL, PRIMARY KEY (kind, field)) WITHOUT ROWID;
"""

_COLUMNS = "number, at, kind, text, fields, cause"
_COUNT = "INSERT INTO totals VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = value + excluded.value"


class Events:
    """Methods that write run inside their caller's transaction."""

    def __init__(self, database: sqlite3.Connection, kept: int = KEPT) -> None:
        self._database, self._kept = database, kept

    def after(self, number: int, limit: int) -> list[Event]:
        """The next events with a higher number; a limit of -1 is none."""
        query = f"SELECT {_COLUMNS} FROM events WHERE number > ? ORDER BY number LIMIT ?"
        return [_event(row) for row in self._database.execute(query, (number, limit))]

    def newest(self, limit: int, kinds: Collection[str] | None = None) -> list[Event]:
        """The last events that happened, in their order; of these, only some kinds if they are named."""
        query = f"SELECT {_COLUMNS} FROM events WHERE number > (SELECT MAX(number) FROM events) - ?"
        if kinds is not None:
            query += f" AND kind IN ({', '.join('?' * len(kinds))})"
        rows = self._database.execute(f"{query} ORDER BY number", (limit, *(kinds or ())))
        return [_event(row) for row in rows]

    def latest(self, kind: str) -> dict[str, Event]:
        """The last event of a kind about every slice, however long ago that was."""
        query = (
            f"SELECT {', '.join('events.' + name for name in _COLUMNS.split(', '))}, latest.slice"
            " FROM latest JOIN events ON events.number = latest.number WHERE latest.kind = ?"
        )
        return {row[-1]: _event(row[:-1]) for row in self._database.execute(query, (kind,))}

    def latest_number(self, kinds: Iterable[str], slice_name: str) -> int | None:
        query = "SELECT number FROM latest WHERE kind = ? AND slice = ?"
        rows = [self._database.execute(query, (kind, slice_name)).fetchone() for kind in kinds]
        return max((row[0] for row in rows if row is not None), default=None)

    def totals(self) -> dict[str, dict[str, float]]:
        """By kind: how many there were, under `COUNT`, and the sums of their fields that are summed."""
        found: dict[str, dict[str, float]] = {}
        for kind, field, value in self._database.execute("SELECT kind, field, value FROM totals"):
            found.setdefault(kind, {})[field] = value
        return found

    # -- writing

    def add(self, at: float, kind: str, text: str, fields: Mapping[str, Any], cause: int | None) -> int:
        cursor = self._database.execute(
            "INSERT INTO events (at, kind, text, fields, cause) VALUES (?, ?, ?, ?, ?)",
            (at, kind, text, json.dumps(fields), cause),
        )
        number = int(cursor.lastrowid or 0)
        self.count(number, kind, fields)
        if number % DROP_EVERY == 0:
            self._drop(number - self._kept)
        return number

    def count(self, number: int, kind: str, fields: Mapping[str, Any]) -> None:
        """Takes an event into the totals, and notes it as the last of its kind."""
        sums = [(kind, field, float(fields.get(field) or 0)) for field in SUMMED.get(kind, ())]
        self._database.executemany(_COUNT, [(kind, COUNT, 1.0), *sums])
        slice_name = fields.get("slice")
        if slice_name is not None:
            self._database.execute("INSERT OR REPLACE INTO latest VALUES (?, ?, ?)", (kind, str(slice_name), number))

    def recount(self) -> None:
        """Makes the totals from the events, for a file that has none."""
        for number, kind, fields in self._database.execute("SELECT number, kind, fields FROM events ORDER BY number"):
            self.count(number, kind, json.loads(fields))

    def _drop(self, last: int) -> None:
        self._database.execute(
            "DELETE FROM events WHERE number <= ? AND number NOT IN (SELECT number FROM latest)", (last,)
        )


def _event(row: tuple[Any, ...]) -> Event:
    number, at, kind, text, fields, cause = row
    return Event.model_construct(number=number, at=at, kind=kind, text=text, fields=json.loads(fields), cause=cause)
