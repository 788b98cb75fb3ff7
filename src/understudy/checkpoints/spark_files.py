"""A Spark checkpoint: which files it consists of, and who needs which of them.

A directory of Spark holds more than a restore would read, and forgets what a follower may still need.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from understudy.checkpoints.interface import Checkpoint, Entry, Marker
from understudy.log.disk import TEMPORARY, walk

RECENT = 64
"""Versions whose changes every checkpoint carries, snapshot or not: a follower may take that many epochs to load its
state, or to come back from a pause, and still follows. Stored as hard links; only followers read them."""
SNAPSHOTS = (".zip", ".snapshot")
CHANGES = (".changelog", ".delta")
STATE = (*CHANGES, *SNAPSHOTS)
PLACE = "<<the checkpoint>>"
"""Stands in stored metadata for the directory of the checkpoint: Spark writes down full paths of state schemas."""


def files_of(checkpoint: Checkpoint, known: Iterable[str]) -> list[Path]:
    """What to ship of it, in the order of Spark; `known` names what was shipped, which Spark may have forgotten."""
    local, version = checkpoint.directory, checkpoint.batch + 1
    forgotten = (local / name for name in known if name.endswith(CHANGES))
    state = _needed({*walk(local / "state"), *forgotten}, version, since=version - RECENT)
    offsets, commits = (
        [local / kind / str(batch) for batch in sorted(_numbered(local / kind)) if batch <= checkpoint.batch]
        for kind in ("offsets", "commits")
    )
    return [local / "metadata", *state, *offsets, *commits]


def last_batch(marker: Marker) -> int:
    """The batch that was committed last in a shipped checkpoint, -1 if it has none."""
    return last_batch_in(entry.name for entry in marker.files)


def last_batch_in(names: Iterable[str]) -> int:
    return max((int(name.removeprefix("commits/")) for name in names if name.startswith("commits/")), default=-1)


def wanted(marker: Marker, since: int = 0) -> list[Entry]:
    """What it takes to load the state of a checkpoint, and to follow from a version (0: none) that is loaded."""
    state = {Path(entry.name) for entry in marker.files if entry.name.startswith("state/")}
    needed = set(_needed(state, last_batch(marker) + 1, since or None))
    return [entry for entry in marker.files if (path := Path(entry.name)) not in state or path in needed]


def _needed(state: Iterable[Path], version: int, since: int | None = None) -> list[Path]:
    """Leaves out what a restore would not read: versions before the newest snapshot, and after this one.

    A snapshot of this very version does not count: whoever runs the last batch again needs the state before it.
    Changes after `since` stay, although a snapshot covers them: a follower that holds `since` in memory applies them.
    """
    found = [path for path in sorted(state) if _finished(path)]
    versions = {path: int(path.stem) for path in found if path.suffix in STATE and path.stem.isdigit()}
    start: dict[Path, int] = {}
    for path, number in versions.items():
        if path.suffix in SNAPSHOTS and number < version:
            start[path.parent] = max(number, start.get(path.parent, 0))

    def kept(path: Path, number: int) -> bool:
        first = start.get(path.parent, 0)
        if since is not None and path.suffix not in SNAPSHOTS:
            first = min(first, since + 1)
        return first <= number <= version

    return [path for path in found if path not in versions or kept(path, versions[path])]


def encode(marker: Marker) -> bytes:
    fields = asdict(marker)
    return json.dumps(fields | {"crc": _checksum(fields)}).encode()


def decode(content: bytes) -> Marker | None:
    try:
        fields = json.loads(content)
        crc = fields.pop("crc")
        files, marks = tuple(Entry(**entry) for entry in fields["files"]), fields.get("watermarks")
        marker = Marker(fields["epoch"], fields["generation"], files, None if marks is None else tuple(marks))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return marker if _checksum(fields) == crc else None


def _checksum(fields: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(fields, sort_keys=True).encode())


def committed(directory: Path) -> Checkpoint | None:
    """The checkpoint as of the last batch Spark committed. Batch numbers are not epochs: the offset is."""
    batch = max(_numbered(directory / "commits"), default=None)
    if batch is None:
        return None
    epoch = int((directory / "offsets" / str(batch)).read_text().splitlines()[-1])
    return Checkpoint(directory, batch, epoch)


def forget_last_commit(directory: Path) -> int | None:
    """Makes Spark run the last batch of a restored checkpoint again, which loads its state; answers its epoch."""
    last = committed(directory)
    if last is None:
        return None
    (directory / "commits" / str(last.batch)).unlink()
    return last.epoch


def swap(name: str, content: bytes, old: str, new: str) -> bytes:
    """Metadata with another directory in it; every other file as it is."""
    return content.replace(old.encode(), new.encode()) if has_places(name) else content


def has_places(name: str) -> bool:
    """Whether Spark writes directories into a file of this name. Such files are small."""
    return "/_metadata/" in name


def essential(checkpoint: Checkpoint) -> set[str]:
    """Without these it is no checkpoint."""
    return {"metadata", f"offsets/{checkpoint.batch}", f"commits/{checkpoint.batch}"}


def _numbered(directory: Path) -> list[int]:
    if not directory.is_dir():
        return []
    return [int(path.name) for path in directory.iterdir() if path.name.isdigit()]


def _finished(path: Path) -> bool:
    return not path.name.startswith((".", TEMPORARY)) and not path.name.endswith(".tmp")
