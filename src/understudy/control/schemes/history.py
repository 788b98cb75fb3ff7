"""What is remembered of a slice: how long the steps of a recovery took, and how good the predictions were.

A history is a value. Every observation makes a new one, so that a decision never sees half of an update.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from understudy.control.schemes.series import NOTHING, UNSEEN, Series, Transfer, Transfers
from understudy.model.capabilities import LADDER, rank
from understudy.model.messages import ReplicaStatus, Steps
from understudy.model.recovery import Scheme

WIRE_S = 0.1
"""Until wiring was seen: announcing an epoch, or publishing the few bags of a spool, within a heartbeat."""
BATCHES = 3
"""The first batches compile code; before so many were seen, nothing is known of a slice's pace."""
HORIZON = 5
"""Epochs for which a forecast has to hold: what outgrows it faster than a cool-down passes comes as a surprise."""
FACTOR_LIMIT = 3.0
ERRORS_KEPT = 64
GENERATIONS_KEPT = 64
"""Replicas whose start is known to be counted; older ones are gone."""
NO_FACTORS = (1.0,) * len(LADDER)


@dataclass(frozen=True)
class Error:
    """One prediction and what came of it. `raw_s` is the sum of the predicted steps, before any correction."""

    scheme: Scheme
    raw_s: float
    predicted_s: float
    actual_s: float
    objective_s: float | None = None

    @property
    def ratio(self) -> float:
        """Predicted over actual: below 1 the slice was back later than predicted."""
        return self.predicted_s / self.actual_s if self.actual_s > 0 else 1.0

    @property
    def broken(self) -> bool:
        return self.objective_s is not None and self.actual_s > self.objective_s


@dataclass(frozen=True)
class History:
    """Of one slice. Times in seconds; `quantile` 1 takes the worst ever seen in the window, as Martin 2015 does.

    `start`: a warm session that knows the operator starts its query. `fresh`: the same on a node that never saw the
    operator (plan, code generation). `node`: a new node comes up. `read`: a shipped checkpoint is brought from the
    store. `load`: state is brought from local files into memory. `batch`: an epoch is processed. `detect_s`: from a
    failure to its being noticed. `neighbours`: other slices that would recover on the same node at the same time, which
    has `cores`.
    """

    slice: str
    quantile: float = 1.0
    start: Series = NOTHING
    fresh: Series = NOTHING
    node: Series = NOTHING
    wire_receive: Series = NOTHING
    wire_send: Series = NOTHING
    read: Transfers = UNSEEN
    load: Transfers = UNSEEN
    batch: Series = NOTHING
    batch_jump: Series = NOTHING
    state_jump: Series = NOTHING
    forecasts: tuple[tuple[float, float], ...] = ()
    checkpoint_bytes: float = 0.0
    state_bytes: float = 0.0
    epoch: int = -1
    shipped_to: int = -1
    ship_every: int = 1
    refresh_every: int = 1
    detect_s: float = 0.5
    neighbours: int = 0
    cores: int = 1
    free_node: bool = True
    source: bool = False
    generations: frozenset[int] = frozenset()
    errors: tuple[Error, ...] = ()
    row: tuple[float, ...] = field(init=False, repr=False, compare=False)
    """The figures estimates are made of, in the order of `estimates.COLUMNS`."""

    @property
    def behind(self) -> int:
        """Epochs that were processed and are not in the last shipped checkpoint."""
        return max(0, self.epoch - self.shipped_to)

    def __post_init__(self) -> None:
        # Here and not when it is asked for: what a heartbeat pays is not paid by the tick that looks at all slices.
        object.__setattr__(self, "row", _row(self))


def _row(history: History) -> tuple[float, ...]:
    batch, load = history.batch, history.load
    if not load.known:
        load = history.read
    neighbours = (1 + history.neighbours) / history.cores
    late = history.epoch - history.shipped_to - history.ship_every - 1
    return (
        history.detect_s,
        history.start.high if history.start.values else history.fresh.high,
        history.fresh.high if history.free_node else history.fresh.high + history.node.high,
        history.wire_receive.high if history.wire_receive.values else WIRE_S,
        history.wire_send.high if history.wire_send.values else WIRE_S,
        _transfer_s(load, history.state_bytes),
        _transfer_s(history.read, history.checkpoint_bytes),
        batch.high if len(batch.values) >= BATCHES else math.nan,
        float(late) if late > 0 else 0.0,
        float(history.refresh_every),
        neighbours if neighbours > 1.0 else 1.0,
        1.0 if history.source else 0.0,
        history.batch_jump.high if history.batch_jump.values else 0.0,
        _jump_s(load, history),
        _jump_s(history.read, history),
        *(_factors(history.errors) if history.errors else NO_FACTORS),
    )


def _transfer_s(transfers: Transfers, size: float) -> float:
    """What has no size takes no time, even if nothing was ever transferred."""
    return transfers.seconds(size) if size > 0 or transfers.known else 0.0


