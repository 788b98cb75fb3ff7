"""Receipts in SQLite: a running tally of every sink, and the newest receipts themselves."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace

from understudy.model.config import DEFAULTS
from understudy.model.messages import Receipt
from understudy.model.run import Rhythm
from understudy.model.tally import Tally, take

KEPT = DEFAULTS.retention.receipts
"""Receipts kept of every sink. Older ones are in its tally; a receipt that shows a loss or a duplicate stays."""
DROPPED_AT_ONCE = 1_000

SCHEMA = """
CREATE TABLE IF NOT EXISTS receipts (
    sink TEXT NOT NULL, epoch INTEGER NOT NULL, rows INTEGER NOT NULL, digest TEXT NOT NULL, at REAL NOT NULL,
    fresh INTEGER NOT NULL, lost TEXT NOT NULL, duplicates INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (sink, epoch));
CREATE INDEX IF NOT EXISTS receipts_with_loss ON receipts (sink, epoch) WHERE lost <> '[]';
CREATE TABLE IF NOT EXISTS tallies (sink TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS delays (
    sink TEXT NOT NULL, bucket INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (sink, bucket)) WITHOUT ROWID;
"""

_COLUMNS = "sink, epoch, rows, digest, at, fresh, lost"


class Receipts:
    """Every method that writes runs inside its caller's transaction and returns what holds once that is committed."""

    def __init__(self, database: sqlite3.Connection, kept: int = KEPT) -> None:
        self._database, self._kept = database, kept
        rows = database.execute("SELECT sink, value FROM tallies")
        self.tallies = {sink: Tally(**json.loads(value)) for sink, value in rows}

    def tally(self, sink: str) -> Tally:
        return self.tallies.get(sink, Tally())

    def of(self, sink: str, first: int = 0) -> list[Receipt]:
        return list(self._of(sink, first))

    def _of(self, sink: str, first: int) -> Iterator[Receipt]:
        query = f"SELECT {_COLUMNS} FROM receipts WHERE sink = ? AND epoch >= ? ORDER BY epoch"
        for row in self._database.execute(query, (sink, first)):
            name, epoch, rows, digest, at, fresh, lost = row
            slices = () if lost == "[]" else tuple(json.loads(lost))
            # Checked when it was received.
            yield Receipt.model_construct(
                sink=name, epoch=epoch, rows=rows, digest=digest, at=at, fresh=bool(fresh), lost=slices
            )

    def with_loss(self, sink: str) -> list[int]:
        """Epochs that were delivered with a gap in them."""
        query = "SELECT epoch FROM receipts WHERE sink = ? AND lost <> '[]' ORDER BY epoch"
        return [epoch for (epoch,) in self._database.execute(query, (sink,))]

    def duplicates_beyond(self, sink: str) -> int:
        """Duplicates among the epochs that the tally has not reached yet."""
        query = "SELECT COUNT(*) FROM receipts WHERE sink = ? AND epoch >= ? AND duplicates"
        return int(self._database.execute(query, (sink, self.tally(sink).epochs)).fetchone()[0])

    def delays(self, sink: str) -> dict[int, int]:
        return dict(self._database.execute("SELECT bucket, number FROM delays WHERE sink = ?", (sink,)))

    # -- writing

    def add(self, receipts: Iterable[Receipt], rhythm: Rhythm | None) -> dict[str, Tally]:
        """Keeps receipts and takes them into the tallies as far as they leave no gap; returns the new tallies."""
        changed: dict[str, Tally] = {}
        for receipt in receipts:
            tally = changed.get(receipt.sink) or self.tally(receipt.sink)
            duplicates = tally.duplicates + self._insert(receipt, tally.epochs)
            changed[receipt.sink] = replace(tally, duplicates=duplicates)
        return {sink: self._advance(sink, tally, rhythm) for sink, tally in changed.items()}

    def recount(self) -> dict[str, Tally]:
        """Makes the tallies from the receipts, for a file that has none."""
        sinks = [sink for (sink,) in self._database.execute("SELECT DISTINCT sink FROM receipts")]
        return {sink: self._advance(sink, Tally(), None) for sink in sinks}

    def _insert(self, receipt: Receipt, taken: int) -> bool:
        """Whether an epoch that the tally has taken turns out to be written twice."""
        row = (receipt.sink, receipt.epoch, receipt.rows, receipt.digest, receipt.at, receipt.fresh)
        # An epoch whose receipt was dropped cannot be compared any more: if it was written afresh, it counts as twice.
        late = receipt.epoch < taken
        if late and not receipt.fresh and not receipt.repeated:
            return False
        cursor = self._database.execute(
            f"INSERT INTO receipts ({_COLUMNS}, duplicates) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (*row, json.dumps(receipt.lost), late or receipt.repeated),
        )
        if cursor.rowcount:
            return late
        # A receipt is sent until it is confirmed, so an epoch is a duplicate or not, never several.
        cursor = self._database.execute(
            "UPDATE receipts SET duplicates = 1"
            " WHERE sink = ? AND epoch = ? AND NOT duplicates AND (? OR fresh AND ? AND at <> ?)",
            (receipt.sink, receipt.epoch, receipt.repeated, receipt.fresh, receipt.at),
        )
        return late and bool(cursor.rowcount)

    def _advance(self, sink: str, tally: Tally, rhythm: Rhythm | None) -> Tally:
        query = "SELECT COUNT(*) FROM receipts WHERE sink = ? AND epoch >= ? AND epoch < ? AND duplicates"
        taken = take(tally, _unbroken(self._of(sink, tally.epochs), tally.epochs), rhythm)
        new = taken.tally
        if new.epochs > tally.epochs:
            (twice,) = self._database.execute(query, (sink, tally.epochs, new.epochs)).fetchone()
            new = replace(new, duplicates=new.duplicates + twice)
            self._count(sink, taken.delays, taken.anew)
        if new != self.tally(sink):
            value = json.dumps(asdict(new))
            self._database.execute("INSERT OR REPLACE INTO tallies VALUES (?, ?)", (sink, value))
            self._drop(sink, new.epochs - self._kept)
        return new

    def _count(self, sink: str, delays: Counter[int], anew: bool) -> None:
        if anew:
            self._database.execute("DELETE FROM delays WHERE sink = ?", (sink,))
        self._database.executemany(
            "INSERT INTO delays VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET number = number + excluded.number",
            [(sink, bucket, number) for bucket, number in delays.items()],
        )

    def _drop(self, sink: str, below: int) -> None:
        """Forgets a limited number of receipts at a time, so that no single call takes long."""
        self._database.execute(
            "DELETE FROM receipts WHERE rowid IN (SELECT rowid FROM receipts"
            " WHERE sink = ? AND epoch < ? AND NOT duplicates AND lost = '[]' ORDER BY epoch LIMIT ?)",
            (sink, below, DROPPED_AT_ONCE),
        )


def _unbroken(receipts: Iterable[Receipt], first: int) -> Iterator[Receipt]:
    """Receipts in epoch order, up to the first epoch that is missing."""
    for expected, receipt in enumerate(receipts, first):
        if receipt.epoch != expected:
            return
        yield receipt
