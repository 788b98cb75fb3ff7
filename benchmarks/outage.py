"""One run for `fidelity.py`: a node with all slices outside a plan is frozen, long enough to see what the rest makes.

The slices of the plan are moved to one node, all others to the other one, which is then frozen and never given up. So
exactly the plan is left, for as long as is wanted. For a branch that is the same as planned slices that were taken over
by their secondaries, which `correlated.py` measures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fidelity_points import Outage, Plan, Run, arranged, fold
from scratch import scratch

import understudy as us
from understudy.coordination.sqlite import SqliteStore
from understudy.model.replication import ReplicationState
from understudy.model.view import RunState, SliceState
from understudy.runtime import faults
from understudy.runtime.client import Client
from understudy.runtime.launcher import Launcher
from understudy.testing.cluster import run

EXAMPLES = Path(__file__).parents[1] / "examples"
TENTATIVE_AFTER = "2 s"
"""The outage is as long as wanted, so there is no hurry; a busy machine shall not cause branches of its own."""
SLACK = 2
"""Epochs that the outage goes on after the last that is looked at: a row may come in a later epoch than usual."""
QUIET_S = 8.0
"""Without a branch and without a new epoch for so long, nothing comes any more."""
AGAIN_S = 5.0
"""A move that was given up is asked for again after so long."""
PATIENCE_S = 150.0
"""And so long is waited for anything else: the next tentative epoch, moves, the stable output."""

Step = Callable[[RunState, Launcher], Any]
"""Looks at the run; returns the next step when its time has come, None before."""


@dataclass(frozen=True)
class Query:
    """`settle`: epochs after the failure until a tentative epoch holds nothing from before; `look`: those that are
    looked at then; `rated`: epochs until rates are measured."""

    name: str
    example: str
    sink: str
    directory: str
    settings: Mapping[str, str]
    settle: int
    look: int
    rated: int = 14

    @property
    def app(self) -> Path:
        return EXAMPLES / self.example / "app.py"


@dataclass(frozen=True)
class Ended:
    """What a run has shown, and the planning problem with the rates that it measured before the failure."""

    run: Run
    problem: dict[str, Any]


def measure(query: Query, plan: Plan, *, run_in: int) -> Ended:
    """Runs a query until `run_in` epochs are delivered, then without what the plan does not name, then to its end.

    Raises SystemExit if the stable output is not exact.
    """
    began = time.monotonic()
    with scratch() as home:
        script = Script(query, plan, home / "out" / query.directory, run_in)
        try:
            report = run(
                query.app,
                home,
                nodes=2,
                plan=(),
                fast=False,
                backlog=1000,
                misses=10_000,
                master="local[2]",
                scheme="passive_replication",
                primaries_first=False,
                settings={**query.settings, "tentative_after": TENTATIVE_AFTER},
                drive=script,
            )
        finally:
            script.release()
        if report.verdict != "exact":
            raise SystemExit(f"{query.name} with {plan}: {report.verdict}: {report.failure}")
        stable = {one.epoch: lines(one.path) for one in us.sinks.epochs(home / "out" / query.directory)}
        digests = tuple(one.digest for one in SqliteStore(home / "manager.db").receipts(query.sink))
    told = [one for one in report.tentative.epochs if one.sink == query.sink]
    figures = fold(query.name, plan, script.seen(stable), told)
    known = replace(
        figures,
        first_output_s=min((one.after_failure_s or 0.0 for one in told if one.epoch in script.shown), default=None),
        seconds=round(time.monotonic() - began, 1),
        digests=digests,
    )
    return Ended(known, script.problem)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


class Script:
    """What happens in the run: each step waits for how things stand, does something and names the next one."""

    def __init__(self, query: Query, plan: Plan, directory: Path, run_in: int) -> None:
        self._query, self._plan, self._directory, self._run_in = query, plan, directory, run_in
        self._step: Step = self._arrange
        self._since = time.monotonic()
        self._frozen: int | None = None
        self._lost, self._wanted, self._moved_at = "", dict[str, str](), 0.0
        self._first = self._newest = self._delivered = -1
        self._forked = False
        self.shown: dict[int, list[str]] = {}
        self.problem: dict[str, Any] = {}

    def __call__(self, state: RunState, launcher: Launcher) -> None:
        following = self._step(state, launcher)
        if following is not None:
            self._step, self._since = following, time.monotonic()
        elif self._waited_s > PATIENCE_S:
            raise SystemExit(f"{self._query.name} with {self._plan}: waited in vain, {self._standing(state)}")

    def release(self) -> None:
        """Thaws the node if it is frozen, however the run ends."""
        if self._frozen is not None:
            faults.thaw(self._frozen)
            self._frozen = None

    def seen(self, stable: Mapping[int, list[str]]) -> Outage:
        settled = self._first + self._query.settle
        until = settled + self._query.look
        return Outage(self._first, settled, until, stable, self.shown, self._delivered, self._forked)

    @property
    def _waited_s(self) -> float:
        return time.monotonic() - self._since

    # -- the steps

    def _arrange(self, state: RunState, launcher: Launcher) -> Step | None:
        """When data flows, slices that are on the wrong node are moved."""
        if state.epoch < 1 or not is_well(state):
            return None
        placed = {one.slice: one.primary for one in state.slices}
        tasks = [one.slice for one in state.slices if one.kind != "sink"]
        self._lost, moves = arranged(placed, tasks, self._plan, sorted(node.name for node in state.nodes))
        self._wanted = placed | moves
        self._move(moves, launcher)
        return self._lose

    def _move(self, slices: Iterable[str], launcher: Launcher) -> None:
        self._moved_at = time.monotonic()
        for name in slices:
            launcher.inject(f"move:{name}={self._wanted[name]}")

    def _lose(self, state: RunState, launcher: Launcher) -> Step | None:
        """When they are there and work, the rates are read and the node is frozen."""
        elsewhere = [one for one in state.slices if one.primary != self._wanted[one.slice] or one.moving is not None]
        if elsewhere:
            # On a full machine a move may be given up.
            if all(one.moving is None for one in elsewhere) and time.monotonic() - self._moved_at > AGAIN_S:
                self._move([one.slice for one in elsewhere], launcher)
            return None
        if not is_well(state) or state.epoch < self._run_in:
            return None
        client = Client(launcher.url)
        self.problem = ReplicationState.model_validate_json(client.get("/api/v1/replication")).problem
        client.close()
        self._frozen = next(node.pid for node in state.nodes if node.name == self._lost)
        faults.freeze(self._frozen)
        # What the lost slices have published is not missing, however far the sink is behind them.
        made = [one.epoch + 1 for one in state.slices if self._wanted[one.slice] == self._lost]
        self._first = max([state.epoch, *made])
        return self._look

    def _look(self, state: RunState, _launcher: Launcher) -> Step | None:
        """When enough epochs are there, or nothing comes any more, the sink is read as its readers do."""
        self._forked = self._forked or self._lacks_what_is_lost(state)
        found = us.sinks.epochs(self._directory)
        if found and found[-1].epoch > self._newest:
            self._newest, self._since = found[-1].epoch, time.monotonic()
        goal = self._first + self._query.settle + self._query.look + SLACK
        if self._newest < goal and self._waited_s < (PATIENCE_S if self._forked else QUIET_S):
            return None
        self.shown = {one.epoch: lines(one.path) for one in found if one.tentative}
        self._delivered = sum(not one.tentative for one in found)
        self.release()
        return self._finish

    def _lacks_what_is_lost(self, state: RunState) -> bool:
        """Whether there is a branch without a slice of the lost node; one may be open for another reason before."""
        return state.branch is not None and any(self._wanted.get(one) == self._lost for one in state.branch.missing)

    def _finish(self, _state: RunState, launcher: Launcher) -> Step | None:
        """The run ends when the stable output has all epochs that are cut by now, and so has replaced the tentative."""
        return self._end if launcher.finish() else None

    def _end(self, _state: RunState, _launcher: Launcher) -> Step | None:
        return None

    def _standing(self, state: RunState) -> str:
        """What to say when the time for a step is over."""
        slices = [
            f"{one.slice} {one.state} on {one.primary}{' (moving)' if one.moving else ''}" for one in state.slices
        ]
        branch = "no branch" if state.branch is None else str(state.branch)
        return f"in {self._step.__name__} at epoch {state.epoch}: {', '.join(slices)}; {branch}"


def is_well(state: RunState) -> bool:
    operators: list[SliceState] = [one for one in state.slices if one.kind == "operator"]
    return bool(operators) and all(one.state == "running" for one in operators)
