"""What the manager must not forget: facts of the run, assignments, and what decisions remember. Wraps the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from understudy.control.application.fusion import lay_out
from understudy.control.cluster.snapshot import Memory, Rebalance, Scaling
from understudy.control.schemes.objectives import Memory as ControllerMemory
from understudy.coordination.interface import StateStore
from understudy.model.branch import STABLE, Branch
from understudy.model.fingerprint import Fingerprint
from understudy.model.layout import Kind, Layout
from understudy.model.messages import Analysis, Failure, Hello
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme
from understudy.model.replication import ReplicaPlan
from understudy.model.run import Rhythm, RunSpec
from understudy.model.snapshot import Assignment, Move, Phase
from understudy.model.topology import Topology

KEPT_LOST = 1_000
"""Nodes that were given up and have not come back: so many are remembered by name."""


class RunMemory:
    """Every method that changes something writes it to the store before it returns.

    It has many attributes because it is the list of all facts of a run. `decisions` is what one decision hands to the
    next; of it, requests of people and the plan are written at once and the rest once a second.
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
        self.lost_together: dict[str, str] = store.fact("lost_together") or {}
        """Nodes that were given up with their whole domain, and its name."""
        self.replacements: int = store.fact("replacements") or 0
        self.grown: int = store.fact("grown") or 0
        """Nodes that were asked for in the course of the run."""
        self.diverged = {SliceId.parse(name) for name in store.fact("diverged") or ()}
        self.assignments = {assignment.slice: assignment for assignment in store.assignments()}
        # The report of a run that is over needs its layout too.
        began = self.phase is Phase.RUNNING or (self.phase.over and bool(self.operators))
        self.layout: Layout | None = self.lay_out(self.operators) if began else None
        self.decisions = _read_decisions(store)
        stored = store.fact("branch")
        self.branch = Branch.from_data(stored) if stored else None
        self.last_branch: int = store.fact("last_branch") or STABLE
        predicted = store.fact("fidelity")
        self.fidelity: tuple[float, float] | None = tuple(predicted) if predicted else None
        number, epochs = store.fact("tentative") or (STABLE, {})
        self._tentative: tuple[int, dict[str, int]] = (number, epochs)
        """The branch that was last heard of, and the newest epoch of every sink in it."""

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
        self.store.keep({"failure": failure.model_dump(mode="json")})

    # -- nodes

    def lose(self, nodes: Iterable[str], event: int, *, replace_them: bool, domain: str = "") -> None:
        """Nodes were given up, all of a `domain` or one; `event` is the number of the event that tells why."""
        for node in nodes:
            self.lost[node] = event
            self.replacements += replace_them
            if domain:
                self.lost_together[node] = domain
        while len(self.lost) > KEPT_LOST:
            del self.lost[next(iter(self.lost))]
        self.lost_together = {node: name for node, name in self.lost_together.items() if node in self.lost}
        if self.phase is Phase.CHECKING:
            self.phase = Phase.GATHERING
        self._keep_lost()

    def grow(self, nodes: int, age_s: float) -> None:
        """So many nodes more are to be started."""
        self.grown += nodes
        self.store.keep({"grown": self.grown, "scaled_at": age_s})

    def retire(self, node: str, age_s: float) -> None:
        """A node is to leave when it is empty. Also known to a manager that dies before the decision is remembered."""
        retiring = sorted({*(self.store.fact("retiring") or ()), node})
        self.store.keep({"retiring": retiring, "scaled_at": age_s})

    def _keep_lost(self) -> None:
        kept = {"lost": self.lost, "lost_together": self.lost_together, "replacements": self.replacements}
        self.store.keep(kept)

    def welcome_back(self, node: str) -> None:
        """A node joins. One that was given up was silent, not dead: no other node has to be started for it.

        One that was asked to check the topology is asked again: its answer may have been lost with its connection.
        """
        if self.phase is Phase.CHECKING and node == self.checked_by:
            self.phase = Phase.GATHERING
        if self.lost.pop(node, None) is not None:
            self.lost_together.pop(node, None)
            self.replacements = max(0, self.replacements - 1)
            self._keep_lost()

    def drain(self, hello: Hello, undo: bool, leaves_at: float | None = None) -> None:
        """`leaves_at`: the age of the run at which the node ends, if it was given notice."""
        kept: dict[str, int] = self.store.fact("draining") or {}
        leaving: dict[str, float] = self.store.fact("leaving") or {}
        kept = {name: pid for name, pid in kept.items() if name != hello.node}
        leaving = {name: at for name, at in leaving.items() if name in kept}
        if not undo:
            kept[hello.node] = hello.pid
            leaving |= {} if leaves_at is None else {hello.node: leaves_at}
        self.store.keep({"draining": kept, "leaving": leaving})

    def is_draining(self, hello: Hello) -> bool:
        """By process: a node that was started anew under its old name may work again."""
        return bool((self.store.fact("draining") or {}).get(hello.node) == hello.pid)

    def leaves_at(self, hello: Hello) -> float | None:
        """The age of the run at which a node ends that was given notice."""
        found: float | None = (self.store.fact("leaving") or {}).get(hello.node)
        return found if self.is_draining(hello) else None

    # -- slices

    def assign(self, assignment: Assignment) -> None:
        self.assignments[assignment.slice] = assignment
        self.store.assign(assignment)

    def set_branch(self, branch: Branch | None) -> None:
        """The tentative branch as it is from now on; None: it was dropped."""
        self.branch = branch
        if branch is not None:
            self.last_branch = branch.number
        self.store.keep({"branch": branch.to_data() if branch else None, "last_branch": self.last_branch})

    def predict_fidelity(self, predicted: tuple[float, float] | None) -> None:
        """What is predicted of the branch: output fidelity and internal completeness."""
        self.fidelity = predicted
        self.store.keep({"fidelity": predicted})

    def tentative_epoch(self, branch: int, sink: str) -> int:
        """The newest epoch that a sink has written in a branch, -1 if there is none."""
        number, epochs = self._tentative
        return int(epochs.get(sink, -1)) if number == branch else -1

    def deliver_tentative(self, branch: int, sink: str, epoch: int) -> None:
        number, epochs = self._tentative
        self._tentative = (branch, {**(epochs if number == branch else {}), sink: epoch})
        self.store.keep({"tentative": self._tentative})

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
        facts: dict[str, Any] = {}
        if decisions.requests != self.decisions.requests:
            facts["requests"] = {str(s): scheme for s, scheme in decisions.requests.items()}
        if decisions.plan != self.decisions.plan or decisions.held != self.decisions.held:
            facts["replica_plan"] = None if decisions.plan is None else decisions.plan.model_dump(mode="json")
            facts["held"] = sorted(str(s) for s in decisions.held)
        if decisions.moves != self.decisions.moves:
            facts["moves"] = {str(s): asdict(move) for s, move in decisions.moves.items()}
        if _kept(decisions.rebalance) != _kept(self.decisions.rebalance):
            facts["rebalance"] = _kept(decisions.rebalance)
        self.decisions = decisions
        if facts:
            self.store.keep(facts)


