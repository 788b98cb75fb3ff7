"""What the order of one slice's partition says: which bag of an epoch counts.

Every reader of a partition sees the same records in the same order and comes to the same answer. That order is the only
agreement there is; nobody is elected and nothing is locked. This is pure code: records in, the fate of bags out.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from enum import StrEnum

from understudy.log.kafka_records import ANY_GENERATION, Fence, Piece, Record, Trim, Void


class Fate(StrEnum):
    """What became of a record that somebody wrote."""

    FIRST = "first"
    """A bag that counts."""
    SECOND = "second"
    """A complete bag of an epoch that has one, or is trimmed."""
    REFUSED = "refused"
    """A bag behind a fence for a newer generation."""
    BROKEN = "broken"
    """A bag whose pieces are not all there, or do not match its checksum. It counts as absent."""
    NOTED = "noted"
    """Any other record."""


@dataclass(frozen=True)
class Entry:
    """A bag that counts, and the offsets of its first and last piece."""

    epoch: int
    writer: str
    first: int
    last: int
    size: int
    crc: int


@dataclass
class _Assembly:
    first: int
    pieces: int = 0
    size: int = 0
    crc: int = 0


@dataclass
class Order:
    """One partition, as far as it was read. `fences` holds the offset of the first fence of every generation."""

    slice: str
    bags: dict[int, Entry] = field(default_factory=dict)
    fences: dict[int, int] = field(default_factory=dict)
    newest: int = -1
    trimmed: int = -1
    _open: dict[tuple[int, str], _Assembly] = field(default_factory=dict)

    @property
    def fenced(self) -> int:
        return max(self.fences, default=0)

    def is_open(self, epoch: int) -> bool:
        """Whether a bag of this epoch would count if it came next and no fence forbade it."""
        return epoch not in self.bags and epoch > self.trimmed

    def first_missing(self, above: int) -> int:
        expected = max(min(self.bags, default=0), above + 1)
        while expected in self.bags:
            expected += 1
        return expected

    def needed_from(self) -> int | None:
        """The first offset that a new reader needs: of a bag that counts, or of one that may still be completed."""
        firsts = [entry.first for entry in self.bags.values()]
        firsts += [one.first for (epoch, _), one in self._open.items() if self.is_open(epoch)]
        return min(firsts, default=None)

    def carry(self, generation: int, offset: int) -> None:
        """A fence that stood at this offset, told by somebody who has read it: it may be trimmed by now."""
        self.fences[generation] = min(offset, self.fences.get(generation, offset))

    def apply(self, offset: int, record: Record, value: bytes) -> Fate | None:
        """Reads the next record; returns what became of it, None for a piece of a bag that goes on."""
        match record:
            case Piece():
                return self._piece(offset, record, value)
            case Fence():
                self.carry(record.generation, offset)
            case Trim():
                self._trim(record.epoch)
            case Void():
                entry = self.bags.get(record.epoch)
                if entry is not None and entry.writer == record.bag:
                    del self.bags[record.epoch]
                    self.newest = max(self.bags, default=-1)
        return Fate.NOTED

    def _piece(self, offset: int, piece: Piece, value: bytes) -> Fate | None:
        own = (piece.epoch, piece.writer)
        if piece.number == 0:
            self._open[own] = _Assembly(offset)
        found = self._open.get(own)
        if found is None or found.pieces != piece.number:
            self._open.pop(own, None)
            return Fate.BROKEN if piece.last else None
        found.pieces += 1
        found.size += len(value)
        found.crc = zlib.crc32(value, found.crc)
        if not piece.last:
            return None
        del self._open[own]
        if piece.slice != self.slice or (found.size, found.crc) != (piece.size, piece.crc):
            return Fate.BROKEN
        return self._complete(offset, piece, found)

    def _complete(self, offset: int, piece: Piece, found: _Assembly) -> Fate:
        if self._forbidden(piece.generation, offset):
            return Fate.REFUSED
        if not self.is_open(piece.epoch):
            return Fate.SECOND
        self.bags[piece.epoch] = Entry(piece.epoch, piece.writer, found.first, offset, found.size, found.crc)
        self.newest = max(self.newest, piece.epoch)
        return Fate.FIRST

    def _forbidden(self, generation: int, offset: int) -> bool:
        if generation == ANY_GENERATION:
            return False
        # By offset: a fence may be known, from a carried fact, before the partition was read up to it.
        return any(newer > generation and at < offset for newer, at in self.fences.items())

    def _trim(self, epoch: int) -> None:
        # What was begun before the trim before this one belongs to a writer that is gone, or will write it again.
        self._open = {own: one for own, one in self._open.items() if own[0] > self.trimmed}
        for number in [number for number in self.bags if number <= epoch and number != self.newest]:
            del self.bags[number]
        self.trimmed = max(self.trimmed, min(epoch, self.newest - 1))
