"""What the manager remembers of every slice: predictions are made from it, and the controller decides by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from understudy.control.cluster.secondaries import strongest
from understudy.control.schemes.controller import decide_schemes, remember_recovery
from understudy.control.schemes.costs import Usage, between, secondary_share
from understudy.control.schemes.decisions import Decision
from understudy.control.schemes.estimates import Estimate, estimate
from understudy.control.schemes.history import History, Observation, observe, recovered, started
from understudy.control.schemes.objectives import Memory, Settings, Watched
from understudy.control.schemes.series import Transfer
from understudy.model.capabilities import ROWS
from understudy.model.config import DEFAULTS, ControllerSection
from understudy.model.costs import Costs
from understudy.model.layout import Vertex
from understudy.model.messages import ReplicaStatus, Steps
from understudy.model.recovery import Scheme
from understudy.model.snapshot import Assignment

RATE_S = 2.0
WARM_S = 4.0
RATES_KEPT = 8
"""Replicas of a slice whose rates are followed."""


@dataclass(frozen=True)
class Surroundings:
    """What a slice's recovery depends on besides itself."""

    detect_s: float
    neighbours: int
    free_node: bool


@dataclass(frozen=True)
class Outlook:
    """A prediction that waits for what happens."""

    scheme: Scheme
    estimate: Estimate
    lost_at: float
    detect_s: float
    objective_s: float | None


class Steering:
    def __init__(
        self,
        costs: Costs,
        epoch_s: float,
        saved: Mapping[str, Any] | None = None,
        section: ControllerSection = DEFAULTS.controller,
    ) -> None:
        self._settings = Settings.of(section, costs)
        self._epoch_s = epoch_s
        self._memory = Memory.from_data(saved or {})
        self._histories: dict[str, History] = {}
        self._usages: dict[str, Usage] = {}
        self._rates: dict[tuple[str, int], tuple[float, ReplicaStatus]] = {}
        self._outlooks: dict[str, Outlook] = {}
        self._shown: dict[str, tuple[History, dict[str, float | None]]] = {}
        self._decided: float | None = None
        self.decisions: dict[str, Decision] = {}

    def dump(self) -> dict[str, Any]:
        return self._memory.to_data()

    # -- hearing

    def hear(self, replica: ReplicaStatus, assignment: Assignment, protection: Scheme | None, now: float) -> None:
        """With every heartbeat, of the primary and of the secondary."""
        history = self._histories.get(replica.slice, History(replica.slice))
        if replica.primary and replica.up_s < WARM_S:
            # It compiles its code, beside a machine that brings up another secondary: that is not its pace.
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
        usage = self._usages.get(replica.slice, Usage(epoch_s=self._epoch_s))
        if replica.primary:
            usage = between(usage, before, replica, passed)
        elif protection is not None and before.capabilities == replica.capabilities:
            usage = secondary_share(usage, protection, max(0.0, replica.cpu_s - before.cpu_s) / passed)
        self._usages[replica.slice] = usage

    def _forget_older(self, replica: ReplicaStatus) -> None:
        """A new replica: of its slice, the last few before it may still be at work."""
        known = sorted(generation for name, generation in self._rates if name == replica.slice)
        for generation in known[:-RATES_KEPT]:
            del self._rates[replica.slice, generation]

    # -- predicting

    def failed(
        self, assignment: Assignment, vertex: Vertex, protection: Scheme, at: float, detect_s: float | None = None
    ) -> None:
        """A slice has lost its primary: what was predicted for this moment is kept beside what will happen.

        `detect_s`: how long that went unnoticed, if not as long as usual.
        """
        name = str(assignment.slice)
        history = self._histories.get(name)
        if history is not None and protection is not Scheme.NONE:
            found = estimate(history, vertex.recovery.guarantee, assignment.ship_every or vertex.recovery.ship_every)
            noticed = history.detect_s if detect_s is None else detect_s
            self._outlooks[name] = Outlook(protection, found, at, noticed, vertex.recovery.objective_s)

    def not_failed(self, slice_name: str) -> None:
        """It was a false alarm, or the primary has come back."""
        self._outlooks.pop(slice_name, None)

    def back(self, slice_name: str, steps: Steps) -> dict[str, float] | None:
        """The slice is back: answers the steps that were predicted, None if too little was known."""
        outlook = self._outlooks.pop(slice_name, None)
        if outlook is None:
            return None
        history = self._histories[slice_name]
        away = 0.0 if steps.seamless else steps.done_at - steps.idle - outlook.lost_at + outlook.detect_s
        error = outlook.estimate.error(outlook.scheme, max(0.0, away), outlook.objective_s)
        if error is not None:
            self._histories[slice_name] = recovered(history, error)
            self._memory = remember_recovery(self._memory, slice_name, error, self._settings, steps.done_at)
        predicted = outlook.estimate.steps[outlook.scheme]
        return None if predicted is None else {name: round(value, 3) for name, value in predicted.items()}

    def outlook(self, slice_name: str, vertex: Vertex) -> dict[str, float | None]:
        """How long each scheme would take to bring a slice back."""
        history = self._histories.get(slice_name)
        if history is None:
            return {}
        known = self._shown.get(slice_name)
        if known is None or known[0] is not history:
            found = estimate(history, vertex.recovery.guarantee, vertex.recovery.ship_every)
            predicted = {scheme: found.predicted_s(scheme) for scheme in found.steps}
            shown: dict[str, float | None] = {
                scheme: None if value is None else round(value, 3) for scheme, value in predicted.items()
            }
            # Asked for many times a second, and new only with every epoch.
            known = self._shown[slice_name] = (history, shown)
        return known[1]

    # -- deciding

    def decide(self, watched: Iterable[tuple[Assignment, Vertex, Surroundings]], now: float) -> tuple[Decision, ...]:
        """The changes the controller asks for, at most every `controller.every_s`."""
        if self._decided is not None and now - self._decided < self._settings.every_s:
            return ()
        self._decided = now
        slices = [self._watched(*one) for one in watched]
        outcome = decide_schemes([one for one in slices if one is not None], self._memory, self._settings, now)
        self._memory = outcome.memory
        self.decisions = {decision.slice: decision for decision in outcome.decisions}
        return outcome.changes

    def _watched(self, assignment: Assignment, vertex: Vertex, around: Surroundings) -> Watched | None:
        name, objective = str(assignment.slice), vertex.recovery.objective_s
        history = self._histories.get(name)
        if history is None or objective is None:
            return None
        history = replace(
            history,
            detect_s=around.detect_s,
            neighbours=around.neighbours,
            free_node=around.free_node,
            ship_every=assignment.ship_every or vertex.recovery.interval(assignment.scheme),
            refresh_every=vertex.recovery.refresh_every,
        )
        self._histories[name] = history
        usage = self._usages.get(name, Usage(epoch_s=self._epoch_s))
        guarantee, recovery = vertex.recovery.guarantee, vertex.recovery
        most = strongest(vertex, assignment.passive)
        return Watched(history, usage, objective, guarantee, most, recovery.ship_every)


def _observation(history: History, replica: ReplicaStatus) -> Observation:
    new = replica.shipped_to > history.shipped_to and replica.ship_bytes > 0
    shipped = Transfer(replica.ship_bytes, replica.ship_s) if new else None
    return Observation(replica, replica.shipped_to, replica.checkpoint_bytes or None, shipped)
