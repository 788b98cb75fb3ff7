"""Where a segment of rows lies, as Python tells the JVM: one line of six fields (`jvm/…/Segment.java` reads it)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True)
class SegmentPlace:
    """`input` is the number of the operator's input; `crc` is the checksum of the `length` bytes at `offset`."""

    input: int
    offset: int
    length: int
    rows: int
    crc: int
    path: str

    def __str__(self) -> str:
        return f"{self.input}\t{self.offset}\t{self.length}\t{self.rows}\t{self.crc}\t{self.path}"

    @classmethod
    def parse(cls, line: str) -> SegmentPlace:
        number, offset, length, rows, crc, path = line.split("\t", 5)
        return cls(int(number), int(offset), int(length), int(rows), int(crc), path)

    def moved(self, offset: int, path: Path) -> SegmentPlace:
        """The same bytes, copied to another file."""
        return replace(self, offset=offset, path=str(path))
