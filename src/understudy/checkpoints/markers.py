"""The markers of one slice: those that count, and those of checkpoints that were found damaged.

    markers/<epoch>-<generation>.json
    damaged/<epoch>-<generation>.json

Whatever counts checkpoints (the newest, what may be acknowledged, what is recycled) reads the first. The others still
say that the slice once had such a checkpoint, and which files must not be linked again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from understudy.checkpoints.interface import Marker
from understudy.checkpoints.restoring import epoch_of
from understudy.checkpoints.spark_files import decode, encode
from understudy.log.disk import Disk


@dataclass(frozen=True)
class Markers:
    """`root` is the directory of the slice's checkpoints."""

    root: Path
    disk: Disk

    def path(self, marker: Marker) -> Path:
        return self.root / "markers" / f"{marker.epoch:010d}-{marker.generation}.json"

    def write(self, marker: Marker) -> None:
        self.disk.replace(self.path(marker), [encode(marker)], durable=True)

    def remove(self, marker: Marker) -> None:
        self.path(marker).unlink(missing_ok=True)

    def newest_first(self) -> list[Marker]:
        """Those that count, whoever shipped them: two replicas at one epoch have one state."""
        found = [marker for _, marker in self.read() if marker is not None]
        return sorted(found, key=lambda marker: (marker.epoch, marker.generation), reverse=True)

    def read(self) -> Iterator[tuple[str, Marker | None]]:
        """Every marker that was not set aside, by its name, None for one that cannot be read."""
        for path in (self.root / "markers").glob("*.json"):
            with suppress(FileNotFoundError):
                yield path.name, decode(path.read_bytes())

    # -- damaged checkpoints

    def set_aside(self, name: str) -> bool:
        """Lets a checkpoint no longer count; False if it is gone: it was recycled, or set aside by another replica.

        A crash in between leaves the marker in both places. Then the next restore finds its checkpoint damaged again.
        """
        path, aside = self.root / "markers" / name, self._damaged / name
        if not self.disk.link(path, aside):
            return False
        self.disk.sync_directory(aside.parent)
        path.unlink(missing_ok=True)
        self.disk.sync_directory(path.parent)
        return True

    def aside(self) -> list[str]:
        return sorted(path.name for path in self._damaged.glob("*.json"))

    def damaged_folders(self) -> set[str]:
        """The folders with the files of damaged checkpoints, as `Store.ship` names them."""
        return {f"{Path(name).stem.partition('-')[2]}-{epoch_of(name)}" for name in self.aside()}

    def forget_damaged(self, below: int) -> None:
        """Removes what was set aside from before an epoch: the slice will never start from there again."""
        for name in self.aside():
            if epoch_of(name) < below:
                (self._damaged / name).unlink(missing_ok=True)

    @property
    def _damaged(self) -> Path:
        return self.root / "damaged"
