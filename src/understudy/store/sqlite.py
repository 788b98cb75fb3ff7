"""The manager's memory in one SQLite file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from understudy.model.event import Event
from understudy.model.messages import Receipt
from understudy.model.snapshot import Assignment

_ASSIGNMENT = TypeAdapter(Assignment)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS assignments (slice TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS receipts (
    sink TEXT NOT NULL, epoch INTEGER NOT NULL, rows INTEGER NOT NULL, digest TEXT NOT NULL, at REAL NOT NULL,
    fresh INTEGER NOT NULL, lost TEXT NOT NULL, duplicates INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (sink, epoch));
CREATE TABLE IF NOT EXISTS events (
    number INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL,
    fields TEXT NOT NULL, cause INTEGER);
"""


class SqliteStore:
    """Used from the manager's loop only; anyone else may open the file to read."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        # FULL: what the manager has confirmed to a node must survive a power cut.
        self._database.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;" + _SCHEMA)
        self._delivered: dict[str, int] = {}

    def close(self) -> None:
        self._database.close()

    def fact(self, name: str) -> Any:
        row = self._database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def keep(self, facts: Mapping[str, Any]) -> None:
        rows = [(name, json.dumps(value)) for name, value in facts.items()]
        with self._database:
            self._database.execute("BEGIN")
            self._database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", rows)

    def assignments(self) -> tuple[Assignment, ...]:
        rows = self._database.execute("SELECT value FROM assignments ORDER BY slice")
        return tuple(_ASSIGNMENT.validate_json(value) for (value,) in rows)

    def assign(self, assignment: Assignment) -> None:
        value = _ASSIGNMENT.dump_json(assignment).decode()
        self._database.execute("INSERT OR REPLACE INTO assignments VALUES (?, ?)", (str(assignment.slice), value))

    def receive(self, receipts: Iterable[Receipt]) -> None:
        rows = [(r.sink, r.epoch, r.rows, r.digest, r.at, r.fresh, json.dumps(r.lost), r.repeated) for r in receipts]
        with self._database:
            self._database.execute("BEGIN")
            self._database.executemany(
                "INSERT INTO receipts (sink, epoch, rows, digest, at, fresh, lost, duplicates)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
                # A receipt is sent until it is confirmed, so an epoch is a duplicate or not, never several.
                " ON CONFLICT DO UPDATE SET duplicates ="
                " MAX(duplicates, excluded.duplicates, fresh AND excluded.fresh AND at <> excluded.at)",
                rows,
            )

    def receipts(self, sink: str, first: int = 0) -> list[Receipt]:
        rows = self._database.execute(
            "SELECT sink, epoch, rows, digest, at, fresh, lost FROM receipts WHERE sink = ? AND epoch >= ?"
            " ORDER BY epoch",
            (sink, first),
        )
        names = ("sink", "epoch", "rows", "digest", "at", "fresh")
        return [Receipt(**dict(zip(names, row[:-1], strict=True)), lost=json.loads(row[-1])) for row in rows]

    def duplicates(self, sink: str) -> int:
        row = self._database.execute("SELECT SUM(duplicates) FROM receipts WHERE sink = ?", (sink,)).fetchone()
        return int(row[0] or 0)

    def delivered(self, sink: str) -> int:
        count = self._delivered.get(sink, 0)
        query = "SELECT 1 FROM receipts WHERE sink = ? AND epoch = ?"
        while self._database.execute(query, (sink, count)).fetchone():
            count += 1
        self._delivered[sink] = count
        return count

    def note(self, at: float, kind: str, text: str, fields: Mapping[str, Any], cause: int | None) -> int:
        cursor = self._database.execute(
            "INSERT INTO events (at, kind, text, fields, cause) VALUES (?, ?, ?, ?, ?)",
            (at, kind, text, json.dumps(fields), cause),
        )
        return int(cursor.lastrowid or 0)

    def events(self, after: int = 0) -> list[Event]:
        rows = self._database.execute(
            "SELECT number, at, kind, text, fields, cause FROM events WHERE number > ? ORDER BY number", (after,)
        )
        return [
            Event(number=n, at=at, kind=kind, text=text, fields=json.loads(fields), cause=cause)
            for n, at, kind, text, fields, cause in rows
        ]
