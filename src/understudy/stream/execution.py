"""Carries out what was decided for an operator's replica: one function for each action, on the replica's own thread.

Each returns for how many seconds there is nothing more to do.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from understudy.checkpoints.interface import Marker
from understudy.control.replica import actions
from understudy.control.replica.actions import QueryAction
from understudy.errors import Away
from understudy.model.capabilities import Capability
from understudy.model.messages import State
from understudy.model.spans import span, union
from understudy.stream.edge import InputMissing
from understudy.stream.failures import InputGone

if TYPE_CHECKING:
    from understudy.stream.edge import Query
    from understudy.stream.query import QueryReplica

logger = logging.getLogger(__name__)


@singledispatch
def _execute(action: Any, replica: QueryReplica) -> float:
    raise NotImplementedError(type(action))


def execute(action: QueryAction, replica: QueryReplica) -> float:
    """Does it; returns for how many seconds there is nothing more to do."""
    # Every action has a function of its own, so the class need not be searched for the nearest one.
    return _execute.registry[type(action)](action, replica)


# -- waiting


@_execute.register(actions.Wait)
def _(action: actions.Wait, _: QueryReplica) -> float:
    return action.seconds


@_execute.register(actions.Throttle)
def _(action: actions.Throttle, _: QueryReplica) -> float:
    return action.seconds


@_execute.register(actions.AwaitInput)
def _(action: actions.AwaitInput, replica: QueryReplica) -> float:
    """The time that passes is idle if no batch runs: the replica waits for what nobody has made yet."""
    clock, position = replica.context.clock, replica.position
    began = clock()
    if position.done >= position.next - 1:
        replica.idle_since = began
    there = replica.inputs.has(action.epoch, action.seconds)
    return 0.0 if there else max(0.0, action.seconds - (clock() - began))


@_execute.register(actions.FailInputGone)
def _(action: actions.FailInputGone, replica: QueryReplica) -> float:
    raise InputGone(replica.slice, action.upstream, action.epoch)


# -- capabilities


@_execute.register(actions.Turn)
def _(action: actions.Turn, replica: QueryReplica) -> float:
    _turn(action, replica)
    capabilities = replica.live.capabilities.turned(action.capability, action.on)
    replica.live.update(capabilities=capabilities)
    return 0.0


def _turn(action: actions.Turn, replica: QueryReplica) -> None:
    """What becomes true at once with a capability; what takes time was an action before."""
    live, deploy = replica.live, replica.deploy
    match action.capability, action.on:
        case Capability.DEPLOYED, True:
            if not deploy.primary:
                live.update(state=State.RUNNING)
        case Capability.PROCESSES, True:
            live.update(late=not deploy.primary)
        case Capability.SENDS, True:
            with live.step("wire_send"):
                replica.outbox.send()
        case Capability.SENDS, False:
            replica.outbox.hold()
        case Capability.PROCESSES, False:
            live.update(synced_to=replica.position.done)
            if deploy.primary:
                # Whoever starts elsewhere begins with this state.
                replica.shipper.owe(replica.position.done)
        case Capability.RECEIVES, False:
            replica.inputs.drop()
        case Capability.SYNCED, False:
            replica.queries.close()
            replica.stood_by = False
            live.update(synced_to=-1)


@_execute.register(actions.StartTrial)
def _(_: actions.StartTrial, replica: QueryReplica) -> float:
    replica.queries.start_trial()
    return 0.0


@_execute.register(actions.EndTrial)
def _(_: actions.EndTrial, replica: QueryReplica) -> float:
    replica.queries.end_trial()
    return 0.0


@_execute.register(actions.PrepareQuery)
def _(action: actions.PrepareQuery, replica: QueryReplica) -> float:
    replica.queries.prepare(load=action.load)
    return 0.0


@_execute.register(actions.SwapQuery)
def _(_: actions.SwapQuery, replica: QueryReplica) -> float:
    before, first = replica.position.done, replica.queries.swap()
    loaded = replica.queries.loaded
    logger.info("%s: a query starts at epoch %d%s", replica, first, ", its state loaded" if loaded else "")
    replica.position.restart(first, has_run=loaded)
    replica.live.update(synced_to=first - 1)
    _count_read_back(replica, before)
    return 0.0


@_execute.register(actions.TakeOver)
def _(_: actions.TakeOver, replica: QueryReplica) -> float:
    replica.outbox.take_over()
    replica.took_over = True
    return 0.0


@_execute.register(actions.LeaveGap)
def _(_: actions.LeaveGap, replica: QueryReplica) -> float:
    """Damaged bags that were set aside are among the gaps: no state from before them is replayed either."""
    log, edge, position = replica.context.log, replica.context.edge, replica.position
    first, known = position.next, log.newest(replica.slice)
    last = known
    while replica.inputs.has(last + 1):
        last += 1
    # Only those that were set aside: a later damaged bag is still there, until a reader reports it.
    rewind = replica.deploy.rewind
    told = range(0) if rewind is None else range(rewind, min(known, replica.deploy.rewind_to) + 1)
    spoilt = [epoch for epoch in told if log.fetch(replica.slice, epoch) is None]
    gaps = [*spoilt, *range(known + 1, last + 1)]
    for epoch in gaps:
        empty = edge.empty(replica.slice.operator)
        replica.outbox.publish(edge.bag(replica.slice, epoch, empty, (str(replica.slice),)))
    replica.live.update(gaps=union((epoch, epoch) for epoch in gaps), forgotten=span(range(first, known + 1)))
    position.move(last + 1)
    replica.gap_left = True
    return 0.0


# -- shipping


@_execute.register(actions.StartShipping)
def _(_: actions.StartShipping, replica: QueryReplica) -> float:
    replica.shipper.start()
    return 0.0


@_execute.register(actions.StopShipping)
def _(_: actions.StopShipping, replica: QueryReplica) -> float:
    replica.shipper.stop()
    replica.context.load.leave(replica.slice)
    return 0.0


# -- working


@_execute.register(actions.Announce)
def _(action: actions.Announce, replica: QueryReplica) -> float:
    epoch, query, inputs = action.epoch, replica.queries.current, replica.inputs
    if query is None:
        return 0.0
    try:
        # The primary of a secondary may ship this epoch and give it away at any moment, also while it is read.
        fetched = 0 if replica.deploy.primary else inputs.fetch(epoch)
        ahead = inputs.holds(epoch)
        found = inputs.get(epoch)
    except InputMissing:
        return 0.0
    replica.live.wired()
    replica.reading.note(epoch, found)
    replica.live.add(rows_in=found.rows, bytes_received=fetched if ahead else found.size)
    replica.position.announced(epoch, replica.context.clock())
    query.announce(epoch, found.lines)
    return 0.0


@_execute.register(actions.ReadBack)
def _(_: actions.ReadBack, replica: QueryReplica) -> float:
    """Takes over the newer state another replica has shipped, instead of working off what that one has done."""
    before = replica.position.done
    _follow(replica, every=1)
    _count_read_back(replica, before)
    return 0.0


def _count_read_back(replica: QueryReplica, before: int) -> None:
    """Epochs that a working replica has skipped, because their state was shipped by another."""
    done = replica.position.done
    if replica.live.capabilities.processes and done > before:
        replica.live.add(read_back=done - before)
        replica.live.update(epoch=max(replica.live["epoch"], done))
        logger.info("%s: went from epoch %d to %d by reading state back", replica, before, done)


# -- standing by


@_execute.register(actions.StandBy)
def _(_: actions.StandBy, replica: QueryReplica) -> float:
    replica.stood_by = True
    return 0.0


@_execute.register(actions.CatchUp)
def _(_: actions.CatchUp, replica: QueryReplica) -> float:
    with replica.live.step("read_checkpoint"):
        query = replica.queries.current
        if query is not None and query.arrived:
            _follow(replica, every=1)
    replica.stood_by = False
    return 0.0


@_execute.register(actions.Follow)
def _(_: actions.Follow, replica: QueryReplica) -> float:
    _follow(replica, every=replica.vertex.recovery.refresh_every)
    return 0.0


@_execute.register(actions.FetchAhead)
def _(_: actions.FetchAhead, replica: QueryReplica) -> float:
    with suppress(InputMissing):
        while (epoch := replica.inputs.to_fetch(replica.position.next)) is not None and not replica.stopping:
            replica.live.add(bytes_received=replica.inputs.fetch(epoch))
    return 0.0


@_execute.register(actions.TrimSpool)
def _(_: actions.TrimSpool, replica: QueryReplica) -> float:
    replica.outbox.trim()
    return 0.05 if len(replica.outbox) else 0.0


def _follow(replica: QueryReplica, every: int) -> None:
    """Brings the waiting query to the newest shipped checkpoint, if that is so many epochs newer."""
    query, synced_to = replica.queries.current, replica.position.next - 1
    if query is None:
        return
    target = replica.store.newest()
    above, shipped = synced_to + every - 1, replica.queries.shipped
    try:
        pulled = replica.store.pull(query.directory, shipped, above, replica.note_damaged_checkpoint)
    except Away as away:
        # It follows the next checkpoint: while the store is away, none is shipped.
        logger.warning("%s cannot follow: %s", replica, away.what)
        pulled = None
    if pulled is None:
        replica.fruitless = target
        return
    marker, size = pulled
    replica.fruitless = None
    replica.live.add(bytes_pulled=size)
    if not replica.vertex.stateful or _jump(query, marker, replica):
        replica.position.move(marker.epoch + 1)
        replica.live.update(synced_to=marker.epoch)
        replica.inputs.forget(marker.epoch)
    else:
        replica.queries.unfit = True


def _jump(query: Query, marker: Marker, replica: QueryReplica) -> bool:
    """Whether the query goes on from the checkpoint, with its state in memory where that is asked for.

    One that cannot, perhaps because a checkpoint was missed, is replaced by another that starts beside it.
    """
    receives = replica.live.capabilities.receives
    moved = query.jump(marker, keep_state=receives)
    replica.queries.loaded = moved and query.state_loaded
    waits = not replica.deploy.capabilities.processes
    ready = replica.queries.loaded if receives else replica.position.has_run
    return moved and (ready or not waits or not replica.vertex.reloads)
