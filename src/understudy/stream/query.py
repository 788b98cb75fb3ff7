"""An operator slice: one Structured Streaming query, fed epoch by epoch, publishing a bag for each.

The same replica is a primary or a secondary: what it does follows its capabilities, which are turned one at a time on
the replica's own thread. A secondary that does not process waits behind its gate and follows the shipped checkpoints.
"""

from __future__ import annotations

import logging
import re
import shutil
import threading
import time
from typing import TYPE_CHECKING

from understudy.control.schemes.overload import late
from understudy.control.schemes.switching import Step, next_step
from understudy.errors import UnderstudyError
from understudy.log import bag
from understudy.log.bag import DamagedBag
from understudy.model import schema
from understudy.model.capabilities import OFF, Capability
from understudy.model.messages import Deploy, ReplicaStatus, State
from understudy.model.names import SliceId
from understudy.model.spans import span, union
from understudy.stream.following import Following
from understudy.stream.gated_query import GatedQuery
from understudy.stream.inputs import InputDamaged, InputMissing
from understudy.stream.replica import InputGone, Stopped
from understudy.stream.shipper import Shipper
from understudy.stream.site import Site

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DAMAGED = re.compile(r"damaged bag <<(.*?)>>: ([^\n]*)")
logger = logging.getLogger(__name__)

AHEAD = 4
FOLLOW_EVERY_S = 0.05
LOOK_EVERY_S = 0.1


class QueryEnded(UnderstudyError):
    """Spark's stream thread may die without leaving an exception; a retry starts another."""

    def __init__(self, slice_id: SliceId) -> None:
        super().__init__(
            f"the query of {slice_id} ended by itself",
            why="Spark gives no reason",
            fix="see the node's log in the home directory",
        )


