"""A slice hosted by this node: it decides, does one thing, and decides again, until it is stopped or fails.

What to do is decided in `control/replica/`. `turn` is one decision and its execution; on a node a thread calls it again
and again, in the simulated cluster a scheduler does.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod

from understudy.control.replica.bags import differs
from understudy.log.bag import Bag, DamagedBag
from understudy.log.interface import Fenced
from understudy.model.branch import STABLE
from understudy.model.messages import Deploy, ReplicaStatus, State
from understudy.model.names import SliceId
from understudy.stream.context import NodeContext
from understudy.stream.edge import InputDamaged
from understudy.stream.failures import Stopped, damage, describe
from understudy.stream.live_status import LiveStatus

logger = logging.getLogger(__name__)


class Replica(ABC):
    """Sources, operators and sinks differ in `step` and `release`. What all replicas do is here, grouped by the thread
    that may call it.

    The replica's own thread calls `turn`. The agent's thread calls `adjust` and `stop`, and is the only one to set
    `deploy`; others read it once per decision. `live` may be changed by any thread.
    """

    def __init__(self, context: NodeContext, deploy: Deploy) -> None:
        self.context = context
        self.deploy = deploy
        self.slice = deploy.slice
        self.vertex = context.layout[self.slice.operator]
        self.live = LiveStatus(deploy, context.log.newest(self.slice), context.clock, context.wall)
        self._stop = threading.Event()
        self._changed = context.edge.signal()
        self._gave_up: BaseException | None = None
        self.ended = threading.Event()

    def __str__(self) -> str:
        return f"{self.slice}#{self.deploy.generation}"

    @abstractmethod
    def step(self) -> float:
        """Decides and does one thing; returns for how many seconds there is nothing to do. Raises what is wrong."""

    def release(self) -> None:  # noqa: B027 - not every replica holds something
        """Gives back what the replica holds, after its last step, for whatever reason that was."""

    # -- the replica's own thread

    def start(self) -> None:
        """Lets the replica work, beside the caller, until it is stopped or fails."""
        self.context.edge.spawn(str(self), self.turn, self._changed)

    def turn(self) -> float | None:
        """One step; None when it was the last."""
        try:
            if self._stop.is_set():
                raise Stopped
            return self.step()
        except Stopped:
            self._end(self._gave_up)
        except InputDamaged as found:
            self.report_damage(found.error, found.upstream, found.epoch)
            self._end(found.error)
        except BaseException as error:  # noqa: BLE001 - the boundary of the thread: whatever it was is reported
            self._end(error)
        return None

    def _end(self, error: BaseException | None) -> None:
        if error is not None and not isinstance(error, Stopped):
            logger.error("%s failed", self, exc_info=error)
            self.live.update(state=State.FAILED, failure=self.live["failure"] or describe(error, self.slice))
        try:
            self.release()
        finally:
            self.ended.set()

    # -- the agent's thread

    def adjust(self, deploy: Deploy) -> None:
        """Asks the replica to be something else; it gets there step by step, on its own thread."""
        if deploy.ships and not self.deploy.ships:
            # Its bags count from here on, because it takes over or because it stands in.
            known = self.context.log.newest(self.slice)
            self.live.begin_comeback(known)
            if self.live.capabilities.sends and self.live["epoch"] >= known - 1:
                # Both published, each as soon as it could; one of two may be a batch behind.
                self.live.seamless()
        self.deploy = deploy
        self.live.ask(deploy)
        self.changed()

    def stop(self) -> None:
        """Asks the replica to end; it gives back what it holds on its own thread, however long that takes."""
        self._stop.set()
        self.changed()

    # -- any thread

    def changed(self) -> None:
        """Something is new: a replica that waits decides at once."""
        self._changed.set()

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    def give_up(self, error: BaseException) -> None:
        """Another thread has found that the replica cannot go on."""
        self._gave_up = error
        self.stop()

    def status(self) -> ReplicaStatus:
        return self.live.picture()

    def publish(self, bag: Bag, *, durable: bool) -> bool:
        """Publishes and keeps the books: how far we are, what it cost, whether another replica said otherwise.

        Returns whether nobody had published the epoch before.
        """
        vertex = self.vertex
        generation = None if vertex.repeatable else self.deploy.generation
        try:
            published = self.context.log.publish(bag, durable=durable, generation=generation)
        except Fenced as error:
            raise Stopped from error
        header = published.stored.header
        # What a fork makes lacks something: that it is not what was published is no news.
        if self.deploy.branch == STABLE and differs(
            bag.header.digest,
            header.digest,
            first=published.first,
            lost=bool(header.lost),
            stateful=vertex.stateful,
            deterministic=vertex.deterministic,
        ):
            self.note_divergence(header.epoch)
        if published.first:
            self.live.add(bytes_published=bag.size, first_bags=1)
        self.live.finished(header.epoch, bag.header.rows)
        self.live.progressed(header.epoch)
        return published.first

    def note_divergence(self, epoch: int) -> None:
        logger.error("%s: the replay of epoch %d differs from what was published before", self, epoch)
        self.live.update(diverged=epoch)
        self.live.add(divergences=1)

    # -- damaged bags

    def set_aside(self) -> None:
        """Takes the damaged bags away for which this slice was told to rewind; they are made again from here on."""
        first = self.deploy.rewind
        if first is None:
            return
        for epoch in self.context.log.damaged(self.slice, first):
            # Later ones stay: nobody would go on making them if this replica were lost in between.
            if epoch <= self.deploy.rewind_to:
                self.context.log.set_aside(self.slice, epoch)

    def report_damage(self, error: DamagedBag, upstream: SliceId, epoch: int) -> None:
        """Reports the bag that could not be read, and every other damaged one this slice may still need."""
        log, slices = self.context.log, {channel.upstream for channel in self.context.layout.channels(self.slice)}
        found = {(one, e) for one in slices for e in log.damaged(one, log.acknowledged(self.slice, one) + 1)}
        failure = damage(error, sorted(found | {(upstream, epoch)}, key=lambda place: (place[1], place[0])))
        self.live.update(failure=failure)
