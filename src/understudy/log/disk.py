"""The few things we do to a disk. A crash at any instant leaves the old or the new, never half of either.

Everything that must survive goes through here, so that another medium replaces one file. `durable` adds an fsync:
without it the write survives a killed process but not a power cut. A file survives a power cut when its content was
synced, and the directory that names it, and every directory above.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from understudy.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer

TEMPORARY = ".tmp-"
PIECE = 4 << 20


class DiskFull(Unavailable):
    """No room left; whatever was there before is untouched."""


def _no_step(name: str) -> None:
    """Tests replace this to stop a procedure after any of its steps."""


@dataclass(frozen=True)
class Disk:
    on_step: Callable[[str], None] = _no_step
    _anchored: set[Path] = field(default_factory=set, compare=False, repr=False)
    """Directories whose own names are known to be durable. Only those that stay; every writer adds to it."""

    def flush(self, descriptor: int) -> None:
        """Makes what was written to an open file, or the names in an open directory, survive a power cut."""
        os.fsync(descriptor)

    def put_if_absent(self, path: Path, parts: Iterable[ReadableBuffer], *, durable: bool = False) -> bool:
        """Writes a file that is not there yet; False, and nothing changes, if it is. The first writer wins."""
        if path.exists():
            return self._lost(path, durable)
        with self._written(path, parts, durable) as temporary:
            try:
                os.link(temporary, path)
            except FileExistsError:
                return self._lost(path, durable)
            self.on_step("linked")
            if durable:
                self.sync_directory(path.parent)
        return True

    def _lost(self, path: Path, durable: bool) -> bool:
        if durable:
            with suppress(FileNotFoundError):
                self.secure(path)
        return False

    def secure(self, path: Path) -> None:
        """Makes a file that is there durable: its writer may have been killed before it did so itself."""
        self.sync(path)
        self.sync_directory(path.parent)

    def replace(self, path: Path, parts: Iterable[ReadableBuffer], *, durable: bool = False) -> None:
        """Writes a file whether it is there or not; a reader sees the old content or the new."""
        with self._written(path, parts, durable) as temporary:
            temporary.replace(path)
            self.on_step("replaced")
            if durable:
                self.sync_directory(path.parent)

    def link(self, source: Path, target: Path) -> bool:
        """Gives a file a second name, as good as a copy; False if it is gone. Sync the directory to make it durable."""
        temporary = _beside(target)
        try:
            with room_for(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                os.link(source, temporary)
                temporary.replace(target)
        except FileNotFoundError:
            return False
        finally:
            # Also there after success if both names were the same file already.
            temporary.unlink(missing_ok=True)
        self.on_step("linked")
        return True

    def sync(self, path: Path) -> None:
        """Makes the content of a file survive a power cut, or the names in a directory."""
        descriptor = os.open(path, os.O_RDONLY)
        try:
            self.flush(descriptor)
        finally:
            os.close(descriptor)

    def sync_directory(self, path: Path) -> None:
        """Makes the names in a directory survive a power cut, and its own name."""
        self.sync(path)
        self._anchor(path)

    def sync_tree(self, root: Path, files: Iterable[Path]) -> None:
        """Makes the names of files below a directory durable, and of the directories between; not the root's own."""
        directories: set[Path] = set()
        for parent in {file.parent for file in files}:
            directories.update(above for above in (parent, *parent.parents) if above.is_relative_to(root))
        for directory in sorted(directories, reverse=True):
            self.sync(directory)

    def _anchor(self, directory: Path) -> None:
        """Syncs every directory above; once, because directories that reach here stay where they are."""
        for parent in directory.parents:
            if directory in self._anchored:
                return
            with suppress(PermissionError):
                # Whatever we may not open was there before us.
                self.sync(parent)
            self._anchored.add(directory)
            directory = parent

    @contextmanager
    def _written(self, path: Path, parts: Iterable[ReadableBuffer], durable: bool) -> Iterator[Path]:
        temporary = _beside(path)
        try:
            with room_for(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                with temporary.open("wb") as file:
                    _write_all(file, parts)
                    self.on_step("written")
                    if durable:
                        file.flush()
                        self.flush(file.fileno())
                        self.on_step("synced")
                yield temporary
        finally:
            with suppress(FileNotFoundError):
                temporary.unlink()


def _beside(path: Path) -> Path:
    return path.with_name(f"{TEMPORARY}{path.name}-{secrets.token_hex(4)}")


def _write_all(file: IO[bytes], parts: Iterable[ReadableBuffer]) -> None:
    """Writes parts above 4 MiB to the disk piece by piece, also where nothing asks for durability. An fsync of a small
    file, as of a sink or of a marker, waits for whatever was written before it: a hundred megabytes of state, say."""
    for part in parts:
        whole = memoryview(part).cast("B")
        for start in range(0, len(whole), PIECE):
            file.write(whole[start : start + PIECE])
            if len(whole) > PIECE:
                file.flush()
                os.fdatasync(file.fileno())


@contextmanager
def room_for(path: Path) -> Iterator[None]:
    """Turns "no space left" into an error that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise DiskFull(
            f"no space left to write {path}",
            why=f"the file system of {path.parent} is full",
            fix="free some space and continue with --resume; nothing that was published is lost",
        ) from error


def sweep(directory: Path) -> None:
    """Removes what a killed writer left unfinished; only where no other writer can be at work."""
    for path in walk(directory):
        if path.name.startswith(TEMPORARY):
            path.unlink(missing_ok=True)


def walk(directory: Path) -> Iterator[Path]:
    """All files below a directory; what others remove while we look is passed over."""
    for parent, _, names in os.walk(directory):
        yield from (Path(parent, name) for name in names)
