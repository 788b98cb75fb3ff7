"""How a successor gets a checkpoint back, whatever store it is in: the newest that can be read."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from understudy.checkpoints.interface import Checkpoint, Entry, Marker, OnDamaged, Shipped
from understudy.checkpoints.spark_files import essential, last_batch_in, wanted
from understudy.control.replica import retention
from understudy.errors import Unavailable
from understudy.model.names import SliceId


class Shelf(Protocol):
    """What a restore asks of a store. A marker has a name that begins with its epoch, `0000000012-…`, so that the epoch
    is known even where the content is damaged."""

    @property
    def where(self) -> str:
        """Where the files of the slice lie, for errors."""
        ...

    def there(self) -> Sequence[tuple[str, Marker | None]]:
        """Every marker that was not set aside, None for one that cannot be read."""
        ...

    def aside(self) -> Sequence[str]:
        """The names of markers that were set aside."""
        ...

    def bring(self, marker: Marker, shipped: Shipped) -> str | None:
        """Brings the files of a checkpoint; what is wrong with them, if anything is: then nothing of it stays here."""
        ...

    def set_aside(self, name: str) -> bool:
        """Lets a checkpoint no longer count; False if its marker is gone."""
        ...


@dataclass(frozen=True)
class Restore:
    """One restore, of an epoch below `before`. `CheckpointStore.restore` says what it does."""

    shelf: Shelf
    slice: SliceId
    before: int | None
    on_damaged: OnDamaged

    def run(self) -> tuple[Marker | None, Shipped]:
        damage: dict[str, str] = {}
        shipped = Shipped()
        while (found := self._untried(damage)) is not None:
            shipped = Shipped()
            reason = self.shelf.bring(found[1], shipped)
            if reason is None:
                break
            damage[found[0]] = reason
        damage |= dict.fromkeys(self._unreadable(), "its marker is damaged")
        if found is None:
            self._refuse_new_beginning(damage)
            shipped = Shipped()
        for name, reason in damage.items():
            set_aside(self.shelf.set_aside, name, reason, self.on_damaged)
        return found[1] if found else None, shipped

    def _untried(self, tried: Container[str]) -> tuple[str, Marker] | None:
        """The newest one; of two replicas at one epoch, which have one state, the newer generation's."""
        readable = [(name, marker) for name, marker in self.shelf.there() if marker is not None]
        usable = [one for one in readable if self._is_before(one[0]) and one[0] not in tried]
        return max(usable, key=lambda one: (one[1].epoch, one[1].generation), default=None)

    def _unreadable(self) -> list[str]:
        return [name for name, marker in self.shelf.there() if marker is None and self._is_before(name)]

    def _is_before(self, name: str) -> bool:
        return self.before is None or epoch_of(name) < self.before

    def _refuse_new_beginning(self, damage: Mapping[str, str]) -> None:
        """Raises unless the slice can start at epoch 0. With fewer than two markers it has acknowledged nothing."""
        there, aside = self.shelf.there(), self.shelf.aside()
        if len(there) + len(aside) < retention.NEWEST or (there and not damage):
            return
        found = [f"epoch {epoch_of(name)}: {reason} ({name})" for name, reason in damage.items()]
        raise Unavailable(
            f"no shipped checkpoint of {self.slice} can be read",
            why="; ".join([*found, *(f"epoch {epoch_of(name)}: was damaged before ({name})" for name in aside)]),
            fix=f"put the files back under {self.shelf.where}, or run again in a new --home",
        )


def epoch_of(name: str) -> int:
    """The epoch of a checkpoint by the name of its marker."""
    return int(name.partition("-")[0])


def set_aside(move: Callable[[str], bool], name: str, reason: str, on_damaged: OnDamaged) -> None:
    if move(name):
        on_damaged(epoch_of(name), reason)


def new_in(
    marker: Marker, local: Path, shipped: Shipped, holds: Callable[[Path, Shipped, Entry], bool]
) -> tuple[list[Entry], list[Entry]]:
    """What a directory on which a query waits lacks of a checkpoint: state, and the logs of offsets and commits."""
    entries = wanted(marker, since=last_batch_in(shipped.seen) + 1)
    new = [entry for entry in entries if entry.name != "metadata" and not holds(local, shipped, entry)]
    logs = [entry for entry in new if entry.name.startswith(("offsets/", "commits/"))]
    return [entry for entry in new if entry not in logs], logs


def require_essential(slice_id: SliceId, checkpoint: Checkpoint, found: Container[str]) -> None:
    """Raises if files without which it is no checkpoint vanished while it was shipped: then the batch was forgotten or
    the directory wiped."""
    missing = sorted(name for name in essential(checkpoint) if name not in found)
    if missing:
        raise Unavailable(
            f"the checkpoint of {slice_id} vanished while it was shipped",
            why=f"{', '.join(missing)} is not in {checkpoint.directory} any more",
            fix="nothing, if this replica was replaced; otherwise look who removes files there",
        )
