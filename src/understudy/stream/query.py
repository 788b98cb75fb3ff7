"""An operator slice: one Structured Streaming query, fed epoch by epoch, publishing a bag for each.

The same replica is a primary or a secondary: what it does follows its capabilities, which are turned one at a time on
the replica's own thread. `control/replica/decide.py` decides, `execution.py` carries out; here are the parts a replica
is made of, and what its other threads do.
"""

from __future__ import annotations

import logging

from understudy.control.replica.actions import AwaitInput, Throttle
from understudy.control.replica.decide import AHEAD, decide
from understudy.control.schemes.overload import late
from understudy.model.capabilities import OFF
from understudy.model.messages import DamagedCheckpoint, Deploy, ReplicaStatus
from understudy.stream.context import NodeContext
from understudy.stream.edge import InputDamaged, Rows
from understudy.stream.execution import execute
from understudy.stream.failures import QueryEnded
from understudy.stream.inputs import Inputs
from understudy.stream.observation import Observation
from understudy.stream.outbox import Outbox
from understudy.stream.position import Position
from understudy.stream.query_slot import QuerySlot
from understudy.stream.reading import Reading
from understudy.stream.replica import Replica
from understudy.stream.shipper import Shipper

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 0.1
"""Between two looks at how far a primary is behind its input."""


class QueryReplica(Replica):
    """A composition: queries, inputs, outbox, shipper, position. It has more fields than most classes, because a
    replica is all of these at once.

    | field | changed by |
    | --- | --- |
    | `stood_by`, `took_over`, `gap_left`, `fruitless`, `idle_since`, `_begun`, `_looked_at` | its own thread |
    | `queries`, `inputs`, `position`, `reading`, `outbox`, `shipper` | the threads their classes name |
    | `_spent` | the query's thread |
    """

    def __init__(self, context: NodeContext, deploy: Deploy) -> None:
        super().__init__(context, deploy)
        edge, self._own = context.edge, context.local / f"{self.slice.operator}-{self.slice.index}-{deploy.generation}"
        upstream = [channel.upstream for channel in context.layout.channels(self.slice)]
        self.store = edge.store(self.slice)
        self.inputs = Inputs(context.log, upstream, edge.reader(self.slice, self._own / "ahead"))
        self.outbox = Outbox(self, edge.spool(self._own / "spool"))
        self.queries = QuerySlot(self, self._own)
        self.shipper = Shipper(self)
        self.position = Position(context.clock())
        self.reading = Reading()
        self.stood_by = self.took_over = self.gap_left = False
        self.fruitless: int | None = None
        self.idle_since: float | None = None
        self._begun = False
        self._looked_at = 0.0
        self._spent = 0.0

    # -- the replica's own thread

    def step(self) -> float:
        ask = self.deploy
        self._look_after(ask)
        action = decide(Observation(self), ask)
        if self.idle_since is not None and not isinstance(action, AwaitInput):
            self.live.idled(self.idle_since)
            self.idle_since = None
        self._note_throttled(isinstance(action, Throttle))
        return execute(action, self)

    def _look_after(self, ask: Deploy) -> None:
        """What goes on beside the decision: who goes first inside the node, and how far it is behind."""
        if not self._begun:
            self._begun = True
            self.context.edge.remove(self._own)
            self.set_aside()
        if self.queries.current is not None:
            self.queries.current.favour(ask.ships)
        now = self.context.clock()
        if now - self._looked_at > LOOK_EVERY_S and ask.ships and self.live.capabilities.processes:
            self._looked_at = now
            behind = self.inputs.newest() - self.position.done
            self.context.load.see(self.slice, behind)
            self.live.update(behind=max(0, behind))

    def _note_throttled(self, throttled: bool) -> None:
        if throttled != self.live["throttled"]:
            logger.info("%s %s", self, "is throttled: primaries here are behind" if throttled else "works again")
            self.live.update(throttled=throttled)

    def note_damaged_checkpoint(self, epoch: int, why: str) -> None:
        """A shipped checkpoint could not be read, and no longer counts; another one takes its place."""
        logger.warning("%s: the checkpoint of epoch %d is damaged and no longer counts: %s", self, epoch, why)
        found = DamagedCheckpoint(epoch=epoch, why=why)
        self.live.update(damaged_checkpoints=(*self.live["damaged_checkpoints"], found))

    def release(self) -> None:
        self.context.load.leave(self.slice)
        self.shipper.end()
        self.queries.release()
        self.live.update(capabilities=OFF)
        self.context.edge.remove(self._own)

    # -- the query's thread

    def on_batch(self, epoch: int, rows: Rows) -> None:
        """One micro-batch: its rows become the bag of the epoch. Spark commits only after this returns."""
        began = self.context.thread_cpu()
        first = self.outbox.put(self.context.edge.bag(self.slice, epoch, rows, self.reading.lost(epoch)))
        self.position.finished(epoch, self.context.clock())
        self.inputs.forget(epoch - AHEAD)
        self.shipper.published(epoch, first=first)
        self._spent += self.context.thread_cpu() - began
        self.changed()

    def on_query_ended(self, error: BaseException | None) -> None:
        """On a thread that watches the query: it has ended by itself."""
        if error is None:
            self.give_up(QueryEnded(self.slice))
            return
        found = self.reading.explain(error, self.context.home)
        if isinstance(found, InputDamaged):
            self.report_damage(found.error, found.upstream, found.epoch)
            found = found.error
        self.give_up(found)

    # -- the agent's threads

    def ship_now(self) -> None:
        """Ships the newest state, if this replica ships at all, although no checkpoint is due."""
        self.shipper.owe(self.position.done)

    def status(self) -> ReplicaStatus:
        return self.live.picture(stalled_s=self.position.stalled_s(self.context.clock()))

    def measure(self) -> None:
        """What Spark says of the last batch and the state, and what all of it has cost."""
        works = self.live.capabilities.processes
        self.live.update(late=works and not self.deploy.primary and self._is_late())
        query = self.queries.current
        if query is None:
            return
        self.live.update(cpu_s=round(self._spent + self.queries.spent + query.cpu_s, 3))
        progress = query.progress()
        if progress:
            operators, took = progress["stateOperators"], progress["durationMs"]
            busy = int(took.get("triggerExecution", 0)) - int(took.get("latestOffset", 0))
            # Spark counts only where somebody has configured it to; see `Rows.java` for why it does not by itself.
            rows = max(sum(int(op["numRowsTotal"]) for op in operators), query.state_rows if operators else 0)
            self.live.update(
                state_rows=rows,
                state_bytes=sum(int(op["memoryUsedBytes"]) for op in operators),
                batch_s=round(max(0, busy) / 1000, 3),
            )

    def _is_late(self) -> bool:
        # A run that is as fast as it can be is always behind.
        done = self.position.done
        newest = done if self.context.rhythm.fast else self.context.log.newest(self.slice)
        return late(newest, done, begun=self.position.has_run)
