"""Replays a trace through the controller's own decisions, kills nodes, and counts what came of it. No Spark.

What is simulated is everything around the decision: how long changes of scheme and recoveries take
(`controller_machine`), and which checkpoints were shipped when a node died. The decisions are those of
`control.schemes.controller`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from understudy.control.schemes.controller import decide_schemes, remember_recovery
from understudy.control.schemes.costs import Usage, prices
from understudy.control.schemes.decisions import Decision, Why
from understudy.control.schemes.estimates import ACTIVE, PASSIVE
from understudy.control.schemes.history import Error, History, finished, recovered, started, transferred
from understudy.control.schemes.objectives import Memory, Watched
from understudy.model.capabilities import LADDER, ROWS, rank
from understudy.model.costs import RESOURCES
from understudy.model.messages import Steps
from understudy.model.recovery import Scheme
from understudy.simulate.controller_machine import MB, Actual, Situation, recover
from understudy.simulate.controller_result import Kill, Result, Study
from understudy.simulate.controller_trace import Trace

Floats = NDArray[np.float64]
TICKS = 2
"""Decisions an epoch: every 500 ms of epochs of a second."""
SHIPPING = 0.3
"""The share of an epoch that passes until a shipped checkpoint is complete."""
QUERY_BYTES = 200.0 * MB
FIRST = "the first secondary was still being set up"
STRONGER = "a stronger scheme was still being set up"
AGAIN = "after a failure, its new secondary was still being set up"
RECEIVED_BYTES, CHANGED_BYTES, PUBLISHED = 60.0, 17.0, 0.1
"""A row read, a row of state changed (measured), and rows written for each row read."""


def simulate(trace: Trace, study: Study, advance: Callable[[], None] = lambda: None) -> Result:
    """`advance` is called once an epoch."""
    world = _World(trace, study)
    for epoch in range(trace.epochs):
        world.finish(epoch)
        for tick in range(TICKS):
            world.tick((epoch + 1 + tick / TICKS) * trace.epoch_s, epoch)
        world.account(epoch)
        advance()
    return world.result()


class _World:
    def __init__(self, trace: Trace, study: Study) -> None:
        self._trace, self._study, self._machine = trace, study, study.machine
        self._rng = np.random.default_rng(np.random.SeedSequence(study.seed, spawn_key=(7,)))
        count = len(trace.slices)
        self._room = self._rng.random(count) < study.room
        self._histories = [self._first(name, bool(room)) for name, room in zip(trace.slices, self._room, strict=True)]
        self._memory = Memory()
        self._decisions: list[Decision] = []
        self._effective = np.full(count, PASSIVE)
        self._wanted = np.full(count, PASSIVE)
        self._interval = np.full(count, 5)
        self._ready_at = np.zeros(count)
        self._missing = [FIRST] * count
        self._generation = 1
        self._changes: list[list[float]] = [[] for _ in range(count)]
        self._seconds = np.zeros(len(LADDER))
        self._spent, self._active = np.zeros(len(RESOURCES)), np.zeros(len(RESOURCES))
        self._kills: list[Kill] = []
        span = max(2, trace.epochs - 1) * trace.epoch_s
        moments = np.sort(self._rng.uniform(trace.epoch_s, span, study.kills)).tolist()
        self._due = list(zip(moments, self._rng.integers(0, count, study.kills).tolist(), strict=True))
        self._ranks: list[float] = []
        self._margins: list[float] = []
        self._usages: list[Usage] = []

    def _first(self, name: str, room: bool) -> History:
        """What is known when a run begins: its nodes have started, and the primary on one of them."""
        detect = self._machine.detect_s[1] + 0.05
        history = History(name, quantile=self._study.quantile, detect_s=detect, free_node=room)
        for _ in range(2):
            history = replace(history, node=history.node.add(self._machine.new_node(self._rng), history.quantile))
        return started(history, 1, self._started(), fresh=True)

    def _started(self) -> Steps:
        machine, rng = self._machine, self._rng
        deploy, wire = machine.around(machine.fresh_s, rng), machine.around(machine.wire_s, rng)
        return Steps(deploy=deploy, wire_receive=wire, done=True)

    def finish(self, epoch: int) -> None:
        """Every primary has processed an epoch; those whose turn it is ship a checkpoint."""
        batches = self._trace.batch_s[epoch].tolist()
        sizes = self._trace.state_bytes[epoch].tolist()
        for number, history in enumerate(self._histories):
            history = finished(history, epoch, batches[number], sizes[number])
            if (epoch + 1) % int(self._interval[number]) == 0:
                shipped = self._machine.read(sizes[number], self._rng)
                history = transferred(history, epoch, shipped, None)
            self._histories[number] = history
        self._usages = self._measure(epoch)

    def _measure(self, epoch: int) -> list[Usage]:
        trace = self._trace
        cpu, rows = trace.cpu[epoch].tolist(), (trace.rows[epoch] / trace.epoch_s).tolist()
        return [
            Usage(
                busy, 0.0, rate * RECEIVED_BYTES, rate * PUBLISHED * RECEIVED_BYTES, rate * CHANGED_BYTES, trace.epoch_s
            )
            for busy, rate in zip(cpu, rows, strict=True)
        ]

    def tick(self, now: float, epoch: int) -> None:
        study = self._study
        while self._due and self._due[0][0] <= now:
            self._kill(*self._due.pop(0), epoch)
        arrived = (self._effective != self._wanted) & (self._ready_at <= now)
        self._effective = np.where(arrived, self._wanted, self._effective)
        watched = [
            Watched(history, usage, study.objective_s, study.guarantee)
            for history, usage in zip(self._histories, self._usages, strict=True)
        ]
        outcome = decide_schemes(watched, self._memory, study.settings, now)
        self._memory, self._decisions = outcome.memory, list(outcome.decisions)
        for number, decision in enumerate(outcome.decisions):
            if decision.changed:
                self._change(number, decision, now)
        if outcome.figures is not None:
            self._margins.append(float(np.nanmean(np.nanmax(outcome.figures.margins, axis=1))))

    def _change(self, number: int, decision: Decision, now: float) -> None:
        """Down is at once; up takes until the secondary is there, and until then the weaker of the two protects."""
        self._changes[number].append(now)
        self._interval[number] = decision.ship_every
        wanted, before = rank(decision.scheme), int(self._effective[number])
        self._wanted[number] = wanted
        self._effective[number] = min(wanted, before)
        self._ready_at[number] = now + (self._set_up(number, before, wanted) if wanted > before else 0.0)
        if len(self._changes[number]) > 1:
            self._missing[number] = STRONGER

    def _set_up(self, number: int, before: int, wanted: int) -> float:
        """Brings the secondary up, which shows how long deploying and loading take."""
        had, gets, history = ROWS[LADDER[before]], ROWS[LADDER[wanted]], self._histories[number]
        taken = 0.0
        if gets.deployed and not had.deployed:
            self._generation += 1
            steps = self._started()
            history, taken = started(history, self._generation, steps, fresh=True), steps.deploy
        if gets.synced and not had.synced:
            loaded = self._machine.load(history.state_bytes, self._rng)
            history, taken = transferred(history, None, None, loaded), taken + loaded.seconds
        self._histories[number] = history
        return taken

    def _kill(self, at: float, number: int, epoch: int) -> None:
        history, trace = self._histories[number], self._trace
        if not self._decisions:
            return
        decision = self._decisions[number]
        scheme = LADDER[int(self._effective[number])]
        established = scheme is decision.scheme
        shipped = history.shipped_to
        if self._rng.random() < SHIPPING and shipped == epoch:
            shipped -= int(self._interval[number])
        batches = trace.batch_s[max(0, shipped + 1) : min(epoch + 2, trace.epochs), number]
        state = float(trace.state_bytes[min(epoch + 1, trace.epochs - 1), number])
        situation = Situation(scheme, self._study.guarantee, state, batches, bool(self._room[number]))
        actual = recover(self._machine, situation, self._rng)
        predicted = decision.totals[rank(scheme)]
        late = actual.total > decision.objective_s
        cause = (_cause(decision) if established else self._missing[number]) if late else ""
        self._kills.append(
            Kill(history.slice, at, scheme, established, predicted, actual.total, decision.objective_s, cause)
        )
        self._learn(number, scheme, predicted, actual, at)

    def _learn(self, number: int, scheme: Scheme, predicted: float, actual: Actual, at: float) -> None:
        history, objective = self._histories[number], self._study.objective_s
        raw = predicted / history.row[-len(LADDER) + rank(scheme)]
        error = Error(scheme, raw, predicted, actual.total, objective)
        history = recovered(history, error)
        if actual.deploy:
            self._generation += 1
            steps = Steps(deploy=actual.deploy, wire_receive=actual.wire, done=True)
            fresh = scheme is Scheme.PASSIVE_REPLICATION and bool(self._room[number])
            if fresh or scheme is Scheme.DEPLOYED:
                history = started(history, self._generation, steps, fresh=fresh)
        self._histories[number] = history
        self._memory = remember_recovery(self._memory, history.slice, error, self._study.settings, at)
        # The secondary has become the primary: until there is another, a checkpoint is all there is.
        wanted = int(self._wanted[number])
        self._missing[number] = AGAIN
        self._effective[number] = PASSIVE
        self._ready_at[number] = at + actual.total + self._set_up(number, PASSIVE, wanted)

    def account(self, epoch: int) -> None:
        trace = self._trace
        found = prices(self._usages)
        # While a change is under way, both its ends are paid for.
        paid = np.maximum(self._effective, self._wanted)
        rows = np.arange(len(paid))
        flow = trace.rows[epoch] * RECEIVED_BYTES * (1.0 + PUBLISHED)
        bases = (trace.cpu[epoch], trace.state_bytes[epoch] + QUERY_BYTES, flow, np.ones(len(paid)))
        for index, (name, base) in enumerate(zip(RESOURCES, bases, strict=True)):
            share: Floats = getattr(found, name)
            self._spent[index] += float((share[rows, paid] * base).sum())
            self._active[index] += float((share[:, ACTIVE] * base).sum())
        self._seconds += np.bincount(self._effective, minlength=len(LADDER)) * trace.epoch_s
        self._ranks.append(float(self._effective[0]))

    def result(self) -> Result:
        trace = self._trace
        gaps = [float(gap) for times in self._changes for gap in np.diff(times)]
        timeline = (trace.rows[:, 0] / trace.epoch_s, trace.state_bytes[:, 0], np.array(self._ranks))
        return Result(
            study=self._study,
            origin=trace.origin,
            slices=len(trace.slices),
            seconds=trace.epochs * trace.epoch_s,
            shares=dict(zip(LADDER, (self._seconds / self._seconds.sum()).tolist(), strict=True)),
            costs=dict(zip(RESOURCES, (self._spent / self._active).tolist(), strict=True)),
            kills=tuple(self._kills),
            changes=sum(map(len, self._changes)),
            closest_changes_s=min(gaps, default=None),
            margins=(self._margins[0], self._margins[-1]),
            timeline=timeline,
        )


def _cause(decision: Decision) -> str:
    if decision.why is Why.UNREACHABLE:
        return "nothing keeps this objective"
    if decision.why is Why.COOL_DOWN:
        return "a stronger scheme waited for the cool-down"
    return "a step took longer than it ever had"
