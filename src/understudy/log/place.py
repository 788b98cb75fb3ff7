"""Where and for whom a log is opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from understudy.log.disk import Disk
from understudy.model.address import Address, parse
from understudy.model.config import LogSection
from understudy.model.names import SliceId

URL = "log.url"


@dataclass(frozen=True)
class LogPlace:
    """`home` is the directory `log` of the run's home, `local` one that belongs to this node alone.

    `slices` are all that publish, in an order that every node has alike.
    """

    section: LogSection
    home: Path
    local: Path
    run: str
    slices: tuple[SliceId, ...]
    disk: Disk

    @property
    def address(self) -> Address:
        return parse(self.section.url, URL)
