"""One look at the run per refresh, shared by every page, `/metrics` and the API."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Histogram

from understudy.model.events import Assigned, Event, Moved, Running
from understudy.model.page import Frame, Health, NodeLook, PastRecovery, ReplicaLook, Sample, View
from understudy.model.view import NodeState, RunState
from understudy.reporting.health import looks
from understudy.reporting.recoveries import KINDS, past_recoveries
from understudy.reporting.sampling import Counters, cores, count, rows_per_s
from understudy.reporting.spending import cost_lines
from understudy.web.ports import RunReader

logger = logging.getLogger(__name__)

REFRESH_S = 0.5
WINDOW_S = 5.0
"""Rates are means over so long: a single refresh is shorter than most epochs."""
MAX_EVENTS = 500
MAX_STORY = 500
REMEMBERED = 2_000
"""Events that a new manager reads to tell what happened before it."""
MAX_SAMPLES = 1200
MAX_QUEUED = 20
_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 60.0)


class Hub:
    """Called from the manager's loop. Everything it remembers is bounded; the store has the rest.

    It begins where the run stands: latencies are those of epochs delivered from now on.
    """

    def __init__(self, reader: RunReader, registry: CollectorRegistry) -> None:
        self._reader = reader
        self._events: deque[Event] = deque(maxlen=MAX_EVENTS)
        self._story: deque[Event] = deque(maxlen=MAX_STORY)
        self._samples: deque[Sample] = deque(maxlen=MAX_SAMPLES)
        self._counters: deque[Counters] = deque()
        self._seen = 0
        self._delivered = reader.delivered()
        self._worked = reader.placed_again()
        self._pages: set[asyncio.Queue[str]] = set()
        self._view: View | None = None
        self.recoveries: tuple[PastRecovery, ...] = ()
        self.kinds: Counter[str] = Counter(reader.event_counts())
        self._recovery_s = Histogram(
            "understudy_recovery_duration_seconds",
            "Time from a fault, or from its detection where no fault was injected, to the first new epoch of a slice.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._latency_s = Histogram(
            "understudy_delivery_latency_seconds",
            "Time from the moment an epoch was due to its delivery by a sink.",
            ["sink"],
            buckets=_SECONDS,
            registry=registry,
        )

        self._remember_events(reader.newest_events(REMEMBERED))
        self._tell_recoveries()

    @property
    def pages(self) -> int:
        return len(self._pages)

    def view(self) -> View:
        """The last look. Only the loop looks again: what is new must reach every page."""
        return self._view if self._view is not None else self.refresh().view

    def refresh(self) -> Frame:
        """Looks, and returns what is new since the last look."""
        now = self._reader.now()
        state = self._reader.state()
        fresh = self._hear()
        before = self._remember(count(state, now, self._reader.source_names()))
        latency = self._latency()
        sample = Sample(
            at=now,
            rows_per_s=round(rows_per_s(self._counters), 1),
            latency_s=latency,
            epoch=state.epoch,
            cores=round(sum(cores(before, self._counters[-1], node.name) for node in state.nodes), 3),
            memory_bytes=sum(node.memory_bytes for node in state.nodes),
        )
        self._samples.append(sample)
        self._view = self._look(state, sample, before)
        told = any(event.kind in KINDS for event in fresh)
        if told:
            self._tell_recoveries()
        return Frame(
            kind="news",
            view=self._view,
            events=tuple(fresh[-MAX_EVENTS:]),
            samples=(sample,),
            recoveries=self.recoveries if told else None,
            # The layout becomes known when the run begins.
            plan=self._reader.plan() if any(event.kind == Running.kind for event in fresh) else None,
        )

    def everything(self) -> Frame:
        """For a page that has just been opened."""
        return Frame(
            kind="everything",
            view=self.view(),
            events=tuple(self._events),
            samples=tuple(self._samples),
            recoveries=self.recoveries,
            plan=self._reader.plan(),
        )

    def _hear(self) -> list[Event]:
        fresh = self._reader.events(self._seen)
        self._remember_events(fresh)
        for event in fresh:
            self.kinds[event.kind] += 1
            what = event.what
            if isinstance(what, Assigned | Moved) and what.generation > 1:
                self._worked.add(str(what.slice))
        return fresh

    def _remember_events(self, events: Iterable[Event]) -> None:
        for event in events:
            self._seen = max(self._seen, event.number)
            self._events.append(event)
            if event.kind in KINDS:
                self._story.append(event)

    def _tell_recoveries(self) -> None:
        known = {recovery.number for recovery in self.recoveries}
        self.recoveries = past_recoveries(tuple(self._story))
        for recovery in self.recoveries:
            if recovery.number not in known:
                self._recovery_s.observe(recovery.total_s)

    def _remember(self, counters: Counters) -> Counters:
        """Keeps a short window of counters and returns its beginning."""
        self._counters.append(counters)
        while len(self._counters) > 2 and counters.at - self._counters[1].at >= WINDOW_S:
            self._counters.popleft()
        return self._counters[0]

    def _latency(self) -> float | None:
        """The longest of the epochs delivered since the last look."""
        longest: float | None = None
        for receipt in self._reader.deliveries(self._delivered):
            self._delivered[receipt.sink] = max(receipt.epoch + 1, self._delivered.get(receipt.sink, 0))
            latency = self._reader.latency(receipt)
            if latency is not None:
                self._latency_s.labels(receipt.sink).observe(latency)
                longest = max(longest or 0.0, latency)
        return None if longest is None else round(longest, 3)

    def _look(self, state: RunState, sample: Sample, before: Counters) -> View:
        latency = next((s.latency_s for s in reversed(self._samples) if s.latency_s is not None), None)
        nodes = sorted(state.nodes, key=lambda node: (node.domain, node.name))
        slices = looks(state, state.slices, self._worked, self._reader.run.config.detector)
        self._worked |= {entry.slice for entry in slices if entry.health is Health.HEALTHY}
        return View(
            at=sample.at,
            run=state.run,
            app=state.app,
            phase=state.phase,
            elapsed_s=round(state.elapsed_s, 2),
            epoch=state.epoch,
            goal=state.goal,
            delivered=state.delivered,
            rows_per_s=sample.rows_per_s,
            latency_s=latency,
            nodes=tuple(_node(node, cores(before, self._counters[-1], node.name)) for node in nodes),
            slices=slices,
            lost=state.lost,
            branch=state.branch,
            balancing=state.balancing,
            costs=cost_lines(state.nodes),
            predictions=self._reader.predictions(),
            failure=state.failure,
            allow_faults=self._reader.run.allow_faults,
        )

    # -- pages

    async def refresh_forever(self, pause: Callable[[], float] = lambda: REFRESH_S) -> None:
        while True:
            try:
                frame = self.refresh()
                if self._pages:
                    self._publish(frame.model_dump_json())
            except Exception:
                logger.exception("a refresh of the dashboard failed")
            await asyncio.sleep(pause())

    def _publish(self, text: str) -> None:
        for queue in tuple(self._pages):
            try:
                queue.put_nowait(text)
            except asyncio.QueueFull:
                # A page that does not read is let go; when it comes back it is told everything.
                self.dismiss(queue)

    def join(self) -> asyncio.Queue[str]:
        queue: asyncio.Queue[str] = asyncio.Queue(MAX_QUEUED)
        queue.put_nowait(self.everything().model_dump_json())
        self._pages.add(queue)
        return queue

    def dismiss(self, queue: asyncio.Queue[str]) -> None:
        """Ends a page's connection: what it has not read is dropped, and the last word is empty."""
        self.leave(queue)
        while not queue.empty():
            queue.get_nowait()
        queue.put_nowait("")

    def dismiss_all(self) -> None:
        for queue in tuple(self._pages):
            self.dismiss(queue)

    def leave(self, queue: asyncio.Queue[str]) -> None:
        self._pages.discard(queue)


def _node(node: NodeState, used: float) -> NodeLook:
    return NodeLook(
        name=node.name,
        domain=node.domain,
        connected=node.connected,
        ready=node.ready,
        draining=node.draining,
        drained=node.draining and not node.replicas,
        silent_s=round(node.silent_s, 3),
        cores=round(used, 3),
        cpu_s=node.cpu_s,
        memory_bytes=node.memory_bytes,
        replicas=tuple(
            ReplicaLook(slice=str(r.slice), primary=r.primary, state=r.state, epoch=r.epoch)
            for r in sorted(node.replicas, key=lambda r: r.slice)
        ),
    )
