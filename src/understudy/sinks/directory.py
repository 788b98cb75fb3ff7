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
TENTATIVE = "_tentative"
"""Its name begins so that Spark, Arrow and others who read the directory as one table pass over it."""
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

    def write_tentative(self, epoch: int, rows: pa.Table, missing: tuple[str, ...]) -> None:
        path = self._tentative(epoch)
        with _reachable(path):
            self._disk.replace(_note(path), [json.dumps({"missing": missing}).encode()])
            self._disk.replace(path, [self._encode(rows)])

    def withdraw_tentative(self, epoch: int) -> None:
        path = self._tentative(epoch)
        with _reachable(path):
            path.unlink(missing_ok=True)
            _note(path).unlink(missing_ok=True)

    def _tentative(self, epoch: int) -> Path:
        return self._path / TENTATIVE / self.file(epoch).name

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


def _note(tentative: Path) -> Path:
    """Beside a tentative file: which slices are missing in it."""
    return tentative.with_suffix(".json")


@dataclass(frozen=True)
class EpochFile:
    """One epoch in the directory of a file sink.

    Parameters
    ----------
    epoch : int
        Number of the epoch.
    path : Path
        Its file.
    tentative : bool
        Whether it will be replaced by the stable epoch.
    missing : tuple of str
        The slices that are not in a tentative epoch.

    Examples
    --------
    >>> from pathlib import Path
    >>> import understudy as us
    >>> us.sinks.EpochFile(12, Path("out/counts/epoch-0000000012.jsonl")).tentative
    False
    """

    epoch: int
    path: Path
    tentative: bool = False
    missing: tuple[str, ...] = ()


def epochs(directory: str | Path) -> list[EpochFile]:
    """Lists the epochs of a file sink in order, tentative ones where the stable epoch is not there yet.

    Parameters
    ----------
    directory : str or Path
        The directory of a `Parquet` or `JsonLines` sink.

    Returns
    -------
    list of EpochFile
        Every epoch once. The file of a tentative epoch goes when the stable one is there: if it cannot be opened any
        more, call `epochs` again.

    Notes
    -----
    A stable file is put in place before the tentative one is removed, and this function looks for tentative files
    first. So it never finds neither, and never a tentative epoch whose stable file was there before the call.

    Examples
    --------
    >>> from pathlib import Path
    >>> import pyarrow as pa
    >>> import understudy as us
    >>> writer = us.sinks.JsonLines("counts").open("counts", Path.cwd(), run="1")
    >>> written = writer.write(0, pa.table({"n": [1]}))
    >>> writer.write_tentative(1, pa.table({"n": [2]}), ("counts[1]",))
    >>> [(one.epoch, one.tentative, one.missing) for one in us.sinks.epochs("out/counts")]
    [(0, False, ()), (1, True, ('counts[1]',))]
    """
    root = Path(directory)
    tentative = {_epoch(path): path for path in (root / TENTATIVE).glob("epoch-*") if path.suffix != ".json"}
    missing = {number: _missing(_note(path)) for number, path in tentative.items()}
    stable = {_epoch(path): EpochFile(_epoch(path), path) for path in root.glob("epoch-*")}
    other = {number: EpochFile(number, path, True, missing[number]) for number, path in tentative.items()}
    found = other | stable
    return [found[number] for number in sorted(found)]


def _epoch(path: Path) -> int:
    return int(path.stem.removeprefix("epoch-"))


def _missing(note: Path) -> tuple[str, ...]:
    try:
        return tuple(json.loads(note.read_bytes())["missing"])
    except (OSError, ValueError, KeyError):
        return ()


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
