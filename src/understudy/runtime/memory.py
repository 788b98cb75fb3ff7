"""What the manager must not forget: facts of the run, assignments, and what decisions remember. Wraps the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from understudy.control.application.fusion import lay_out
from understudy.control.cluster.snapshot import Memory
from understudy.control.schemes.objectives import Memory as ControllerMemory
from understudy.coordination.interface import StateStore
from understudy.model.fingerprint import Fingerprint
from understudy.model.layout import Kind, Layout
from understudy.model.messages import Analysis, Failure, Hello
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme
from understudy.model.run import Rhythm, RunSpec
from understudy.model.snapshot import Assignment, Phase
from understudy.model.topology import Topology

KEPT_LOST = 1_000
"""Nodes that were given up and have not come back: so many are remembered by name."""


class RunMemory:
    """Every method that changes something writes it to the store before it returns.

    It has many attributes because it is the list of all facts of a run. `decisions` is what one decision hands to the
    next; of it, requests of people are written at once and the rest once a second.
    """

    def __init__(self, store: StateStore, topology: Topology, wall: Callable[[], float]) -> None:
        self.store, self.topology, self._wall = store, topology, wall
        self.run = RunSpec(**store.fact("run"))
        self.phase = Phase(store.fact("phase") or Phase.GATHERING)
        self.checked_by: str | None = None
        """The node that was asked to check the topology."""
        self.operators = {k: Analysis(**v) for k, v in (store.fact("operators") or {}).items()}
        self.rhythm = Rhythm(**store.fact("rhythm")) if store.fact("rhythm") else None
        self.goal: int | None = store.fact("goal")
        self.failure = Failure(**store.fact("failure")) if store.fact("failure") else None
        self.lost: dict[str, int] = store.fact("lost") or {}
        self.replacements: int = store.fact("replacements") or 0
        self.diverged = {SliceId.parse(name) for name in store.fact("diverged") or ()}
        self.assignments = {assignment.slice: assignment for assignment in store.assignments()}
        # The report of a run that is over needs its layout too.
        began = self.phase is Phase.RUNNING or (self.phase.over and bool(self.operators))
        self.layout: Layout | None = self.lay_out(self.operators) if began else None
        self.decisions = _read_decisions(store)

    # -- the life of the run

    def lay_out(self, operators: Mapping[str, Analysis]) -> Layout:
        return lay_out(self.topology, {name: value.stateful for name, value in operators.items()})

    def begin(self, operators: Mapping[str, Analysis], layout: Layout, found: Fingerprint) -> Rhythm:
        """Data flows from now on, from the first epoch that not every sink has delivered."""
        now = self._wall()
        self.operators, self.layout, self.phase = dict(operators), layout, Phase.RUNNING
        first = min(self.delivered().values(), default=0)
        self.rhythm = Rhythm(epoch=first, time=now, epoch_s=self.topology.epoch_s, fast=self.run.fast)
        self.store.keep(
            {
                "operators": {name: value.model_dump() for name, value in operators.items()},
                "fingerprint": found,
                "rhythm": self.rhythm.model_dump(),
                "phase": self.phase,
                "began_at": self.store.fact("began_at") or now,
                "running_since": now,
            }
        )
        return self.rhythm

    def set_goal(self, epochs: int) -> None:
        self.goal = epochs
        self.store.keep({"goal": epochs})

    def end(self, phase: Phase, facts: Mapping[str, Any]) -> None:
        self.phase = phase
        self.store.keep({"phase": phase, "ended_at": self._wall(), **facts})

    def fail(self, failure: Failure) -> None:
        """The run has failed, whether or not that can be written down."""
        self.failure, self.phase = failure, Phase.FAILED
        self.store.keep({"failure": failure.model_dump()})

    # -- nodes

    def lose(self, node: str, event: int, *, replace_it: bool) -> None:
        """A node was given up; `event` is the number of the event that tells why."""
        self.lost[node] = event
        while len(self.lost) > KEPT_LOST:
            del self.lost[next(iter(self.lost))]
        if self.phase is Phase.CHECKING:
            self.phase = Phase.GATHERING
        self.replacements += replace_it
        self.store.keep({"lost": self.lost, "replacements": self.replacements})

    def welcome_back(self, node: str) -> None:
        """A node joins. One that was given up was silent, not dead: no other node has to be started for it.

        One that was asked to check the topology is asked again: its answer may have been lost with its connection.
        """
        if self.phase is Phase.CHECKING and node == self.checked_by:
            self.phase = Phase.GATHERING
        if self.lost.pop(node, None) is not None:
            self.replacements = max(0, self.replacements - 1)
            self.store.keep({"lost": self.lost, "replacements": self.replacements})

    def drain(self, hello: Hello, undo: bool) -> None:
        kept: dict[str, int] = self.store.fact("draining") or {}
        kept = {name: pid for name, pid in kept.items() if name != hello.node}
        self.store.keep({"draining": kept if undo else kept | {hello.node: hello.pid}})

    def is_draining(self, hello: Hello) -> bool:
        """By process: a node that was started anew under its old name may work again."""
        return bool((self.store.fact("draining") or {}).get(hello.node) == hello.pid)

    # -- slices

    def assign(self, assignment: Assignment) -> None:
        self.assignments[assignment.slice] = assignment
        self.store.assign(assignment)

    def kind(self, slice_id: SliceId) -> Kind | None:
        return None if self.layout is None else self.layout[slice_id.operator].kind

    def diverge(self, slice_id: SliceId) -> bool:
        """Two replicas of a slice disagreed. Returns whether that is new."""
        if slice_id in self.diverged:
            return False
        self.diverged.add(slice_id)
        self.store.keep({"diverged": sorted(str(one) for one in self.diverged)})
        return True

    def delivered(self) -> dict[str, int]:
        """Epochs that every sink has delivered without a gap."""
        return {sink.name: self.store.delivered(sink.name) for sink in self.topology.sinks}

    # -- what decisions remember

    def remember(self, decisions: Memory) -> None:
        changed = decisions.requests != self.decisions.requests
        self.decisions = decisions
        if changed:
            self.store.keep({"requests": {str(s): scheme for s, scheme in decisions.requests.items()}})


def _read_decisions(store: StateStore) -> Memory:
    requests = {SliceId.parse(name): Scheme(scheme) for name, scheme in (store.fact("requests") or {}).items()}
    controller = ControllerMemory.from_data(store.fact("controller") or {})
    return replace(Memory(), controller=controller, requests=MappingProxyType(requests))
