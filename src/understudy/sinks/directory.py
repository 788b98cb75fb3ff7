"""A directory with one file per epoch: the file's name is the memory of what was written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from understudy.errors import InvalidInput, Unavailable
from understudy.log.disk import TEMPORARY, Disk
from understudy.sinks.interface import SinkWriter, Written

if TYPE_CHECKING:
    from collections.abc import Iterator

CLAIM = "_understudy.json"
Encode = Callable[[pa.Table], bytes]
_ADDRESS = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+):/")


@dataclass(frozen=True)
class Owner:
    """Whose epochs a directory holds."""

    run: str
    sink: str


class DirectoryWriter(SinkWriter):
    """Puts each epoch in place in one step (see `Disk`); a second writer finds the file there and leaves it alone."""

    def __init__(self, path: Path, owner: Owner, ending: str, encode: Encode, disk: Disk | None = None) -> None:
        self._path, self._ending, self._encode = path, ending, encode
        self._disk = disk or Disk()
        with _reachable(path):
            self._claim(owner)
            self._sweep()

    def file(self, epoch: int) -> Path:
        return self._path / f"epoch-{epoch:010d}.{self._ending}"

    def write(self, epoch: int, rows: pa.Table) -> Written:
        path = self.file(epoch)
        with _reachable(path):
            # Checked before the work of encoding; `put_if_absent` checks again when the file is put in place.
            if path.exists():
                self._disk.secure(path)
                return Written.THERE
            return Written(self._put(path, self._encode(rows)))

    def _put(self, path: Path, content: bytes) -> bool:
        try:
            return self._disk.put_if_absent(path, [content], durable=True)
        except FileNotFoundError:
            # A writer that opened the target just now swept our unfinished copy: the file itself is there.
            if not path.exists():
                raise
            self._disk.secure(path)
            return False

    def _claim(self, owner: Owner) -> None:
        if self._path.exists() and not self._path.is_dir():
            raise InvalidInput(
                f"{self._path} is not a directory",
                why="a file sink writes one file per epoch into a directory of its own",
                fix="remove the file, or give the sink another path",
            )
        marker = self._path / CLAIM
        if not marker.exists() and any(self._path.glob("epoch-*")):
            raise self._foreign("epochs of an unknown run")
        self._put(marker, json.dumps({"run": owner.run, "sink": owner.sink}).encode())
        try:
            found = json.loads(marker.read_bytes())
            there = Owner(str(found["run"]), str(found["sink"]))
        except (ValueError, KeyError, TypeError) as error:
            raise self._foreign(f"a {CLAIM} that cannot be read") from error
        if there.run != owner.run:
            raise self._foreign(f"epochs of run {there.run}")
        if there != owner:
            raise self._foreign(f"epochs of sink '{there.sink}'")

    def _foreign(self, what: str) -> InvalidInput:
        return InvalidInput(
            f"{self._path} holds {what}",
            why="epochs of two runs or two sinks under one name could not be told apart",
            fix="give the sink another path, move the directory away, or go on with its run by --resume",
        )

    def _sweep(self) -> None:
        """Removes what a killed writer left of epochs that are there; others may still be at work on the rest."""
        for leftover in self._path.glob(f"{TEMPORARY}*"):
            target = leftover.name.removeprefix(TEMPORARY).rsplit("-", 1)[0]
            if (self._path / target).exists():
                with suppress(FileNotFoundError):
                    leftover.unlink()


@contextmanager
def _reachable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be written", why=str(error), fix="check that the directory is there and may be written"
        ) from error


def under(home: Path, path: str | Path) -> Path:
    return home / "out" / path


def check_path(path: object) -> None:
    """Refuses what would become a directory with the name of an address."""
    if not isinstance(path, str | Path) or str(path) in ("", "."):
        raise InvalidInput(
            f"a file sink cannot write to {path!r}",
            why="it writes one file per epoch into a directory of its own",
            fix='name a directory, like us.sinks.Parquet("counts")',
        )
    address = _ADDRESS.match(str(path))
    if address is not None:
        raise InvalidInput(
            f"a file sink cannot write to {path}",
            why=f"it writes to file systems of this machine, and '{address[1]}:' is the address of another store",
            fix="give a path without a scheme; for other stores mount them, or deliver with us.sinks.Call",
        )
