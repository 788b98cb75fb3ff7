"""A bag on disk: a header that anyone can read, then Arrow streams, each with its checksum.

    USBAG1 <length of the header> <checksum of the header>\n
    {"slice": "counts[0]", "epoch": 12, "rows": 900, "digest": "…", "lost": [], "sections": {"[word]/2": [[…], …]}}
    <Arrow stream> <Arrow stream> …

A section is one division of the rows among reading slices: for each part a list of segments. Offsets count from the end
of the header. Large parts are cut into several segments, by rows so that Spark can read them in parallel, and by bytes
so that a reader holds a bounded piece in memory, however wide the rows are. Cuts depend on the rows alone.
"""

from __future__ import annotations

import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from understudy.errors import InvalidInput, UnderstudyError
from understudy.log.sizes import payload_bytes
from understudy.model import hashing
from understudy.model.layout import Split
from understudy.model.names import SliceId

MAGIC = b"USBAG1 "
_NUMBERS = re.compile(rb"(\d{10}) ([0-9a-f]{8})\n")
_PREFIX = len(MAGIC) + 20
_SEGMENT_ROWS = 1 << 17
_SEGMENT_BYTES = 16 << 20
_LARGEST_ROW = 1 << 30
_BATCH_ROWS = 1 << 16


class DamagedBag(UnderstudyError):
    """A bag that is there and cannot be read; it has to be made again."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"the bag {path} is damaged",
            why=why,
            fix="continue with --resume: it is set aside and made again from the last checkpoint before it",
        )
        self.path = path


@dataclass(frozen=True)
class Segment:
    offset: int
    length: int
    rows: int
    crc: int


@dataclass(frozen=True)
class Header:
    slice: SliceId
    epoch: int
    rows: int
    digest: str
    sections: dict[str, tuple[tuple[Segment, ...], ...]]
    lost: tuple[str, ...] = ()
    """Slices that left a gap instead of this epoch: this one, or one that it reads from."""

    def part(self, split: Split, part: int) -> tuple[Segment, ...]:
        """The segments of one part; a reader of the whole bag takes every part of the first section."""
        if split.whole:
            first = next(iter(self.sections.values()))
            return tuple(segment for segments in first for segment in segments)
        return self.sections[split.label][part]


@dataclass(frozen=True)
class Bag:
    """A bag ready to be published: its header, and the bytes to write."""

    header: Header
    parts: tuple[Any, ...]

    @property
    def start(self) -> int:
        """Where the segments begin."""
        return len(self.parts[0])

    @property
    def size(self) -> int:
        return sum(memoryview(part).nbytes for part in self.parts)


def make(slice_id: SliceId, epoch: int, table: pa.Table, splits: Sequence[Split], lost: Sequence[str] = ()) -> Bag:
    """Divides the rows for every kind of reader and lays them out."""
    sections: dict[str, tuple[tuple[Segment, ...], ...]] = {}
    bodies: list[pa.Buffer] = []
    offset = 0
    for split in splits or (Split(),):
        parts: list[tuple[Segment, ...]] = []
        for rows in _divide(table, split):
            segments: list[Segment] = []
            for body, count in streams(rows):
                segments.append(Segment(offset, body.size, count, zlib.crc32(body)))
                bodies.append(body)
                offset += body.size
            parts.append(tuple(segments))
        sections[split.label] = tuple(parts)
    header = Header(slice_id, epoch, table.num_rows, hashing.digest(table), sections, tuple(lost))
    return Bag(header, (_encode(header), *bodies))


def _divide(table: pa.Table, split: Split) -> Iterable[pa.Table]:
    if split.whole:
        return [table]
    if split.key:
        return hashing.partition(table, split.key, split.slices)
    return hashing.spread(table, split.slices)


def streams(table: pa.Table) -> Iterator[tuple[pa.Buffer, int]]:
    """The rows in order, cut into Arrow streams of bounded size, each with the number of its rows."""
    for start in range(0, table.num_rows, _SEGMENT_ROWS):
        for piece in _narrow(table.slice(start, _SEGMENT_ROWS)):
            out = pa.BufferOutputStream()
            with pa.ipc.new_stream(out, piece.schema) as writer:
                writer.write_table(piece, max_chunksize=_BATCH_ROWS)
            yield out.getvalue(), piece.num_rows


def _narrow(piece: pa.Table) -> Iterator[pa.Table]:
    """Halves until each is small enough, or a single row."""
    # Arrow's count is cheap, and never below ours.
    size = piece.nbytes if piece.nbytes <= _SEGMENT_BYTES else payload_bytes(piece)
    if size <= _SEGMENT_BYTES:
        yield piece
    elif piece.num_rows > 1:
        half = piece.num_rows // 2
        yield from _narrow(piece.slice(0, half))
        yield from _narrow(piece.slice(half))
    elif size <= _LARGEST_ROW:
        yield piece
    else:
        raise InvalidInput(
            f"a row has {size >> 20} MB",
            why=f"a row is read as one piece, and the largest that fits has {_LARGEST_ROW >> 20} MB",
            fix="divide it into several rows, or store the large value elsewhere and put its address into the row",
        )


def _encode(header: Header) -> bytes:
    body = json.dumps(
        {
            "slice": str(header.slice),
            "epoch": header.epoch,
            "rows": header.rows,
            "digest": header.digest,
            "lost": header.lost,
            "sections": {
                label: [[[s.offset, s.length, s.rows, s.crc] for s in part] for part in parts]
                for label, parts in header.sections.items()
            },
        }
    ).encode()
    return MAGIC + f"{len(body):010d} {zlib.crc32(body):08x}\n".encode() + body


def read_header(path: Path) -> tuple[Header, int]:
    """The header of a bag and where its segments start; checks that the file is as long as it should be."""
    with path.open("rb") as file:
        prefix = file.read(_PREFIX)
        numbers = _NUMBERS.fullmatch(prefix.removeprefix(MAGIC))
        if not prefix.startswith(MAGIC) or numbers is None:
            raise DamagedBag(path, "it does not begin like a bag")
        length = int(numbers[1])
        body = file.read(length)
        size = file.seek(0, io.SEEK_END)
    if len(body) != length or zlib.crc32(body) != int(numbers[2], 16):
        raise DamagedBag(path, "its header does not match its checksum")
    header = _decode(json.loads(body))
    start = _PREFIX + length
    expected = start + max((s.offset + s.length for s in _all_segments(header)), default=0)
    if size != expected:
        raise DamagedBag(path, f"it has {size} bytes and should have {expected}")
    return header, start


def is_whole(path: Path) -> bool:
    """Whether a bag is there and all of it is as it was written."""
    try:
        header, start = read_header(path)
        with path.open("rb") as file:
            for segment in _all_segments(header):
                _body(file, path, start, segment)
    except (FileNotFoundError, DamagedBag):
        return False
    return True


def _body(file: BinaryIO, path: Path, start: int, segment: Segment) -> bytes:
    """The bytes of a segment, checked."""
    file.seek(start + segment.offset)
    body = file.read(segment.length)
    if zlib.crc32(body) != segment.crc:
        raise DamagedBag(path, "its content does not match its checksum")
    return body


def _decode(fields: dict[str, Any]) -> Header:
    sections = {
        label: tuple(tuple(Segment(*segment) for segment in part) for part in parts)
        for label, parts in fields["sections"].items()
    }
    slice_id, lost = SliceId.parse(fields["slice"]), tuple(fields["lost"])
    return Header(slice_id, fields["epoch"], fields["rows"], fields["digest"], sections, lost)


def _all_segments(header: Header) -> Iterable[Segment]:
    return (segment for parts in header.sections.values() for part in parts for segment in part)


def read_rows(path: Path, start: int, segments: Sequence[Segment], schema: pa.Schema) -> pa.Table:
    """The rows of some segments of a bag whose segments begin at `start`, checked, in order."""
    with path.open("rb") as file:
        bodies = [_body(file, path, start, segment) for segment in segments]
    return pa.concat_tables([schema.empty_table(), *(pa.ipc.open_stream(body).read_all() for body in bodies)])