def _jump_s(transfers: Transfers, history: History) -> float:
    """How much longer the state would take if it jumped once more as it did lately; unknown times stay unknown."""
    jump = history.state_jump.high if history.state_jump.values else 0.0
    if jump <= 0:
        return 0.0
    return transfers.seconds(history.state_bytes + jump) - transfers.seconds(history.state_bytes)


def _factors(errors: tuple[Error, ...]) -> tuple[float, ...]:
    """By how much recoveries of each scheme took longer than the sum of their predicted steps, at worst."""
    worst = list(NO_FACTORS)
    for error in errors:
        if error.raw_s > 0 and error.scheme is not Scheme.NONE:
            ratio = min(error.actual_s / error.raw_s, FACTOR_LIMIT)
            worst[rank(error.scheme)] = max(worst[rank(error.scheme)], ratio)
    return tuple(worst)


@dataclass(frozen=True)
class Observation:
    """What a tick learned of a primary, beyond its status. `shipped` and `loaded` only if they are new.

    `checkpoint_bytes`: what a restore would read. Left out, it is the size of the state.
    """

    status: ReplicaStatus
    shipped_to: int | None = None
    checkpoint_bytes: int | None = None
    shipped: Transfer | None = None
    loaded: Transfer | None = None


def observe(history: History, seen: Observation) -> History:
    """Called with every heartbeat of the primary; without a new epoch, start or transfer it returns the same value."""
    status = seen.status
    if status.epoch > history.epoch:
        history = finished(history, status.epoch, status.batch_s, status.state_bytes, seen.checkpoint_bytes)
    history = transferred(history, seen.shipped_to, seen.shipped, seen.loaded)
    if status.steps.done and status.generation not in history.generations:
        # The first replica of all starts where nobody knew the operator.
        return started(history, status.generation, status.steps, fresh=not history.generations)
    return history


def finished(
    history: History, epoch: int, batch_s: float, state_bytes: float, checkpoint_bytes: float | None = None
) -> History:
    """The primary has processed an epoch."""
    batch = history.batch.add(batch_s, history.quantile)
    # A load that comes and goes within the window is no surprise, because the slowest batch counts anyway; one that
    # outgrows what was expected a few epochs ago is. The first batches compile code and say nothing of the load.
    steady = len(batch.values) > BATCHES
    batch_jump = batch_s - min((expected for expected, _ in history.forecasts), default=batch_s)
    state_jump = state_bytes - min((expected for _, expected in history.forecasts), default=state_bytes)
    return replace(
        history,
        epoch=epoch,
        batch=batch,
        forecasts=(*history.forecasts, (batch.high, float(state_bytes)))[-HORIZON:] if steady else (),
        batch_jump=history.batch_jump.add(max(0.0, batch_jump), history.quantile),
        state_jump=history.state_jump.add(max(0.0, state_jump), history.quantile),
        state_bytes=float(state_bytes),
        checkpoint_bytes=float(state_bytes if checkpoint_bytes is None else checkpoint_bytes),
    )


def transferred(history: History, shipped_to: int | None, shipped: Transfer | None, loaded: Transfer | None) -> History:
    """A checkpoint was shipped up to an epoch, state was brought into memory; each may be None.

    As in Martin 2015, writing a checkpoint stands for reading it: it is observed all the time, and is the slower.
    """
    if (shipped_to is None or shipped_to <= history.shipped_to) and shipped is None and loaded is None:
        return history
    quantile = history.quantile
    return replace(
        history,
        shipped_to=max(history.shipped_to, -1 if shipped_to is None else shipped_to),
        read=history.read if shipped is None else history.read.add(shipped, quantile),
        load=history.load if loaded is None else history.load.add(loaded, quantile),
    )


def started(history: History, generation: int, steps: Steps, *, fresh: bool, bytes_read: int = 0) -> History:
    """A replica, primary or secondary, came up: its steps are what the next recovery will take.

    `fresh`: its node had never seen the operator. `bytes_read`: the size of the checkpoint it read.
    """
    if generation in history.generations:
        return history
    quantile = history.quantile
    read = history.read.add(Transfer(bytes_read, steps.read_checkpoint), quantile) if bytes_read else history.read
    return replace(
        history,
        fresh=history.fresh.add(steps.deploy, quantile) if fresh else history.fresh,
        start=history.start if fresh else history.start.add(steps.deploy, quantile),
        read=read,
        wire_receive=history.wire_receive.add(steps.wire_receive, quantile),
        wire_send=history.wire_send.add(steps.wire_send, quantile) if steps.wire_send else history.wire_send,
        generations=frozenset(sorted({*history.generations, generation})[-GENERATIONS_KEPT:]),
    )


def recovered(history: History, error: Error) -> History:
    """A failure is over: keeps the prediction beside what happened. The steps themselves go through `started`."""
    return replace(history, errors=(*history.errors, error)[-ERRORS_KEPT:])


def shortfall(errors: tuple[Error, ...], share: float = 0.8) -> float:
    """The share of predictions below this share of the actual time; 0.05 is the most we allow ourselves."""
    counted = [error for error in errors if error.actual_s > 0]
    return sum(error.ratio < share for error in counted) / len(counted) if counted else 0.0
