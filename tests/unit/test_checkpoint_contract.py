"""Every store of checkpoints keeps the same promises: files, and objects in memory. A real server: tests/services."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.builders import COUNTS
from tests.checkpoint_contract import CheckpointContract, Shelves, Step, damaged, ignore
from tests.object_shelves import ObjectShelves

from understudy.checkpoints.file_store import Store
from understudy.checkpoints.interface import Entry, Marker
from understudy.log.disk import Disk, walk


class FileShelves:
    def __init__(self, root: Path) -> None:
        self._root, self._slice = root, root / "counts" / "0"

    def open(self, on_step: Step = ignore) -> Store:
        return Store(self._root, COUNTS, Disk(on_step=on_step))

    def markers(self) -> list[Marker]:
        return self.open().markers()

    def read(self, entry: Entry) -> bytes:
        return (self._slice / entry.stored).read_bytes()

    def damage(self, entry: Entry, how: str) -> None:
        self._damage(self._slice / entry.stored, how)

    def damage_marker(self, epoch: int, how: str) -> None:
        (found,) = (self._slice / "markers").glob(f"{epoch:010d}-*.json")
        self._damage(found, how)

    def _damage(self, path: Path, how: str) -> None:
        left = damaged(path.read_bytes(), how)
        # Files may be links that other checkpoints share, so a damaged one is a new file.
        path.unlink()
        if left is not None:
            path.write_bytes(left)

    def files(self) -> set[str]:
        return {path.relative_to(self._slice).as_posix() for path in walk(self._slice / "files")}


class TestFileStore(CheckpointContract):
    @pytest.fixture
    def shelves(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelves:
        monkeypatch.setattr(os, "fsync", lambda _: None)
        return FileShelves(tmp_path / "checkpoints")


class TestObjectStore(CheckpointContract):
    @pytest.fixture
    def shelves(self) -> Iterator[Shelves]:
        store = pytest.importorskip("obstore.store")
        made = ObjectShelves(store.MemoryStore())
        yield made
        made.close()
