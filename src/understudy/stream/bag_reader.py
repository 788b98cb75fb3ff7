"""Reads the bags a slice needs from the log's files."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa

from understudy.log.bag import DamagedBag
from understudy.log.interface import Log, Stored
from understudy.model import hashing
from understudy.model.layout import Channel
from understudy.model.segments import SegmentPlace
from understudy.stream import frames
from understudy.stream.edge import Delivery, Input, InputDamaged, InputMissing


class BagReader:
    """`order_by`: the time column of an operator with a strict order; its rows are sorted across channels."""

    def __init__(
        self,
        log: Log,
        channels: Sequence[Channel],
        schemas: Sequence[pa.Schema],
        directory: Path,
        order_by: str | None = None,
    ) -> None:
        self._log, self._channels, self._schemas = log, channels, schemas
        self._directory, self._order_by = directory, order_by

    def read(self, epoch: int) -> Input:
        bags = [(channel, self._stored(channel, epoch)) for channel in self._channels]
        if self._order_by is not None:
            lines = self._sorted(epoch, bags, self._order_by)
        else:
            lines = [line for channel, stored in bags for line in stored.lines(channel)]
        segments = [s for channel, stored in bags for s in stored.header.part(channel.split, channel.part)]
        return Input(
            lines=tuple(lines),
            rows=sum(segment.rows for segment in segments),
            size=sum(segment.length for segment in segments),
            lost=_lost(stored for _, stored in bags),
            places={str(stored.path): channel.upstream for channel, stored in bags},
        )

    def copy(self, epoch: int, found: Input) -> Input:
        """Only the parts this slice reads, checked on the way. Sorted rows are in a file of our own already."""
        if self._order_by is not None:
            return found
        path = self._file(epoch)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = []
        with path.open("wb") as file:
            for place in map(SegmentPlace.parse, found.lines):
                content = self._checked(place, found, epoch)
                lines.append(str(place.moved(file.tell(), path)))
                file.write(content)
        return Input(tuple(lines), found.rows, found.size, found.lost)

    def discard(self, epoch: int) -> None:
        if self._directory.is_dir():
            for path in self._directory.iterdir():
                if int(path.stem) <= epoch:
                    path.unlink(missing_ok=True)

    def deliver(self, epoch: int) -> Delivery:
        tables: list[pa.Table] = []
        bags = [(channel, self._stored(channel, epoch)) for channel in self._channels]
        for channel, stored in bags:
            try:
                tables.append(stored.rows(channel, self._schemas[channel.input]))
            except DamagedBag as error:
                raise InputDamaged(error, channel.upstream, epoch) from error
        rows = pa.concat_tables(tables)
        return Delivery(rows, rows.num_rows, hashing.digest(rows), _lost(stored for _, stored in bags))

    def _file(self, epoch: int) -> Path:
        return self._directory / f"{epoch}.rows"

    def _sorted(self, epoch: int, bags: list[tuple[Channel, Stored]], order_by: str) -> list[str]:
        try:
            return frames.strict_lines(self._file(epoch), bags, self._schemas, order_by)
        except DamagedBag as error:
            raise InputDamaged(error, next(c.upstream for c, s in bags if s.path == error.path), epoch) from error

    def _stored(self, channel: Channel, epoch: int) -> Stored:
        try:
            stored = self._log.fetch(channel.upstream, epoch)
        except DamagedBag as error:
            raise InputDamaged(error, channel.upstream, epoch) from error
        if stored is None:
            raise InputMissing(f"{channel.upstream} lost its bag of epoch {epoch}")
        return stored

    def _checked(self, place: SegmentPlace, found: Input, epoch: int) -> bytes:
        try:
            with Path(place.path).open("rb") as file:
                file.seek(place.offset)
                content = file.read(place.length)
        except FileNotFoundError as error:
            raise InputMissing(f"{place.path} was trimmed while it was read") from error
        if zlib.crc32(content) != place.crc:
            damaged = DamagedBag(Path(place.path), "its content does not match its checksum")
            raise InputDamaged(damaged, found.places[place.path], epoch)
        return content


def _lost(bags: Iterable[Stored]) -> tuple[str, ...]:
    return tuple(sorted({name for stored in bags for name in stored.header.lost}))
