"""The report of a run, as its readers find it in JSON (docs/report.md). `reporting/report.py` computes it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from understudy.model.messages import Failure
from understudy.model.run import Frozen
from understudy.model.spans import Span

Verdict = Literal["exact", "at least once", "diverged", "lossy", "failed"]
Delivery = Literal["once", "at least once"]


class SliceReport(Frozen):
    """`gaps` were published empty because a failure lost them, `forgotten` are not in the state any more; of
    those, which may be all before a failure, only the first and last of each run are named."""

    primary: str
    secondary: str | None
    scheme: str
    scheme_time_s: dict[str, float]
    gaps: tuple[int, ...]
    forgotten: tuple[Span, ...]
    differed: int
    epoch: int
    rows_in: int
    rows_out: int
    state_rows: int
    state_bytes: int


class RecoveryReport(Frozen):
    """`steps` are seconds; `actual_s` runs from the fault to the first epoch nobody had finished before. `idle_s` of it
    there was no new input yet, so what counts against an objective is `away_s`, the rest."""

    slice: str
    scheme: str
    steps: dict[str, float]
    actual_s: float
    idle_s: float
    away_s: float
    epochs_replayed: int
    predicted_s: dict[str, float] | None = None
    objective_s: float | None = None
    missed: str | None = None
    """Why the objective was not kept, if there was one and it was not."""


class TransitionReport(Frozen):
    """A switch that was asked for; `seconds` until the scheme was reached, None if it never was."""

    slice: str
    before: str
    scheme: str
    at_s: float
    seconds: float | None


class MoveReport(Frozen):
    """A slice that went to another node, which is no failure. `seconds`: from its beginning to the take-over; of the
    time after that, `away_s` was without output that was due, and `replayed` epochs were done again. `legacy`: it was
    stopped for it."""

    slice: str
    primary: str
    node: str
    at_s: float
    seconds: float
    away_s: float
    replayed: int
    legacy: bool


class FaultReport(Frozen):
    spec: str
    at_s: float
    detected_after_s: float | None
    recoveries: tuple[RecoveryReport, ...]


class ReactionReport(Frozen):
    """How often secondaries were `standing_in` because a node was silent or slow. `stood_in` made something new,
    `false_alarms` did not; `promoted` ones stayed. `read_back` epochs were taken over as state by primaries that had
    missed them. The rest is what standing in has cost."""

    standing_in: int = 0
    stood_in: int = 0
    rolled_back: int = 0
    false_alarms: int = 0
    promoted: int = 0
    read_back: int = 0
    stood_in_s: float = 0.0
    cpu_s: float = 0.0
    bytes: int = 0


class PlanReport(Frozen):
    """A plan for working secondaries that was adopted. Fidelities are predicted, by the same rates."""

    at_s: float
    sentence: str
    budget: int
    slices: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    fidelity_before: float
    fidelity_after: float
    algorithm: str
    status: str


class DecisionReport(Frozen):
    """What the controller chose, in a sentence and in figures."""

    at_s: float
    sentence: str
    figures: dict[str, Any]


class BranchReport(Frozen):
    """A tentative branch. `first_output_s` counts from the failure to the first tentative epoch."""

    number: int
    opened_at_s: float
    dropped_at_s: float | None
    missing: tuple[str, ...]
    first_output_s: float | None


class TentativeEpoch(Frozen):
    """An epoch that a sink wrote without the `missing` slices. `fidelity` and `completeness` were predicted for it;
    `had` is the share of the stable rows that were in it, `right` the share of its rows that were stable ones."""

    branch: int
    sink: str
    epoch: int
    at_s: float
    after_failure_s: float | None
    missing: tuple[str, ...]
    rows: int
    fidelity: float | None
    completeness: float | None
    corrected_after_s: float | None
    had: float | None
    right: float | None


class TentativeReport(Frozen):
    """The verdict is about stable output alone; this is about what was shown meanwhile."""

    branches: tuple[BranchReport, ...] = ()
    epochs: tuple[TentativeEpoch, ...] = ()


class SinkReport(Frozen):
    epochs: int
    rows: int
    lost_epochs: int
    duplicate_epochs: int
    delivered: Delivery = "once"
    gaps: tuple[int, ...]
    digest: str
    max_gap_s: float
    max_late_s: float


class SchemeCosts(Frozen):
    """What secondaries cost while their slices were protected by one scheme.

    `node_s` is the time their nodes were held for them: a node with four replicas counts a quarter for each. What the
    primaries used in the same time is there to compare with.
    """

    seconds: float = 0.0
    cpu_s: float = 0.0
    primary_cpu_s: float = 0.0
    memory_bytes: int = 0
    node_s: float = 0.0
    bytes_received: int = 0
    bytes_pulled: int = 0
    bytes_shipped: int = 0
    bytes_published: int = 0

    def rounded(self) -> SchemeCosts:
        return SchemeCosts(**{name: round(value, 3) for name, value in self})


class CostReport(Frozen):
    cpu_s: dict[str, float]
    peak_memory_bytes: dict[str, int]
    bytes_received: int
    bytes_pulled: int
    bytes_published: int
    bytes_shipped: int
    schemes: dict[str, SchemeCosts] = Field(default_factory=dict)


class Report(Frozen):
    app: str
    run: str
    epoch_s: float
    epochs: int
    elapsed_s: float
    nodes: tuple[str, ...]
    slices: dict[str, SliceReport]
    faults: tuple[FaultReport, ...]
    transitions: tuple[TransitionReport, ...]
    plans: tuple[PlanReport, ...] = ()
    decisions: tuple[DecisionReport, ...]
    moves: tuple[MoveReport, ...] = ()
    reactions: ReactionReport = ReactionReport()
    tentative: TentativeReport = TentativeReport()
    sinks: dict[str, SinkReport]
    costs: CostReport
    diverged: tuple[str, ...]
    failure: Failure | None
    verdict: Verdict
    told_since_s: float = 0.0
    """Faults, transitions, moves, plans and decisions are told from here on; what happened earlier is in the totals
    alone."""
