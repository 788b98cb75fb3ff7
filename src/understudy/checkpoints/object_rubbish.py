"""Removes objects that no checkpoint has any more, a while after they became rubbish.

Whoever has just begun to restore a checkpoint that is recycled meanwhile gets that long to fetch it. What is not
removed because the process ended first, the next replica of the slice finds by a sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from understudy.checkpoints.object_files import FILES, sweep_of
from understudy.checkpoints.object_heads import MARKERS

if TYPE_CHECKING:
    from understudy.clients.objects import Folder


@dataclass(frozen=True)
class Sweep:
    """Everything written before a sweep, but what the head of the sweep names."""

    number: int
    named: frozenset[str]

    def finds(self, folder: Folder) -> list[str]:
        """Lists the store."""
        written = (name for below in (FILES, MARKERS) for name in folder.names(below))
        return [name for name in written if sweep_of(name) < self.number and name not in self.named]


@dataclass
class Rubbish:
    """Belongs to the shipper's thread."""

    folder: Folder
    linger_s: float
    clock: Callable[[], float]
    _waiting: list[tuple[float, frozenset[str] | Sweep]] = field(default_factory=list)

    def add(self, names: Iterable[str]) -> None:
        found = frozenset(names)
        if found:
            self._waiting.append((self.clock(), found))

    def add_sweep(self, sweep: Sweep) -> None:
        self._waiting.append((self.clock(), sweep))

    def take_out(self) -> None:
        """Removes what has waited for long enough. If the store is away it waits on."""
        while self._waiting and self.clock() - self._waiting[0][0] >= self.linger_s:
            _, found = self._waiting[0]
            self.folder.delete(found.finds(self.folder) if isinstance(found, Sweep) else sorted(found))
            self._waiting.pop(0)
