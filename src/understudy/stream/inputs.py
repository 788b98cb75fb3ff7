"""The input of a slice: where the rows of an epoch lie, fetched ahead into the node's own directory if asked."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from understudy.log.bag import DamagedBag
from understudy.log.interface import Stored
from understudy.model.layout import Channel
from understudy.model.names import SliceId
from understudy.model.topology import Operator
from understudy.stream import frames
from understudy.stream.site import Site


class InputDamaged(Exception):
    """A bag that cannot be read, and whose it is."""

    def __init__(self, error: DamagedBag, upstream: SliceId, epoch: int) -> None:
        super().__init__(str(error))
        self.error, self.upstream, self.epoch = error, upstream, epoch


class InputMissing(Exception):
    """A bag that was there a moment ago."""


@dataclass(frozen=True)
class Input:
    """What the gate is told about an epoch, and which slices left a gap in it."""

    lines: tuple[str, ...]
    rows: int
    size: int
    lost: tuple[str, ...]
    places: dict[str, SliceId]
    """The files it is read from, and whose they are."""


class Inputs:
    """Reads from the log, or from what was fetched ahead."""

    def __init__(
        self,
        site: Site,
        channels: Sequence[Channel],
        operator: Operator,
        schemas: Sequence[pa.Schema],
        directory: Path,
    ) -> None:
        self._site, self._channels, self._operator = site, channels, operator
        self._schemas, self._directory = schemas, directory
        self._ahead: dict[int, Input] = {}

    @property
    def upstream(self) -> list[SliceId]:
        return [channel.upstream for channel in self._channels]

    def newest(self) -> int:
        """The newest epoch that all upstream slices have published."""
        return min((self._site.log.newest(channel.upstream) for channel in self._channels), default=-1)

    def holds(self, epoch: int) -> bool:
        return epoch in self._ahead

    def has(self, epoch: int, wait_s: float = 0.0) -> bool:
        return epoch in self._ahead or self._site.log.await_bags(self.upstream, epoch, wait_s)

    def get(self, epoch: int) -> Input:
        return self._ahead.pop(epoch, None) or self._read(epoch)

    def fetch(self, epoch: int) -> int:
        """Copies an epoch here, if it is there and not here yet; answers the bytes."""
        if epoch in self._ahead or not self._site.log.await_bags(self.upstream, epoch, 0.0):
            return 0
        found = self._read(epoch)
        if self._operator.order != "strict":
            found = self._copy(epoch, found)
        self._ahead[epoch] = found
        return found.size

    def drop(self) -> None:
        """Forgets all that was fetched."""
        for epoch in list(self._ahead):
            self.forget(epoch)

    def forget(self, epoch: int) -> None:
        """This epoch, and those before it, will not be read again."""
        self._ahead = {number: value for number, value in self._ahead.items() if number > epoch}
        if self._directory.is_dir():
            for path in self._directory.iterdir():
                if int(path.stem) <= epoch:
                    path.unlink(missing_ok=True)

    def _file(self, epoch: int) -> Path:
        return self._directory / f"{epoch}.rows"

    def _read(self, epoch: int) -> Input:
        bags = [(channel, self._stored(channel, epoch)) for channel in self._channels]
        if self._operator.order == "strict":
            lines = self._sorted(epoch, bags)
        else:
            lines = [line for channel, stored in bags for line in stored.lines(channel)]
        segments = [s for channel, stored in bags for s in stored.header.part(channel.split, channel.part)]
        return Input(
            lines=tuple(lines),
            rows=sum(segment.rows for segment in segments),
            size=sum(segment.length for segment in segments),
            lost=tuple(sorted({name for _, stored in bags for name in stored.header.lost})),
            places={str(stored.path): channel.upstream for channel, stored in bags},
        )

    def _sorted(self, epoch: int, bags: list[tuple[Channel, Stored]]) -> list[str]:
        try:
            return frames.strict_lines(self._file(epoch), bags, self._schemas, self._operator.time or "")
        except DamagedBag as error:
            raise InputDamaged(error, next(c.upstream for c, s in bags if s.path == error.path), epoch) from error

    def _stored(self, channel: Channel, epoch: int) -> Stored:
        try:
            stored = self._site.log.fetch(channel.upstream, epoch)
        except DamagedBag as error:
            raise InputDamaged(error, channel.upstream, epoch) from error
        if stored is None:
            raise InputMissing(f"{channel.upstream} lost its bag of epoch {epoch}")
        return stored

    def _copy(self, epoch: int, found: Input) -> Input:
        """Only the parts this slice reads, checked on the way."""
        path = self._file(epoch)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = []
        with path.open("wb") as file:
            for line in found.lines:
                number, offset, length, rows, crc, source = line.split("\t", 5)
                try:
                    content = _read_part(Path(source), int(offset), int(length))
                except FileNotFoundError as error:
                    raise InputMissing(f"{source} was trimmed while it was read") from error
                if zlib.crc32(content) != int(crc):
                    damaged = DamagedBag(Path(source), "its content does not match its checksum")
                    raise InputDamaged(damaged, found.places[source], epoch)
                lines.append(f"{number}\t{file.tell()}\t{length}\t{rows}\t{crc}\t{path}")
                file.write(content)
        return Input(tuple(lines), found.rows, found.size, found.lost, {})


def _read_part(path: Path, offset: int, length: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(length)
