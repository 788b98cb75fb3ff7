"""The file of a backup: a tar archive whose last member, the manifest, lists every file with its checksum.

An archive without a manifest was not finished. A file that has several names in the home is stored once.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Self

from pydantic import ValidationError

from understudy.errors import InvalidInput
from understudy.log.disk import walk
from understudy.model.run import Frozen

MANIFEST = "understudy-backup.json"
FORMAT = 1
PLAIN, PACKED = (".tar",), (".tar.gz", ".tgz")
_BROKEN = (tarfile.TarError, zlib.error, EOFError, KeyError, ValidationError)


class Entry(Frozen):
    """A file of a home."""

    bytes: int
    sha256: str


class Manifest(Frozen):
    """What a backup holds. `outside`: addresses of what the run needs and the backup does not hold."""

    format: int = FORMAT
    run: str
    app: str
    made: str
    versions: dict[str, str]
    outside: tuple[str, ...] = ()
    files: dict[str, Entry]

    @property
    def bytes(self) -> int:
        return sum(entry.bytes for entry in self.files.values())


class Writer:
    """Adds files to an archive and remembers what it added. Used as a context manager."""

    def __init__(self, path: Path) -> None:
        # The fastest compression: bags and checkpoints are compressed already.
        packed = path.name.endswith(PACKED)
        self._tar = tarfile.open(path, "w:gz", compresslevel=1) if packed else tarfile.open(path, "w")  # noqa: SIM115
        self._names: dict[tuple[int, int], str] = {}
        self.files: dict[str, Entry] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tar.close()

    def add(self, path: Path, name: str) -> None:
        """Adds a file under a name; a second name of a file that was added becomes a link to the first."""
        status = path.stat()
        first = self._names.setdefault((status.st_dev, status.st_ino), name)
        info = self._tar.gettarinfo(path, name)
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        if first != name:
            info.type, info.linkname, info.size = tarfile.LNKTYPE, first, 0
            self._tar.addfile(info)
            self.files[name] = self.files[first]
            return
        info.type, info.linkname, info.size = tarfile.REGTYPE, "", status.st_size
        with path.open("rb") as file:
            hashing = _Hashing(file)
            self._tar.addfile(info, hashing)
        self.files[name] = Entry(bytes=status.st_size, sha256=hashing.digest)

    def finish(self, manifest: Manifest) -> None:
        text = manifest.model_dump_json(indent=1).encode()
        info = tarfile.TarInfo(MANIFEST)
        info.size = len(text)
        self._tar.addfile(info, BytesIO(text))


class _Hashing(BytesIO):
    """A file that is hashed as it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file, self._hash = file, hashlib.sha256()

    def read(self, size: int | None = -1, /) -> bytes:
        piece = self._file.read(-1 if size is None else size)
        self._hash.update(piece)
        return piece

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


def unpack(file: Path, directory: Path) -> Manifest:
    """Writes the files of a backup below a directory and compares each, read again, with its checksum.

    Raises
    ------
    InvalidInput
        If the archive was not finished, is damaged, or holds anything but the files its manifest lists.
    """
    with _readable(file), tarfile.open(file) as tar:
        for member in tar:
            if not (member.isreg() or member.islnk()):
                raise tarfile.TarError(f"{member.name} is neither a file nor a link to one")
            # Refuses a name or a link that leads out of the directory.
            tar.extract(member, directory, filter="data")
        if not (directory / MANIFEST).exists():
            raise EOFError("it has no manifest, so it was not finished")
        manifest = Manifest.model_validate_json((directory / MANIFEST).read_bytes())
        (directory / MANIFEST).unlink()
        _compare(manifest, {path.relative_to(directory).as_posix(): _read(path) for path in walk(directory)})
    return manifest


def verify(file: Path) -> Manifest:
    """Reads a whole backup and compares every file in it with its checksum; writes nothing.

    Raises
    ------
    InvalidInput
        As `unpack` does.
    """
    found: dict[str, Entry] = {}
    text = b""
    with _readable(file), tarfile.open(file) as tar:
        for member in tar:
            content = None if member.islnk() else tar.extractfile(member)
            if member.name == MANIFEST and content is not None:
                text = content.read()
            else:
                found[member.name] = found[member.linkname] if content is None else _entry(content, member.size)
        if not text:
            raise EOFError("it has no manifest, so it was not finished")
        manifest = Manifest.model_validate_json(text)
        _compare(manifest, found)
    return manifest


def _read(path: Path) -> Entry:
    with path.open("rb") as file:
        return _entry(file, os.fstat(file.fileno()).st_size)


def _entry(file: IO[bytes], size: int) -> Entry:
    return Entry(bytes=size, sha256=hashlib.file_digest(file, "sha256").hexdigest())  # type: ignore[arg-type]


def _compare(manifest: Manifest, found: dict[str, Entry]) -> None:
    if manifest.format != FORMAT:
        raise tarfile.TarError(f"its format is {manifest.format}, and this version reads {FORMAT}")
    names = sorted(manifest.files.keys() | found.keys())
    wrong = [name for name in names if manifest.files.get(name) != found.get(name)]
    if wrong:
        raise tarfile.TarError(f"{wrong[0]} is not what its manifest lists ({len(wrong)} of {len(names)} files)")


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    try:
        yield
    except _BROKEN as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidInput(f"{file} is no whole backup", why=why, fix="use another backup of this home") from error
