"""Which checkpoints of a slice count, as one small object: the *head*. Pure values; `object_heads.py` stores it.

Whoever ships, recycles or finds damage reads the head, makes the next one, and writes it only if nobody else has done
so meanwhile. So all changes of a slice have one order, and what a change was built on still holds when it is made.

`sweep` counts how often a replica has begun to look for objects that no marker names. Every object has in its name the
sweep it was written under. A checkpoint is accepted only if its new objects were written under the sweep of the head.
So an object of an earlier sweep that no marker names will never be named, and may be removed at any time.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace

VERSION = 1


@dataclass(frozen=True, order=True)
class Ref:
    """A marker that is an object of its own, by its epoch, its generation and its name."""

    epoch: int
    generation: int
    name: str

    @property
    def title(self) -> str:
        """The name without its folder, which begins with the epoch."""
        return self.name.rpartition("/")[2]


@dataclass(frozen=True)
class Head:
    """`markers` count, newest first; `aside` are those of checkpoints that were found damaged. `number` grows with
    every change, so that no two heads are alike."""

    number: int = 0
    sweep: int = 0
    markers: tuple[Ref, ...] = ()
    aside: tuple[Ref, ...] = ()

    @property
    def epochs(self) -> list[int]:
        return [ref.epoch for ref in self.markers]

    @property
    def newest(self) -> int:
        return self.markers[0].epoch if self.markers else -1

    def with_marker(self, ref: Ref) -> Head:
        """A checkpoint more. Another one of that replica and epoch makes room for it."""
        others = [one for one in self.markers if (one.epoch, one.generation) != (ref.epoch, ref.generation)]
        return self._next(markers=tuple(sorted([*others, ref], reverse=True)))

    def keeping(self, positions: Collection[int], aside_from: int) -> Head:
        """Only the markers at these positions, and of those set aside the ones of an epoch or later."""
        markers = tuple(ref for number, ref in enumerate(self.markers) if number in positions)
        aside = tuple(ref for ref in self.aside if ref.epoch >= aside_from)
        return self if (markers, aside) == (self.markers, self.aside) else self._next(markers=markers, aside=aside)

    def set_aside(self, title: str) -> Head:
        """The same if there is no such marker: it was recycled, or set aside by another replica."""
        found = next((ref for ref in self.markers if ref.title == title), None)
        if found is None:
            return self
        return self._next(markers=tuple(ref for ref in self.markers if ref != found), aside=(*self.aside, found))

    def swept(self) -> Head:
        return self._next(sweep=self.sweep + 1)

    def _next(
        self, *, sweep: int | None = None, markers: tuple[Ref, ...] | None = None, aside: tuple[Ref, ...] | None = None
    ) -> Head:
        return replace(
            self,
            number=self.number + 1,
            sweep=self.sweep if sweep is None else sweep,
            markers=self.markers if markers is None else markers,
            aside=self.aside if aside is None else aside,
        )


def encode(head: Head) -> bytes:
    fields = {"version": VERSION, **asdict(head)}
    return json.dumps(fields | {"crc": _checksum(fields)}).encode()


def decode(content: bytes) -> Head | None:
    """None if it cannot be read, or says something else than was written."""
    try:
        fields = json.loads(content)
        crc = fields.pop("crc")
        if crc != _checksum(fields) or fields["version"] != VERSION:
            return None
        markers, aside = (tuple(Ref(**ref) for ref in fields[name]) for name in ("markers", "aside"))
        return Head(fields["number"], fields["sweep"], markers, aside)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _checksum(fields: object) -> int:
    return zlib.crc32(json.dumps(fields, sort_keys=True).encode())
