"""The records of one slice's partition. The key says what a record is, the value holds a piece of a bag or nothing.

A bag that is larger than a record is cut into pieces. Each piece says how many there are and what the whole must be, so
that every reader decides alike whether a bag is complete: all pieces of one writer, in order, with the right checksum.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from understudy.log.bag import Bag

ANY_GENERATION = -1
"""Of a bag that no fence refuses."""


@dataclass(frozen=True)
class Piece:
    """One of `count` pieces of a bag; `size` and `crc` are those of the whole bag."""

    slice: str
    epoch: int
    generation: int
    number: int
    count: int
    size: int
    crc: int
    writer: str

    @property
    def last(self) -> bool:
        return self.number == self.count - 1


@dataclass(frozen=True)
class Fence:
    """Bags of older generations behind this record do not count."""

    generation: int
    writer: str


@dataclass(frozen=True)
class Trim:
    """Bags up to this epoch are not needed any more."""

    epoch: int
    writer: str


@dataclass(frozen=True)
class Void:
    """The bag of this writer cannot be read any more; the next complete one of its epoch counts instead."""

    epoch: int
    bag: str
    writer: str


Record = Piece | Fence | Trim | Void
_KINDS: dict[str, type[Any]] = {"bag": Piece, "fence": Fence, "trim": Trim, "void": Void}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def encode(record: Record) -> bytes:
    """The key of a record."""
    return json.dumps({"kind": _NAMES[type(record)], **asdict(record)}, separators=(",", ":")).encode()


def decode(key: bytes | None) -> Record | None:
    """The record that a key describes; None for one that we cannot have written, which counts as absent."""
    try:
        fields = json.loads(key or b"")
        found: Record = _KINDS[fields.pop("kind")](**fields)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return found


def pieces(bag: Bag, writer: str, generation: int, limit: int) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of a bag's records, each value with at most `limit` bytes."""
    crc = 0
    for part in bag.parts:
        crc = zlib.crc32(part, crc)
    header = bag.header
    count = max(1, -(-bag.size // limit))
    for number, value in enumerate(_cut(bag, limit)):
        piece = Piece(str(header.slice), header.epoch, generation, number, count, bag.size, crc, writer)
        yield encode(piece), value


def _cut(bag: Bag, limit: int) -> Iterator[bytes]:
    """The bytes of a bag in pieces that are full, but for the last."""
    gathered: list[memoryview] = []
    room = limit
    for part in bag.parts:
        left = memoryview(part).cast("B")
        while len(left) >= room:
            yield b"".join([*gathered, left[:room]])
            left, gathered, room = left[room:], [], limit
        if left:
            gathered.append(left)
            room -= len(left)
    if gathered:
        yield b"".join(gathered)
