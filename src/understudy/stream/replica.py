"""A slice hosted by this node: started, watched, stopped. Sources, operators and sinks differ only in `work`."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from understudy.errors import InvalidInput, Unavailable, UnderstudyError
from understudy.log.bag import Bag, DamagedBag
from understudy.log.disk import DiskFull
from understudy.model.messages import Deploy, Failure, ReplicaStatus, State, Steps
from understudy.model.names import SliceId
from understudy.stream.site import Site

logger = logging.getLogger(__name__)


class Stopped(Exception):
    """The replica was told to stop while it waited."""


class InputGone(UnderstudyError):
    """A reader needs what it has acknowledged. Another replica of it may have shipped meanwhile: then a retry helps."""

    def __init__(self, reader: SliceId, upstream: SliceId, epoch: int) -> None:
        super().__init__(
            f"{reader} needs epoch {epoch} of {upstream}, which is gone",
            why=f"it was trimmed, and no readable checkpoint of {reader} is that new",
            fix="restore the home directory from a backup, or run again in a new --home",
        )


class Replica(ABC):
    def __init__(self, site: Site, deploy: Deploy) -> None:
        self.site = site
        self.deploy = deploy
        self.slice = deploy.slice
        self.vertex = site.layout[self.slice.operator]
        self._status = ReplicaStatus(slice=deploy.slice, generation=deploy.generation, **_asked(deploy))
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._changed = threading.Event()
        self._begin_comeback()
        self._thread = threading.Thread(target=self._guarded, name=str(self), daemon=True)

    def __str__(self) -> str:
        return f"{self.slice}#{self.deploy.generation}"

    @abstractmethod
    def work(self) -> None:
        """Runs until the replica is stopped or fails; raises what went wrong."""

    def release(self) -> None:  # noqa: B027 - not every replica holds something
        """Gives back what the replica holds, after `work` has ended for whatever reason."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Asks the replica to end; it gives back what it holds on its own thread, however long that takes."""
        self._stop.set()
        self.changed()

    def adjust(self, deploy: Deploy) -> None:
        """Asks the replica to be something else; it gets there step by step, on its own thread."""
        if deploy.ships and not self.deploy.ships:
            # Its bags count from here on, because it takes over or because it was woken.
            self._begin_comeback()
            if self._status.capabilities.sends and self._status.epoch >= self._known - 1:
                # Both published, each as soon as it could; one of two may be a batch behind.
                self._note_steps(done=True, done_at=time.time(), seamless=True)
        self.deploy = deploy
        self.update(**_asked(deploy))
        self.changed()

    def changed(self) -> None:
        self._changed.set()

    def await_change(self, seconds: float) -> None:
        """Waits for something new, but not forever."""
        self._changed.wait(seconds)
        self._changed.clear()
        self.check_stop()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def status(self) -> ReplicaStatus:
        return self._status.model_copy(update={"up_s": round(time.monotonic() - self._began, 3)})

    def _guarded(self) -> None:
        try:
            self.work()
        except Stopped:
            pass
        except BaseException as error:
            # The boundary of the thread: whatever it was is reported.
            logger.exception("%s failed", self)
            failure = self._status.failure or describe(error, self.slice)
            self.update(state=State.FAILED, failure=failure)
        finally:
            self.release()

    def update(self, **changes: object) -> None:
        with self._lock:
            self._status = self._status.model_copy(update=changes)

    def check_stop(self) -> None:
        if self._stop.is_set():
            raise Stopped

    def pause(self, seconds: float) -> None:
        if self._stop.wait(max(0.0, seconds)):
            raise Stopped

    def set_aside(self) -> None:
        """Takes the damaged bags away for which this slice was told to rewind; they are made again from here on."""
        if self.deploy.rewind is not None:
            for epoch in self.site.log.damaged(self.slice, self.deploy.rewind):
                # Later ones stay: nobody would go on making them if this replica were lost in between.
                if epoch <= self.deploy.rewind_to:
                    self.site.log.set_aside(self.slice, epoch)

    def report_damage(self, error: DamagedBag, upstream: SliceId, epoch: int) -> None:
        """Reports the bag that could not be read, and every other damaged one this slice may still need."""
        log, slices = self.site.log, {channel.upstream for channel in self.site.layout.channels(self.slice)}
        found = {(one, e) for one in slices for e in log.damaged(one, log.acknowledged(self.slice, one) + 1)}
        failure = damage(error, sorted(found | {(upstream, epoch)}, key=lambda place: (place[1], place[0])))
        self.update(state=State.FAILED, failure=failure)

    def await_goal(self, epoch: int) -> None:
        """Waits while there is nothing left to do; a later goal, or a stop, ends it."""
        while self.site.goal.reached(epoch):
            self.pause(0.05)

    def await_room(self, epoch: int) -> None:
        while not self.site.room(self.slice, epoch):
            self.pause(0.01)

    def _begin_comeback(self) -> None:
        """From here on it is measured how long the slice takes to make something new."""
        self._known = self.site.log.newest(self.slice)
        self._wired_at: float | None = None
        self._replayed_at: float | None = None
        self._began = self._marked = time.monotonic()
        self.update(steps=Steps())

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Notes how long a step of coming up took."""
        began = time.monotonic()
        yield
        self._marked = time.monotonic()
        self._note_steps(**{name: getattr(self._status.steps, name) + self._marked - began})

    def idled(self, since: float) -> None:
        """Waited for input that nobody had made yet: that is no part of coming back."""
        seconds = time.monotonic() - max(since, self._began)
        if self._status.steps.done or seconds <= 0:
            return
        self._marked += seconds
        if self._wired_at is not None:
            self._wired_at += seconds
        if self._replayed_at is not None:
            self._replayed_at += seconds
        self._note_steps(idle=self._status.steps.idle + seconds)

    def wired(self) -> None:
        """Input has arrived; what follows is replay."""
        if self._wired_at is None:
            self._wired_at = time.monotonic()
            self._note_steps(wire_receive=self._wired_at - self._marked)
            self.update(state=State.RUNNING)

    def _note_steps(self, **changes: object) -> None:
        self.update(steps=self._status.steps.model_copy(update=changes))

    def publish(self, bag: Bag, *, durable: bool) -> bool:
        """Publishes and keeps the books: how far we are, what it cost, whether another replica said otherwise.

        Answers whether nobody had published the epoch before.
        """
        published = self.site.log.publish(bag, durable=durable)
        header = published.stored.header
        # A state of chance is another one after a replay, even if this bag does not show it.
        another = not published.first and self.vertex.stateful and not self.vertex.deterministic
        if (another or header.digest != bag.header.digest) and not header.lost:
            self.note_divergence(header.epoch)
        if published.first:
            published_bytes = self._status.bytes_published + bag.size
            self.update(bytes_published=published_bytes, first_bags=self._status.first_bags + 1)
        self.finished(header.epoch, bag.header.rows)
        self.progressed(header.epoch)
        return published.first

    def finished(self, epoch: int, rows: int) -> None:
        self.update(epoch=max(self._status.epoch, epoch), rows_out=self._status.rows_out + rows)

    def note_divergence(self, epoch: int) -> None:
        logger.error("%s: the replay of epoch %d differs from what was published before", self, epoch)
        self.update(diverged=epoch, divergences=self._status.divergences + 1)

    def progressed(self, epoch: int) -> None:
        """The recovery is over with the first epoch that nobody had finished before."""
        if self._status.steps.done:
            return
        now = time.monotonic()
        wired = now if self._wired_at is None else self._wired_at
        if epoch <= self._known:
            self._replayed_at = now
            self._note_steps(replayed=self._status.steps.replayed + 1, replay=now - wired)
        else:
            since = wired if self._replayed_at is None else self._replayed_at
            self._note_steps(first_bag=now - since, done=True, done_at=time.time())


def _asked(deploy: Deploy) -> dict[str, Any]:
    return {"asked": deploy.capabilities, "primary": deploy.primary, "ship_every": deploy.ship_every}


def damage(error: DamagedBag, found: Sequence[tuple[SliceId, int]]) -> Failure:
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
