"""The manager's memory in one SQLite file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from understudy.coordination import events, receipts
from understudy.model.events import Event
from understudy.model.messages import Receipt
from understudy.model.run import Rhythm
from understudy.model.snapshot import Assignment
from understudy.model.tally import Tally

_ASSIGNMENT = TypeAdapter(Assignment)
_VERSION = 1
"""1: tallies, totals and the last event of every kind about a slice. A file without them is read once to make them."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS assignments (slice TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


class SqliteStore:
    """Used from the manager's loop only; anyone else may open the file to read.

    What it takes to open it, to look something up and to add something does not depend on the age of the run. It keeps
    the newest `receipts_kept` receipts of every sink and the newest `events_kept` events; what a report says of the
    whole run is kept as running tallies and totals.
    """

    def __init__(self, path: Path, receipts_kept: int = receipts.KEPT, events_kept: int = events.KEPT) -> None:
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        # FULL: what the manager has confirmed to a node must survive a power cut.
        pragmas = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        self._database.executescript(pragmas + _SCHEMA + receipts.SCHEMA + events.SCHEMA)
        self._events = events.Events(self._database, events_kept)
        self._receipts = receipts.Receipts(self._database, receipts_kept)
        self._upgrade()

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._database:
            self._database.execute("BEGIN")
            yield

    def _upgrade(self) -> None:
        if self._database.execute("PRAGMA user_version").fetchone()[0] >= _VERSION:
            return
        with self._transaction():
            tallies = self._receipts.recount()
            self._events.recount()
            self._database.execute(f"PRAGMA user_version = {_VERSION}")
        self._receipts.tallies.update(tallies)

    # -- facts and assignments

    def fact(self, name: str) -> Any:
        row = self._database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def keep(self, facts: Mapping[str, Any]) -> None:
        rows = [(name, json.dumps(value)) for name, value in facts.items()]
        with self._transaction():
            self._database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", rows)

    def assignments(self) -> tuple[Assignment, ...]:
        rows = self._database.execute("SELECT value FROM assignments ORDER BY slice")
        return tuple(_ASSIGNMENT.validate_json(value) for (value,) in rows)

    def assign(self, assignment: Assignment) -> None:
        value = _ASSIGNMENT.dump_json(assignment).decode()
        self._database.execute("INSERT OR REPLACE INTO assignments VALUES (?, ?)", (str(assignment.slice), value))

    # -- receipts

    def receive(self, given: Iterable[Receipt], rhythm: Rhythm | None = None) -> None:
        with self._transaction():
            changed = self._receipts.add(given, rhythm)
        self._receipts.tallies.update(changed)

    def receipts(self, sink: str, first: int = 0) -> list[Receipt]:
        return self._receipts.of(sink, first)

    def duplicates(self, sink: str) -> int:
        return self._receipts.tally(sink).duplicates + self._receipts.duplicates_beyond(sink)

    def delivered(self, sink: str) -> int:
        return self._receipts.tally(sink).epochs

    def tally(self, sink: str) -> Tally:
        return self._receipts.tally(sink)

    def delays(self, sink: str) -> dict[int, int]:
        return self._receipts.delays(sink)

    def epochs_with_loss(self, sink: str) -> list[int]:
        return self._receipts.with_loss(sink)

    # -- events

    def note(self, at: float, kind: str, text: str, fields: Mapping[str, Any], cause: int | None) -> int:
        with self._transaction():
            return self._events.add(at, kind, text, fields, cause)

    def events(self, after: int = 0, limit: int | None = None) -> list[Event]:
        return self._events.after(after, -1 if limit is None else limit)

    def newest_events(self, limit: int, kinds: Collection[str] | None = None) -> list[Event]:
        return self._events.newest(limit, kinds)

    def latest(self, kind: str) -> dict[str, Event]:
        return self._events.latest(kind)

    def latest_number(self, kinds: Iterable[str], slice_name: str) -> int | None:
        return self._events.latest_number(kinds, slice_name)

    def totals(self) -> dict[str, dict[str, float]]:
        return self._events.totals()