class QueryReplica(Following):
    def __init__(self, site: Site, deploy: Deploy) -> None:
        super().__init__(site, deploy)
        self.splits = site.layout.splits(self.slice.operator)
        self._shipper: Shipper | None = None
        self._lost: dict[int, tuple[str, ...]] = {}
        self._places: dict[str, tuple[SliceId, int]] = {}
        self._failed: BaseException | None = None
        self._stood_by = False
        self._leads = False
        self._seen_at = 0.0
        self._moved_at = time.monotonic()

    # -- the loop

    def work(self) -> None:
        shutil.rmtree(self._own, ignore_errors=True)
        self.set_aside()
        try:
            while True:
                self.check_stop()
                self._act(self.deploy)
        except Stopped:
            if self._failed is None:
                raise
            raise self._failed from None
        except InputDamaged as found:
            self.report_damage(found.error, found.upstream, found.epoch)
            raise found.error from None

    def _act(self, ask: Deploy) -> None:
        """One small thing at a time: a switch, the lead, an epoch, or a look at what was shipped."""
        self._ask = ask
        if self.query is not None:
            self.query.favour(ask.ships)
        step = next_step(self.on, ask.capabilities)
        if ask.primary and self.on.processes and not self._leads:
            # A secondary that worked beside its primary: it opens nothing any more, and what it held goes out now.
            self._take_lead()
        elif step is not None:
            self._turn(step)
        elif ask.ships != (self._shipper is not None):
            self._start_shipping() if ask.ships else self._stop_shipping()
        elif self.on.processes:
            self._feed()
        elif self.on.synced:
            self._stood_by = True
            self._follow()
            self.await_change(FOLLOW_EVERY_S)
        else:
            self.await_change(1.0)

    def _turn(self, step: Step) -> None:
        turn = {
            (Capability.DEPLOYED, True): self._exercise,
            (Capability.SYNCED, True): self._sync,
            (Capability.RECEIVES, True): self._load,
            (Capability.PROCESSES, True): self._open,
            (Capability.SENDS, True): self._send,
            (Capability.SENDS, False): self._hold,
            (Capability.PROCESSES, False): self._close,
            (Capability.RECEIVES, False): self._unload,
            (Capability.SYNCED, False): self._unsync,
        }.get((step.capability, step.on))
        if turn is not None:
            turn()
        self.update(capabilities=self.on.turned(step.capability, step.on))

    # -- turning capabilities

    def _exercise(self) -> None:
        """Runs the plan once on an empty epoch, so that the first real batch is not the first ever.

        A replica that works, or that loads its state, does as much with real rows in a moment.
        """
        asked = self._ask.capabilities
        if asked.processes or (asked.synced and self.vertex.reloads):
            return
        seen = threading.Event()

        def swallow(_: int, frame: DataFrame) -> None:
            frame.toArrow()
            seen.set()

        trial = self._new_query(swallow)
        try:
            trial.start(self.operators, self.schemas, 0)
            trial.announce(0, [])
            while not seen.wait(0.05):
                self.check_stop()
        finally:
            self._retire(trial)

    def _sync(self) -> None:
        """Brings the last shipped checkpoint and starts a query on it, which waits behind its gate."""
        self._start_query(load=not self._ask.capabilities.processes)
        if not self._ask.primary:
            self.update(state=State.RUNNING)

    def _load(self) -> None:
        """The state in memory: a query that has not run yet is replaced by one that has."""
        there = self._next > 0 and self.vertex.reloads
        if not self._ask.capabilities.processes and there and not self._loaded:
            self._start_query(load=True)

    def _open(self) -> None:
        self.update(late=not self._ask.primary)
        if self._stood_by:
            with self.step("read_checkpoint"):
                self._follow(refresh_every=1)
        if self._ask.primary:
            self._take_lead()
        if self._ask.primary and self._ask.generation > 1 and not self._guarantee.replays:
            self._leave_gap()

    def _take_lead(self) -> None:
        self._outbox.take_over()
        self._leads = True

    def _send(self) -> None:
        with self.step("wire_send"):
            self._outbox.send()

    def _hold(self) -> None:
        self._outbox.hold()

    def _close(self) -> None:
        """The state is then that of the last epoch, newer than anything shipped."""
        self._finish_announced()
        self.update(synced_to=self._done)

    def _unload(self) -> None:
        self.inputs.drop()

    def _unsync(self) -> None:
        if self.query is not None:
            self._retire(self.query)
        self.query = None
        self.update(synced_to=-1)

    def _start_shipping(self) -> None:
        self._shipper = Shipper(self, limits=self.site.shipping)
        self._shipper.start()

    def _stop_shipping(self) -> None:
        if self._shipper is not None:
            self._shipper.stop()
        self._shipper = None
        self.site.crowd.leave(self.slice)

    # -- feeding

    def _feed(self) -> None:
        """Announces the next epoch once all upstream slices have published it; the query waits at the gate for it."""
        epoch, query = self._next, self.query
        if query is None or self.site.goal.reached(epoch):
            self.await_change(0.05)
        elif self._overtaken(epoch) and self._read_back():
            pass
        elif self._sleeps():
            self.await_change(0.05)
        elif not self._await_input(epoch):
            self._check_trimmed(epoch)
        elif not self.site.room(self.slice, epoch):
            self.await_change(0.01)
        elif epoch - self._done > AHEAD:
            self.await_change(0.005)
        else:
            self._announce(query, epoch)

    def _await_input(self, epoch: int) -> bool:
        began, busy = time.monotonic(), self._done < epoch - 1
        there = self.inputs.has(epoch) or self.inputs.has(epoch, 0.1)
        if not busy:
            self.idled(began)
        return there

    @property
    def _may_read_back(self) -> bool:
        return self.deploy.rewind is None and self._guarantee.replays

    def _overtaken(self, epoch: int) -> bool:
        """Whether somebody else has published this epoch and the next, and shipped what comes of them."""
        return self._may_read_back and self.site.log.newest(self.slice) > epoch and self.store.newest() > epoch

    def _read_back(self) -> bool:
        """Takes over the newer state another replica has shipped, instead of working off what that one has done."""
        self._finish_announced()
        # Both would change what store and local checkpoint have in common; it starts again with the next step.
        self._stop_shipping()
        before = self._done
        self._follow(refresh_every=1)
        self.update(read_back=self._status.read_back + self._done - before, epoch=max(self._status.epoch, self._done))
        logger.info("%s: went from epoch %d to %d by reading state back", self, before, self._done)
        return self._done > before

    def _sleeps(self) -> bool:
        """Under overload the primaries of this node come first; meanwhile a secondary is refreshed by state."""
        if time.monotonic() - self._seen_at > LOOK_EVERY_S:
            self._seen_at = time.monotonic()
            if self._ask.ships:
                behind = self.inputs.newest() - self._done
                self.site.crowd.see(self.slice, behind)
                self.update(behind=max(0, behind))
        throttled = not self._ask.ships and self.site.crowd.crowded
        if throttled != self._status.throttled:
            logger.info("%s %s", self, "is throttled: primaries here are behind" if throttled else "works again")
            self.update(throttled=throttled)
        return throttled

    def _announce(self, query: GatedQuery, epoch: int) -> None:
        try:
            # The primary of a secondary may ship this epoch and give it away at any moment, also while it is read.
            fetched = 0 if self._ask.primary else self.inputs.fetch(epoch)
            ahead = self.inputs.holds(epoch)
            found = self.inputs.get(epoch)
        except InputMissing:
            # Trimmed, or damaged and taken away by the slice that makes it again.
            return
        self.wired()
        self._places = {path: (s, e) for path, (s, e) in self._places.items() if e > epoch - 2 * AHEAD}
        self._places |= {path: (upstream, epoch) for path, upstream in found.places.items()}
        self._lost = {number: lost for number, lost in self._lost.items() if number > epoch - 2 * AHEAD}
        self._lost[epoch] = found.lost
        received = fetched if ahead else found.size
        self.update(rows_in=self._status.rows_in + found.rows, bytes_received=self._status.bytes_received + received)
        if self._done >= epoch - 1:
            self._moved_at = time.monotonic()
        self._next = epoch + 1
        query.announce(epoch, found.lines)

    def _check_trimmed(self, epoch: int) -> None:
        """Input that another replica has acknowledged is in the state that one has shipped."""
        gone = [c.upstream for c in self.channels if self.site.log.acknowledged(self.slice, c.upstream) >= epoch]
        if not gone or self.inputs.has(epoch):
            return
        if self._may_read_back and self.store.newest() >= epoch and self._read_back():
            return
        raise InputGone(self.slice, gone[0], epoch)

    # -- what comes out

    def _batch(self, epoch: int, frame: DataFrame) -> None:
        """One micro-batch: its rows become the bag of the epoch. Spark commits only after this returns."""
        began = time.thread_time()
        rows = schema.conform(frame.toArrow(), self.site.schemas[self.slice.operator])
        first = self._outbox.put(bag.make(self.slice, epoch, rows, self.splits, self._lost.get(epoch, ())))
        self._done, self._ran, self._has_run = max(self._done, epoch), epoch, True
        self._moved_at = time.monotonic()
        self.inputs.forget(epoch - AHEAD)
        # A woken secondary whose primary is as fast has nothing to ship that anybody would miss.
        if self._shipper is not None and (self._ask.primary or first):
            self._shipper.published(epoch)
        self._spent += time.thread_time() - began
        self.changed()

    def _leave_gap(self) -> None:
        """Nothing is replayed: what this slice has missed is published as gaps, and it goes on with what comes next.

        Damaged bags that were set aside are among it: no state from before them is replayed either.
        """
        log, first = self.site.log, self._next
        known = last = log.newest(self.slice)
        while self.inputs.has(last + 1):
            last += 1
        # Only those that were set aside: a later damaged bag is still there, until a reader reports it.
        rewind = self.deploy.rewind
        told = range(0) if rewind is None else range(rewind, min(known, self.deploy.rewind_to) + 1)
        spoilt = [epoch for epoch in told if log.fetch(self.slice, epoch) is None]
        empty = self.site.schemas[self.slice.operator].empty_table()
        gaps = [*spoilt, *range(known + 1, last + 1)]
        for epoch in gaps:
            self._outbox.publish(bag.make(self.slice, epoch, empty, self.splits, (str(self.slice),)))
        self.update(gaps=union((epoch, epoch) for epoch in gaps), forgotten=span(range(first, known + 1)))
        self._next, self._done = last + 1, last

    # -- when it fails, and how it is

    def _query_ended(self, error: BaseException | None) -> None:
        self.give_up(QueryEnded(self.slice) if error is None else self._explain(error))

    def give_up(self, error: BaseException) -> None:
        """Somebody beside the replica's thread found that it cannot go on."""
        self._failed = error
        self._stop.set()
        self.changed()

    def _explain(self, error: BaseException) -> BaseException:
        """Finds in Spark's words the bag that could not be read."""
        match = _DAMAGED.search(str(error))
        place = self._places.get(match[1]) if match else None
        if match is None or place is None:
            return error
        found = DamagedBag(self.site.home / match[1], match[2])
        self.report_damage(found, *place)
        return found

    def status(self) -> ReplicaStatus:
        works = self._done < self._next - 1
        stalled_s = round(time.monotonic() - self._moved_at, 3) if works else 0.0
        return super().status().model_copy(update={"stalled_s": stalled_s})

    def measure(self) -> None:
        """What Spark says of the last batch and the state, and what all of it has cost."""
        self.update(late=self.on.processes and not self._ask.primary and self._behind())
        query = self.query
        if query is None:
            return
        self.update(cpu_s=round(self._spent + query.cpu_s, 3))
        progress = query.progress()
        if progress:
            operators, took = progress["stateOperators"], progress["durationMs"]
            busy = int(took.get("triggerExecution", 0)) - int(took.get("latestOffset", 0))
            # Spark counts only where somebody has configured it to; see `Rows.java` for why it does not by itself.
            rows = max(sum(int(op["numRowsTotal"]) for op in operators), query.state_rows if operators else 0)
            self.update(
                state_rows=rows,
                state_bytes=sum(int(op["memoryUsedBytes"]) for op in operators),
                batch_s=round(max(0, busy) / 1000, 3),
            )

    def _behind(self) -> bool:
        # A run that is as fast as it can be is always behind.
        newest = self._done if self.site.rhythm.fast else self.site.log.newest(self.slice)
        return late(newest, self._done, begun=self._has_run)

    def release(self) -> None:
        self.site.crowd.leave(self.slice)
        if self.query is not None:
            self._retire(self.query)
        if self._shipper is not None:
            self._shipper.stop()
        self.update(capabilities=OFF)
        shutil.rmtree(self._own, ignore_errors=True)
