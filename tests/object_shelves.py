"""Checkpoints in an object store, for tests: in memory or on a server, damaged from outside, stopped after any step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

from tests.builders import COUNTS
from tests.checkpoint_contract import Step, damaged, ignore
from understudy.checkpoints import object_head, spark_files
from understudy.checkpoints.interface import Entry, Marker
from understudy.checkpoints.object_head import Head
from understudy.checkpoints.object_open import ObjectCheckpoints
from understudy.checkpoints.object_store import ObjectStore, Patience
from understudy.clients.objects import Folder, Version
from understudy.errors import Away
from understudy.log.disk import Disk

AT_ONCE = Patience(patience_s=0.0, look_s=0.0, linger_s=0.0)


@dataclass
class Wire:
    """What happens between a client and its store: how often it listed, whether the store is away, and whether answers
    to conditional writes get lost."""

    away: bool = False
    requests: int = 0
    listings: int = 0
    lose_answers: int = 0
    pieces: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class SteppedFolder(Folder):
    """Says when it has changed something, and behaves as its wire is told to."""

    on_step: Step = field(default=ignore, repr=False)
    wire: Wire = field(default_factory=Wire, repr=False)

    def below(self, name: str) -> SteppedFolder:
        inner = super().below(name)
        return SteppedFolder(inner.store, inner.prefix, inner.shown, inner.secrets, self.on_step, self.wire)

    @contextmanager
    def _explained(self, besides: tuple[type[Exception], ...] = ()) -> Iterator[None]:
        self.wire.requests += 1
        if self.wire.away:
            raise Away("the store is away", why="a test says so", fix="none")
        with super()._explained(besides):
            yield

    def names(self, below: str) -> Iterator[str]:
        self.wire.listings += 1
        return super().names(below)

    def pieces(self, name: str, size: int) -> Iterator[bytes]:
        self.wire.pieces.append(name)
        return super().pieces(name, size)

    def put(self, name: str, content: bytes | IO[bytes], size: int) -> None:
        super().put(name, content, size)
        self.on_step("put")

    def _put_if(self, name: str, content: bytes, mode: Any) -> Version:
        version = super()._put_if(name, content, mode)
        self.on_step("put if")
        if self.wire.lose_answers:
            # The request is repeated, and finds what it has done itself.
            self.wire.lose_answers -= 1
            return super()._put_if(name, content, mode)
        return version

    def delete(self, names: Sequence[str]) -> None:
        for name in names:
            super().delete([name])
            self.on_step("deleted")


class ObjectShelves:
    def __init__(self, store: Any, patience: Patience = AT_ONCE, workers: int = 4) -> None:
        self.root = SteppedFolder(store, "folder/run-1", "memory://folder/run-1")
        self._patience, self._workers = patience, workers
        self._slice = self.root.below("counts/0")
        self._opened: list[ObjectCheckpoints] = []

    def open(self, on_step: Step = ignore, wire: Wire | None = None) -> ObjectStore:
        stepped = SteppedFolder(self.root.store, self.root.prefix, self.root.shown, (), on_step, wire or Wire())
        self._opened.append(ObjectCheckpoints(stepped, Disk(on_step=on_step), self._patience, self._workers))
        return self._opened[-1].of(COUNTS)

    def head(self) -> Head:
        found = self._slice.get("head.json")
        head = object_head.decode(found[0]) if found else Head()
        assert head is not None
        return head

    def markers(self) -> list[Marker]:
        contents = [self._slice.get(ref.name) for ref in self.head().markers]
        found = [spark_files.decode(content[0]) for content in contents if content is not None]
        return [marker for marker in found if marker is not None]

    def read(self, entry: Entry) -> bytes:
        return self._content(entry.stored)

    def damage(self, entry: Entry, how: str) -> None:
        self._damage(entry.stored, how)

    def damage_marker(self, epoch: int, how: str) -> None:
        self._damage(next(ref.name for ref in self.head().markers if ref.epoch == epoch), how)

    def _damage(self, name: str, how: str) -> None:
        left = damaged(self._content(name), how)
        if left is None:
            self._slice.delete([name])
        else:
            self._slice.put(name, left, len(left))

    def _content(self, name: str) -> bytes:
        found = self._slice.get(name)
        assert found is not None, name
        return found[0]

    def files(self) -> set[str]:
        return set(self._slice.names("files"))

    def names(self) -> set[str]:
        return set(self._slice.names(""))

    def close(self) -> None:
        for one in self._opened:
            one.close()
