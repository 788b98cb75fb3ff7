"""Backs up a home that is not running, and makes a home of a backup.

Both work in a temporary directory beside their target, and the target appears under its name when every checksum was
compared: whoever finds it finds it whole. `backup_file.py` has the format.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from understudy.errors import InvalidInput, Unavailable
from understudy.log.disk import TEMPORARY, Disk, walk
from understudy.log.place import URL
from understudy.model import address
from understudy.model.run import RunSpec
from understudy.runtime.backup_file import PACKED, PLAIN, Manifest, Writer, unpack, verify
from understudy.runtime.home import Home
from understudy.runtime.prepare import versions

_DATABASE = "manager.db"
_LEFT_OUT = frozenset({"nodes", "branches", "lock", "token", "address", ".address"})
"""First parts of paths that are made anew when a run is resumed. So a backup holds no token."""


def belongs(path: Path) -> bool:
    """Whether a file of a home, by its path below it, is copied as it is. The database is copied through SQLite."""
    first = path.parts[0]
    return not (first in _LEFT_OUT or first.startswith(_DATABASE) or path.name.startswith(TEMPORARY))


def back_up(home: Home, file: Path, disk: Disk | None = None) -> Manifest:
    """Writes a backup of a home and reads it again before it gets its name.

    Parameters
    ----------
    home : Home
        A home in which no run and no node works. It is locked meanwhile.
    file : Path
        The archive to make, ``….tar``, ``….tar.gz`` or ``….tgz``; it must not exist. Only its owner may read it.
    disk : Disk, optional
        Tests pass one that stops after a step.

    Returns
    -------
    Manifest
        What the archive holds.

    Raises
    ------
    InvalidInput
        If the home holds no run, is in use, is damaged or has symbolic links, or if `file` cannot be a backup.
    Unavailable
        If the archive cannot be written.
    """
    disk, file = disk or Disk(), file.absolute()
    _check_target(home, file)
    if not home.exists():
        raise InvalidInput(f"{home.path} holds no run", why="it has no record of one", fix="name the home of a run")
    with home.at_rest(), _written(file), _workshop(file.parent) as place:
        database, archive = place / _DATABASE, place / file.name
        _copy_database(home.database, database)
        disk.on_step("database copied")
        manifest = _write(home, database, archive)
        disk.sync(archive)
        disk.on_step("written")
        if verify(archive) != manifest:
            raise OSError("what was read again is not what was written")
        disk.on_step("verified")
        archive.chmod(0o600)
        archive.replace(file)
        disk.sync_directory(file.parent)
    return manifest


def restore(file: Path, home: Home, disk: Disk | None = None) -> Manifest:
    """Makes a home of a backup, in which ``understudy run --resume`` goes on.

    Parameters
    ----------
    file : Path
        What `back_up` wrote.
    home : Home
        A directory that is not there, or is empty.
    disk : Disk, optional
        Tests pass one that stops after a step.

    Returns
    -------
    Manifest
        What was restored.

    Raises
    ------
    InvalidInput
        If the backup is not whole, or the home holds something.
    Unavailable
        If the home cannot be written.
    """
    disk, place = disk or Disk(), home.path.absolute()
    _check_readable(file)
    if place.exists() and not (place.is_dir() and not any(place.iterdir())):
        raise InvalidInput(
            f"{place} is not empty", why="a restore never overwrites", fix="give a directory that is new"
        )
    with _written(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        with _workshop(place.parent) as workshop:
            made = workshop / place.name
            made.mkdir()
            manifest = unpack(file, made)
            disk.on_step("unpacked")
            _check_database(made / _DATABASE)
            files = [made / name for name in manifest.files]
            for path in files:
                disk.sync(path)
            disk.sync_tree(made, files)
            disk.on_step("verified")
            made.rename(place)
            disk.sync_directory(place.parent)
    return manifest


def _check_target(home: Home, file: Path) -> None:
    if not file.name.endswith(PLAIN + PACKED):
        raise InvalidInput(
            f"{file} cannot be a backup", why="the end of its name says how it is written", fix="name it ….tar.gz"
        )
    if file.exists():
        raise InvalidInput(f"{file} is there already", why="a backup is never overwritten", fix="give another name")
    if file.is_relative_to(home.path.absolute()):
        raise InvalidInput(
            f"{file} lies in the home itself",
            why="what destroys the home would destroy its backup",
            fix="give a file elsewhere, best on another disk",
        )


def _check_readable(file: Path) -> None:
    try:
        file.open("rb").close()
    except OSError as error:
        why = error.strerror or str(error)
        raise InvalidInput(f"{file} cannot be read", why=why, fix="name a file that 'backup' wrote") from error


@contextmanager
def _written(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be written", why=str(error), fix="give a place with room that you may write to"
        ) from error


@contextmanager
def _workshop(parent: Path) -> Iterator[Path]:
    """A directory on the file system of the target that only its owner may read."""
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=parent) as directory:
        yield Path(directory)


def _write(home: Home, database: Path, archive: Path) -> Manifest:
    with Writer(archive) as writer:
        writer.add(database, _DATABASE)
        for path in _files(home.path):
            writer.add(path, path.relative_to(home.path).as_posix())
        manifest = _described(home.stored(), writer)
        writer.finish(manifest)
    return manifest


def _files(root: Path) -> list[Path]:
    """What belongs to a backup, in an order that does not depend on the file system."""
    found = sorted(path for path in walk(root) if belongs(path.relative_to(root)))
    # A walk does not follow links to directories, so it would leave them out without a word.
    link = next((path for path in root.rglob("*") if path.is_symlink() and belongs(path.relative_to(root))), None)
    if link is not None:
        raise InvalidInput(
            f"{link} is a symbolic link",
            why="what it points to lies outside the home and would not be in the backup",
            fix="put the files there themselves, or back up with a snapshot of the file system",
        )
    return found


def _described(spec: RunSpec, writer: Writer) -> Manifest:
    log = address.parse(spec.config.log.url, URL)
    return Manifest(
        run=spec.id,
        app=spec.app,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
        outside=(str(log),) if log.scheme != "file" or log.path else (),
        files=writer.files,
    )


def _copy_database(source: Path, target: Path) -> None:
    """Into one file, with what SQLite still has in its write-ahead log."""
    with _whole(source), closing(sqlite3.connect(source)) as ours, closing(sqlite3.connect(target)) as copy:
        ours.backup(copy)
    _check_database(target)


def _check_database(path: Path) -> None:
    with _whole(path), closing(sqlite3.connect(path)) as database:
        (found,) = database.execute("PRAGMA integrity_check").fetchone()
        if found != "ok":
            raise sqlite3.DatabaseError(found)


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise InvalidInput(f"{path} is damaged", why=str(error), fix="use an earlier backup") from error
