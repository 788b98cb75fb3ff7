"""Why a replica ends, in words that say what to do."""

from __future__ import annotations

import traceback
from collections.abc import Sequence

from understudy.errors import InvalidInput, Unavailable, UnderstudyError
from understudy.log.bag import DamagedBag
from understudy.log.disk import DiskFull
from understudy.model.messages import Failure
from understudy.model.names import SliceId


class Stopped(Exception):
    """The replica was told to stop, or a newer one has taken over."""


class InputGone(UnderstudyError):
    """A reader needs what it has acknowledged. Another replica of it may have shipped meanwhile: then a retry helps."""

    def __init__(self, reader: SliceId, upstream: SliceId, epoch: int) -> None:
        super().__init__(
            f"{reader} needs epoch {epoch} of {upstream}, which is gone",
            why=f"it was trimmed, and no readable checkpoint of {reader} is that new",
            fix="restore the home directory from a backup, or run again in a new --home",
        )


class QueryEnded(UnderstudyError):
    """Spark's stream thread may die without leaving an exception; a retry starts another."""

    def __init__(self, slice_id: SliceId) -> None:
        super().__init__(
            f"the query of {slice_id} ended by itself",
            why="Spark gives no reason",
            fix="see the node's log in the home directory",
        )


class ShippingFails(UnderstudyError):
    """Another replica may be able to ship, on another node or from a directory of its own."""


class ShippingNeverWorked(Unavailable):
    """This replica has shipped nothing since it was started, so the next one would not either."""


def damage(error: DamagedBag, found: Sequence[tuple[SliceId, int]]) -> Failure:
    """Every damaged bag that a slice may still need, in one failure."""
    names = ", ".join(f"epoch {epoch} of {name}" for name, epoch in found)
    what = f"{len(found)} bags are damaged: {names}" if len(found) > 1 else error.what
    return Failure(what=what, why=error.why, fix=error.fix, damaged=tuple(found))


def full(slice_id: SliceId) -> DiskFull:
    return DiskFull(
        f"no space left for the checkpoint of {slice_id}",
        why="the file system of the node's local directory is full",
        fix="free some space and continue with --resume; nothing that was published is lost",
    )


def describe(error: BaseException, slice_id: SliceId) -> Failure:
    if isinstance(error, UnderstudyError):
        final = isinstance(error, InvalidInput | Unavailable)
        return Failure(what=f"{slice_id}: {error.what}", why=error.why, fix=error.fix, final=final)
    if "No space left on device" in str(error):
        return describe(full(slice_id), slice_id)
    last = traceback.format_exception_only(error)[-1].strip()
    return Failure(
        what=f"{slice_id} failed: {last.splitlines()[0][:300]}",
        why="".join(traceback.format_exception(error))[-3000:],
        fix="see the node's log in the home directory",
    )
