"""What people and programs read of a run: state, report, plan, predictions, deliveries. It changes nothing.

The computations are in `reporting/`; this class gathers their input.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from understudy.model.events import COUNT, Event
from understudy.model.layout import Kind
from understudy.model.messages import Receipt
from understudy.model.page import Plan, Prediction
from understudy.model.replication import ReplicationState
from understudy.model.report import Report, SinkReport
from understudy.model.run import RunSpec
from understudy.model.view import BranchState, RunState
from understudy.reporting.graph import plan_of
from understudy.reporting.report import ReportInput, make_report, sink_report, told_kinds
from understudy.reporting.slices import Sight, predictions, slice_states
from understudy.runtime.clock import RunClock
from understudy.runtime.memory import RunMemory
from understudy.runtime.observer import Observer
from understudy.runtime.plans import Plans

TOLD = 10_000
"""The report tells faults, transitions and decisions from so many events, the newest; its totals cover all."""


class RunView:
    """Reads the manager's memory and observer; the dashboard, metrics and commands need nothing else of them."""

    def __init__(self, home: Path, memory: RunMemory, observer: Observer, clock: RunClock, plans: Plans) -> None:
        self._home, self._memory, self._observer, self._clock, self._plans = home, memory, observer, clock, plans
        self._store, self._topology = memory.store, memory.topology

    @property
    def run(self) -> RunSpec:
        return self._memory.run

    @property
    def nodes_directory(self) -> Path:
        return self._home / "nodes"

    def now(self) -> float:
        """The time of day."""
        return self._clock.wall()

    # -- events

    def events(self, after: int = 0, limit: int | None = None) -> list[Event]:
        """The next events with a higher number."""
        return self._store.events(after, limit)

    def newest_events(self, limit: int) -> list[Event]:
        return self._store.newest_events(limit)

    def event_counts(self) -> dict[str, int]:
        """How many events of each kind there were in the whole run."""
        return {kind: int(fields[COUNT]) for kind, fields in self._store.totals().items()}

    # -- deliveries

    def delivered(self) -> dict[str, int]:
        """Epochs that every sink has delivered without a gap."""
        return self._memory.delivered()

    def deliveries(self, first: Mapping[str, int]) -> list[Receipt]:
        """Receipts of every sink from an epoch on."""
        sinks = [sink.name for sink in self._topology.sinks]
        return [receipt for sink in sinks for receipt in self._store.receipts(sink, first.get(sink, 0))]

    def latency(self, receipt: Receipt) -> float | None:
        """From the moment the epoch was due to its delivery; a fast run has no such moments."""
        rhythm = self._memory.rhythm
        if rhythm is None or rhythm.fast or receipt.epoch < rhythm.epoch:
            return None
        return max(0.0, receipt.at - rhythm.due(receipt.epoch))

    # -- the run now

    def placed_again(self) -> set[str]:
        """Slices that were placed more than once, so that they have worked before."""
        return {str(slice_id) for slice_id, a in self._memory.assignments.items() if a.generation > 1}

    def source_names(self) -> frozenset[str]:
        return frozenset(source.name for source in self._topology.sources)

    def plan(self) -> Plan:
        return plan_of(self._topology, self._memory.layout).model_copy(update={"slices": self.state().slices})

    def replication(self) -> ReplicationState | None:
        """What a planner needs to know of the run; None before data flows."""
        return self._plans.state()

    def predictions(self) -> tuple[Prediction, ...]:
        """How long each scheme would take to bring a slice back, and what the controller made of it."""
        return predictions(self.state().slices)

    def state(self) -> RunState:
        memory, began = self._memory, self._store.fact("began_at")
        connections = self._observer.members.connections.values()
        return RunState(
            run=memory.run.id,
            app=self._topology.name,
            phase=memory.phase,
            elapsed_s=self.now() - began if began else 0.0,
            goal=memory.goal,
            delivered=self.delivered(),
            rows={str(r.slice): r.rows_in for c in connections for r in c.beat.replicas},
            nodes=tuple(connection.state(self._clock.now()) for connection in connections),
            lost=tuple(memory.lost),
            replacements=memory.replacements,
            failure=memory.failure,
            slices=() if memory.layout is None else tuple(slice_states(self._sight())),
            branch=self._branch(),
            grown=memory.grown,
            balancing=memory.decisions.rebalance.left,
        )

    def _branch(self) -> BranchState | None:
        memory, branch = self._memory, self._memory.branch
        if branch is None:
            return None
        sinks = [one.slice.operator for one in branch.forks if memory.kind(one.slice) is Kind.SINK]
        newest = {sink: memory.tentative_epoch(branch.number, sink) for sink in sinks}
        fidelity, completeness = memory.fidelity or (None, None)
        return BranchState(
            number=branch.number,
            missing=tuple(map(str, branch.missing)),
            open_s=round(self._clock.age_s - branch.opened_s, 2),
            tentative={sink: epoch for sink, epoch in newest.items() if epoch >= 0},
            stable={sink: self._store.delivered(sink) for sink in sinks},
            fidelity=fidelity,
            completeness=completeness,
        )

    def _sight(self) -> Sight:
        memory, observer = self._memory, self._observer
        assert memory.layout is not None
        return Sight(
            run=memory.run,
            epoch_s=self._topology.epoch_s,
            layout=memory.layout,
            assignments=tuple(memory.assignments.values()),
            nodes=observer.views(),
            reached=observer.protections.reached,
            choices={name: choice.sentence for name, choice in memory.decisions.choices.items()},
            predicted=observer.predictions.shown,
            forked=memory.branch.by_slice if memory.branch else (),
        )

    # -- the run so far

    def report(self) -> Report:
        memory, ledger, store = self._memory, self._observer.ledger, self._store
        totals = store.totals()
        began = store.fact("began_at") or self.now()
        return make_report(
            ReportInput(
                run=memory.run,
                topology=self._topology,
                layout=memory.layout,
                phase=memory.phase,
                failure=memory.failure,
                began_at=began,
                ended_at=store.fact("ended_at") or self.now(),
                told_since=self._told_since() or began,
                assignments=tuple(memory.assignments.values()),
                diverged=memory.diverged,
                replicas=ledger.replicas,
                cpu_s={name: node.cpu_s for name, node in ledger.nodes.items()},
                peak_memory_bytes={name: node.peak_memory_bytes for name, node in ledger.nodes.items()},
                scheme_times=self._observer.protections.time,
                scheme_costs=self._observer.protections.costs,
                totals=totals,
                events=store.newest_events(TOLD, told_kinds(totals)),
                sinks={sink.name: self._sink_report(sink.name) for sink in self._topology.sinks},
            )
        )

    def _told_since(self) -> float | None:
        """From when on the report can tell what happened; None if from the beginning."""
        happened = sum(self.event_counts().values())
        first = self._store.events(happened - TOLD, 1) if happened > TOLD else []
        return first[0].at if first else None

    def _sink_report(self, sink: str) -> SinkReport:
        store, tally = self._store, self._store.tally(sink)
        return sink_report(
            tally,
            delays=store.delays(sink),
            holes=store.epochs_with_loss(sink),
            beyond=store.receipts(sink, tally.epochs),
            duplicates=store.duplicates(sink),
            goal=self._memory.goal,
        )
