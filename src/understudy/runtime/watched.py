"""What the manager tells those who look, beside its state: the plan, deliveries, and which nodes are draining."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from understudy.coordination.interface import StateStore
from understudy.errors import InvalidInput
from understudy.model.event import COUNT, Event
from understudy.model.layout import Kind, Layout
from understudy.model.messages import Failure, Hello, Receipt, ReplicaStatus, State
from understudy.model.names import SliceId
from understudy.model.page import Plan, Prediction
from understudy.model.run import Rhythm, RunSpec
from understudy.model.snapshot import Assignment, NodeView, Phase
from understudy.model.topology import Topology
from understudy.model.view import RunState, SliceState
from understudy.reporting.chronicle import Chronicle
from understudy.reporting.graph import plan_of
from understudy.reporting.health import may_lag
from understudy.reporting.report import (
    CostReport,
    Report,
    SinkReport,
    decision_reports,
    fault_reports,
    reaction_report,
    sink_report,
    slice_reports,
    tainted,
    told_kinds,
    transition_reports,
    verdict,
)
from understudy.runtime.connection import Connection
from understudy.runtime.ledger import Ledger
from understudy.runtime.protections import Protections
from understudy.runtime.steering import Steering

TOLD = 10_000
"""The report tells faults, transitions and decisions from so many events, the newest; its totals cover all."""


class Watched(ABC):
    """Reads what the manager keeps; the dashboard, metrics and commands need nothing else of it."""

    run: RunSpec
    _home: Path
    _topology: Topology
    _layout: Layout | None
    _store: StateStore
    _rhythm: Rhythm | None
    _clock: Callable[[], float]
    _wall: Callable[[], float]
    _phase: Phase
    _goal: int | None
    _failure: Failure | None
    _lost: dict[str, int]
    _replacements: int
    _diverged: set[str]
    _assignments: dict[SliceId, Assignment]
    _ledger: Ledger
    _protections: Protections
    _steering: Steering
    _connections: dict[str, Connection]

    @abstractmethod
    def note(self, kind: str, text: str, fields: dict[str, Any], cause: int | None = None) -> int: ...

    @property
    def nodes_directory(self) -> Path:
        return self._home / "nodes"

    def now(self) -> float:
        return self._wall()

    def events(self, after: int = 0, limit: int | None = None) -> list[Event]:
        """The next events with a higher number."""
        return self._store.events(after, limit)

    def newest_events(self, limit: int) -> list[Event]:
        return self._store.newest_events(limit)

    def event_counts(self) -> dict[str, int]:
        """How many events of each kind there were in the whole run."""
        return {kind: int(fields[COUNT]) for kind, fields in self._store.totals().items()}

    def placed_again(self) -> set[str]:
        """Slices that were placed more than once, so that they have worked before."""
        return {str(slice_id) for slice_id, assignment in self._assignments.items() if assignment.generation > 1}

    def delivered(self) -> dict[str, int]:
        """Epochs that every sink has delivered without a gap."""
        return {sink.name: self._store.delivered(sink.name) for sink in self._topology.sinks}

    def plan(self) -> Plan:
        return plan_of(self._topology, self._layout).model_copy(update={"slices": self.state().slices})

    def source_names(self) -> frozenset[str]:
        return frozenset(source.name for source in self._topology.sources)

    def predictions(self) -> tuple[Prediction, ...]:
        """How long each scheme would take to bring a slice back, and what the controller made of it."""
        return tuple(
            Prediction(
                slice=one.slice,
                predicted={scheme: seconds for scheme, seconds in one.predicted_s.items() if seconds is not None},
                objective=one.objective_s,
                reason=one.reason or "",
            )
            for one in self.state().slices
            if one.predicted_s
        )

    def deliveries(self, first: Mapping[str, int]) -> list[Receipt]:
        """Receipts of every sink from an epoch on."""
        sinks = [sink.name for sink in self._topology.sinks]
        return [receipt for sink in sinks for receipt in self._store.receipts(sink, first.get(sink, 0))]

    def latency(self, receipt: Receipt) -> float | None:
        """From the moment the epoch was due to its delivery; a fast run has no such moments."""
        rhythm = self._rhythm
        if rhythm is None or rhythm.fast or receipt.epoch < rhythm.epoch:
            return None
        return max(0.0, receipt.at - rhythm.due(receipt.epoch))

    def report(self) -> Report:
        store = self._store
        began = store.fact("began_at") or self._wall()
        sinks = {sink.name: self._sink_report(sink.name) for sink in self._topology.sinks}
        replicas = self._ledger.replicas
        slices = slice_reports(tuple(self._assignments.values()), replicas, self._protections.time)
        totals = store.totals()
        story = Chronicle(store.newest_events(TOLD, told_kinds(totals)))
        return Report(
            app=self._topology.name,
            run=self.run.id,
            epoch_s=self._topology.epoch_s,
            epochs=min((sink.epochs for sink in sinks.values()), default=0),
            elapsed_s=round((store.fact("ended_at") or self._wall()) - began, 3),
            nodes=tuple(sorted(self._ledger.nodes)),
            slices=slices,
            faults=fault_reports(story, began, self._objectives()),
            transitions=transition_reports(story, began),
            decisions=decision_reports(story, began),
            reactions=reaction_report(totals, sum(replica.read_back for replica in replicas)),
            sinks=sinks,
            costs=CostReport(
                cpu_s={name: round(node.cpu_s, 2) for name, node in self._ledger.nodes.items()},
                peak_memory_bytes={name: node.peak_memory_bytes for name, node in self._ledger.nodes.items()},
                bytes_received=sum(replica.bytes_received for replica in replicas),
                bytes_pulled=sum(replica.bytes_pulled for replica in replicas),
                bytes_published=sum(replica.bytes_published for replica in replicas),
                bytes_shipped=sum(replica.bytes_shipped for replica in replicas),
                schemes={name: cost.rounded() for name, cost in self._protections.costs.items()},
            ),
            diverged=tuple(sorted(self._diverged)),
            failure=self._failure,
            verdict=verdict(self._phase, sinks, slices, self._tainted()),
            told_since_s=round(self._told_since_s(began), 3),
        )

    def _told_since_s(self, began: float) -> float:
        """From when on the report can tell what happened."""
        happened = sum(self.event_counts().values())
        first = self._store.events(happened - TOLD, 1) if happened > TOLD else []
        return max(0.0, first[0].at - began) if first else 0.0

    def _sink_report(self, sink: str) -> SinkReport:
        store, tally = self._store, self._store.tally(sink)
        return sink_report(
            tally,
            delays=store.delays(sink),
            holes=store.epochs_with_loss(sink),
            beyond=store.receipts(sink, tally.epochs),
            duplicates=store.duplicates(sink),
            goal=self._goal,
        )

    def _tainted(self) -> list[str]:
        return tainted(self._diverged, self._layout) if self._layout is not None else sorted(self._diverged)

    def _objectives(self) -> dict[str, float]:
        vertices = self._layout.vertices if self._layout is not None else ()
        return {v.name: v.recovery.objective_s for v in vertices if v.recovery.objective_s is not None}

    def state(self) -> RunState:
        began = self._store.fact("began_at")
        return RunState(
            run=self.run.id,
            app=self._topology.name,
            phase=self._phase,
            elapsed_s=self._wall() - began if began else 0.0,
            goal=self._goal,
            delivered=self.delivered(),
            rows={str(r.slice): r.rows_in for c in self._connections.values() for r in c.beat.replicas},
            nodes=tuple(connection.state(self._clock()) for connection in self._connections.values()),
            lost=tuple(self._lost),
            replacements=self._replacements,
            failure=self._failure,
            slices=self._slice_states(),
        )

    def _predicted(self, assignment: Assignment) -> dict[str, float | None]:
        if self._layout is None or self._kind(assignment.slice) is not Kind.OPERATOR:
            return {}
        return self._steering.outlook(assignment.slice, self._layout[assignment.slice.operator])

    def _slice_states(self) -> tuple[SliceState, ...]:
        if self._layout is None:
            return ()
        views = self._views()
        backlog, epoch_s = self.run.backlog, self._topology.epoch_s
        newest = max((r.epoch for view in views.values() for r in view.replicas), default=-1)
        found = []
        for assignment in self._assignments.values():
            view = views.get(assignment.node)
            own = view.hosting(assignment.slice, assignment.generation) if view else None
            decision = self._steering.decisions.get(str(assignment.slice))
            objective_s = self._layout[assignment.slice.operator].recovery.objective_s
            found.append(
                SliceState(
                    slice=str(assignment.slice),
                    kind=self._layout[assignment.slice.operator].kind,
                    scheme=assignment.scheme,
                    protection=self._protections.reached.get(str(assignment.slice), assignment.scheme),
                    primary=assignment.node,
                    secondary=assignment.secondary.node if assignment.secondary else None,
                    standing_in=assignment.standing_in,
                    throttled=assignment.throttle.on,
                    epoch=own.epoch if own else -1,
                    lag=newest - own.epoch if own else newest + 1,
                    may_lag=None if self.run.fast else may_lag(objective_s, epoch_s, backlog),
                    objective_s=objective_s,
                    predicted_s=self._predicted(assignment),
                    reason=decision.sentence if decision else None,
                    state=_words(own) if own else "starting" if view else "lost",
                )
            )
        return tuple(found)

    def _kind(self, slice_id: SliceId) -> Kind | None:
        return None if self._layout is None else self._layout[slice_id.operator].kind

    def _views(self) -> dict[str, NodeView]:
        now, running = self._clock(), self._phase is Phase.RUNNING
        return {name: connection.view(now, running) for name, connection in self._connections.items()}

    # -- draining

    def drain(self, node: str, undo: bool = False) -> int:
        """Marks a node: nothing new comes to it, and what it hosts moves away."""
        connection = self._connections.get(node)
        if connection is None or connection.hello is None:
            raise InvalidInput(
                f"there is no node {node}",
                why=f"the nodes of this run are {', '.join(sorted(self._connections)) or 'none'}",
                fix="name one of them",
            )
        kept: dict[str, int] = self._store.fact("draining") or {}
        kept = {name: pid for name, pid in kept.items() if name != node}
        self._store.keep({"draining": kept if undo else kept | {node: connection.hello.pid}})
        connection.draining = not undo
        text = f"{node} takes slices again" if undo else f"{node} is being drained"
        return self.note("drain", text, {"node": node, "undo": undo})

    def is_draining(self, hello: Hello) -> bool:
        """By process: a node that was started anew under its old name may work again."""
        return bool((self._store.fact("draining") or {}).get(hello.node) == hello.pid)


def _words(replica: ReplicaStatus) -> str:
    recovering = replica.state is State.RUNNING and not replica.is_back
    return "recovering" if recovering else replica.state
