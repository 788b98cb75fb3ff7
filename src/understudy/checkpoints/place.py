"""Where and for which run shipped checkpoints are opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from understudy.log.disk import Disk
from understudy.model.address import Address, parse

URL = "checkpoints.url"


@dataclass(frozen=True)
class CheckpointsPlace:
    """`home` is the directory `checkpoints` of the run's home."""

    url: str
    home: Path
    run: str
    disk: Disk

    @property
    def address(self) -> Address:
        return parse(self.url, URL)