def _kept(rebalance: Rebalance) -> dict[str, Any]:
    """What a restarted manager must know: how much of a request is left, and what moved lately."""
    moved_at = {str(s): at for s, at in rebalance.moved_at.items()}
    return {"left": rebalance.left, "begun": rebalance.begun, "moved_at": moved_at}


def _read_rebalance(kept: Mapping[str, Any]) -> Rebalance:
    moved_at = {SliceId.parse(name): at for name, at in kept.get("moved_at", {}).items()}
    return Rebalance(kept.get("left", 0), kept.get("begun", 0), MappingProxyType(moved_at))


def _read_decisions(store: StateStore) -> Memory:
    requests = {SliceId.parse(name): Scheme(scheme) for name, scheme in (store.fact("requests") or {}).items()}
    moves = {SliceId.parse(name): Move(**move) for name, move in (store.fact("moves") or {}).items()}
    controller = ControllerMemory.from_data(store.fact("controller") or {})
    plan = store.fact("replica_plan")
    return Memory(
        controller,
        requests=MappingProxyType(requests),
        moves=MappingProxyType(moves),
        plan=None if plan is None else ReplicaPlan(**plan),
        held=frozenset(SliceId.parse(name) for name in store.fact("held") or ()),
        scaling=Scaling(changed_at=store.fact("scaled_at"), retiring=frozenset(store.fact("retiring") or ())),
        rebalance=_read_rebalance(store.fact("rebalance") or {}),
    )
