"""What was measured of every slice, and predictions made from it: how long each scheme would take to bring it back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from understudy.control.cluster.controlling import Surroundings
from understudy.control.cluster.snapshot import Ended, Measured
from understudy.control.schemes.costs import Usage, between, secondary_share
from understudy.control.schemes.estimates import Estimate, estimate
from understudy.control.schemes.history import History, Observation, observe, recovered, started
from understudy.control.schemes.series import Transfer
from understudy.model.capabilities import ROWS
from understudy.model.layout import Layout, Vertex
from understudy.model.messages import ReplicaStatus, Steps
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme
from understudy.model.snapshot import Assignment

RATE_S = 2.0
WARM_S = 4.0
RATES_KEPT = 8
"""Replicas of a slice whose rates are followed."""


@dataclass(frozen=True)
class Outlook:
    """A prediction that waits for what happens."""

    scheme: Scheme
    estimate: Estimate
    lost_at: float
    detect_s: float
    objective_s: float | None


class Predictions:
    """Fed by every heartbeat. Decisions read `measured` and `take_ended`, people read `shown`."""

    def __init__(self, epoch_s: float) -> None:
        self._epoch_s = epoch_s
        self._histories: dict[SliceId, History] = {}
        self._usages: dict[SliceId, Usage] = {}
        self._rates: dict[tuple[SliceId, int], tuple[float, ReplicaStatus]] = {}
        self._outlooks: dict[SliceId, Outlook] = {}
        self._shown: dict[SliceId, tuple[History, dict[str, float | None]]] = {}
        self._ended: list[Ended] = []

    # -- measuring

    def hear(self, replica: ReplicaStatus, assignment: Assignment, protection: Scheme | None, now: float) -> None:
        """With every heartbeat, of the primary and of the secondary."""
        history = self._histories.get(replica.slice) or History(str(replica.slice))
        if replica.primary and replica.up_s < WARM_S:
            # It compiles its code, often while another secondary starts on its host: that is not its pace.
            self._histories[replica.slice] = history
        elif replica.primary:
            self._histories[replica.slice] = observe(history, _observation(history, replica))
        elif replica.generation not in history.generations and replica.capabilities == ROWS[assignment.scheme]:
            size = replica.bytes_pulled
            self._histories[replica.slice] = started(
                history, replica.generation, replica.steps, fresh=True, bytes_read=size
            )
        self._measure(replica, protection, now)

    def _measure(self, replica: ReplicaStatus, protection: Scheme | None, now: float) -> None:
        key = (replica.slice, replica.generation)
        if key not in self._rates:
            self._forget_older(replica)
        since, before = self._rates.setdefault(key, (now, replica))
        passed = now - since
        if passed < RATE_S:
            return
        self._rates[key] = (now, replica)
        usage = self._usage(replica.slice)
        if replica.primary:
            usage = between(usage, before, replica, passed)
        elif protection is not None and before.capabilities == replica.capabilities:
            usage = secondary_share(usage, protection, max(0.0, replica.cpu_s - before.cpu_s) / passed)
        self._usages[replica.slice] = usage

    def _usage(self, slice_id: SliceId) -> Usage:
        return self._usages.get(slice_id, Usage(epoch_s=self._epoch_s))

    def _forget_older(self, replica: ReplicaStatus) -> None:
        """A new replica: of its slice, the last few before it may still be at work."""
        known = sorted(generation for name, generation in self._rates if name == replica.slice)
        for generation in known[:-RATES_KEPT]:
            del self._rates[replica.slice, generation]

    def measured(
        self, assignments: Iterable[Assignment], layout: Layout, around: Surroundings
    ) -> Mapping[SliceId, Measured]:
        """What is known of the slices with an objective, as they are placed now."""
        found: dict[SliceId, Measured] = {}
        for assignment in assignments:
            vertex, history = layout[assignment.slice.operator], self._histories.get(assignment.slice)
            if history is not None and vertex.recovery.objective_s is not None:
                history = self._histories[assignment.slice] = around.around(history, assignment, vertex)
                found[assignment.slice] = Measured(history, self._usage(assignment.slice))
        return found

    def loads(self) -> dict[SliceId, float]:
        """The CPU of primaries, where it was measured."""
        return {slice_id: usage.cpu for slice_id, usage in self._usages.items() if usage.cpu > 0}

    # -- predicting

    def failed(
        self, assignment: Assignment, vertex: Vertex, protection: Scheme, at: float, detect_s: float | None = None
    ) -> None:
        """A slice has lost its primary: what was predicted for this moment is kept beside what will happen.

        `detect_s`: how long that went unnoticed, if not as long as usual.
        """
        history = self._histories.get(assignment.slice)
        if history is not None and protection is not Scheme.NONE:
            found = estimate(history, vertex.recovery.guarantee, assignment.ship_every or vertex.recovery.ship_every)
            noticed = history.detect_s if detect_s is None else detect_s
            outlook = Outlook(protection, found, at, noticed, vertex.recovery.objective_s)
            self._outlooks[assignment.slice] = outlook

    def not_failed(self, slice_id: SliceId) -> None:
        """It was a false alarm, or the primary has come back."""
        self._outlooks.pop(slice_id, None)

    def back(self, slice_id: SliceId, steps: Steps) -> dict[str, float] | None:
        """The slice is back. Returns the steps that were predicted, None if too little was known."""
        outlook = self._outlooks.pop(slice_id, None)
        if outlook is None:
            return None
        away = 0.0 if steps.seamless else steps.done_at - steps.idle - outlook.lost_at + outlook.detect_s
        error = outlook.estimate.error(outlook.scheme, max(0.0, away), outlook.objective_s)
        if error is not None:
            self._histories[slice_id] = recovered(self._histories[slice_id], error)
            self._ended.append(Ended(slice_id, error, steps.done_at))
        predicted = outlook.estimate.steps[outlook.scheme]
        return None if predicted is None else {name: round(value, 3) for name, value in predicted.items()}

    def take_ended(self) -> tuple[Ended, ...]:
        """The recoveries that were over since this was last called."""
        ended, self._ended = tuple(self._ended), []
        return ended

    def shown(self, slice_id: SliceId, vertex: Vertex) -> dict[str, float | None]:
        """How long each scheme would take to bring a slice back, for people."""
        history = self._histories.get(slice_id)
        if history is None:
            return {}
        known = self._shown.get(slice_id)
        if known is None or known[0] is not history:
            found = estimate(history, vertex.recovery.guarantee, vertex.recovery.ship_every)
            predicted = {scheme: found.predicted_s(scheme) for scheme in found.steps}
            shown: dict[str, float | None] = {
                scheme: None if value is None else round(value, 3) for scheme, value in predicted.items()
            }
            # Read many times a second, and new only with every epoch.
            known = self._shown[slice_id] = (history, shown)
        return known[1]


def _observation(history: History, replica: ReplicaStatus) -> Observation:
    new = replica.shipped_to > history.shipped_to and replica.ship_bytes > 0
    shipped = Transfer(replica.ship_bytes, replica.ship_s) if new else None
    return Observation(replica, replica.shipped_to, replica.checkpoint_bytes or None, shipped)
