"""What the replica of an operator slice does next.

The same rules make a primary, a secondary and everything in between: the ask says which capabilities the replica shall
have and whether it is the primary. The first rule that has something to do decides, so the order of the rules is the
order of importance:

1. take over, where the replica works already and has become the primary;
2. finish a trial or a replacement of the query that was begun;
3. turn one capability on or off, after what must come before it;
4. read newer state back instead of working off what another replica has done;
5. ship exactly while the ask says so;
6. work: announce the next epoch, or wait for what it needs;
7. or stand by: follow what is shipped.
"""

from __future__ import annotations

from collections.abc import Callable

from understudy.control.replica.actions import (
    Announce,
    AwaitInput,
    CatchUp,
    EndTrial,
    FailInputGone,
    FetchAhead,
    Follow,
    LeaveGap,
    PrepareQuery,
    QueryAction,
    ReadBack,
    StandBy,
    StartShipping,
    StartTrial,
    StopShipping,
    SwapQuery,
    TakeOver,
    Throttle,
    TrimSpool,
    Turn,
    Wait,
)
from understudy.control.replica.switching import next_step
from understudy.control.replica.view import QueryView, Replacement, Shipping, Trial
from understudy.model.capabilities import Capability
from understudy.model.messages import Deploy

AHEAD = 4
"""Epochs that may be announced and not done: enough to keep the query busy, few enough to change course."""
INPUT_S = 0.1
LOOK_S = 0.05
"""Between two looks at what others have shipped, or at a goal that is reached."""
ROOM_S = 0.01
BATCH_S = 0.005
"""Between two looks at a batch that runs."""
IDLE_S = 1.0


def decide(view: QueryView, ask: Deploy) -> QueryAction:
    """The next action of a replica that is asked to be `ask`."""
    return (
        _take_over(view, ask)
        or _finish_begun(view, ask)
        or _turn(view, ask)
        or _read_back(view, ask)
        or _ship(view, ask)
        or (_work(view, ask) if view.on.processes else _stand_by(view))
    )


def _take_over(view: QueryView, ask: Deploy) -> QueryAction | None:
    """A secondary that already processes needs no gate opened. It fences older generations where needed and is the
    primary from then on."""
    return TakeOver() if ask.primary and view.on.processes and not view.took_over else None


def _finish_begun(view: QueryView, ask: Deploy) -> QueryAction | None:
    if view.trial is not Trial.NONE:
        awaited = view.trial is Trial.RUNNING and _needs_trial(view, ask)
        return Wait(LOOK_S) if awaited else EndTrial()
    if view.replacement is Replacement.LOADING:
        return Wait(BATCH_S)
    if view.replacement is Replacement.READY:
        return SwapQuery()
    if view.unfit and ask.capabilities.synced:
        return PrepareQuery(load=not ask.capabilities.processes)
    return None


# -- capabilities, one at a time


def _turn(view: QueryView, ask: Deploy) -> QueryAction | None:
    step = None if view.on is ask.capabilities else next_step(view.on, ask.capabilities)
    if step is None:
        return None
    before = _BEFORE.get((step.capability, step.on))
    return (before(view, ask) if before else None) or Turn(step.capability, step.on)


def _needs_trial(view: QueryView, ask: Deploy) -> bool:
    """A replica that works, or that loads its state, does as much with real rows in a moment."""
    asked = ask.capabilities
    return not view.exercised and not asked.processes and not (asked.synced and view.reloads)


def _exercise(view: QueryView, ask: Deploy) -> QueryAction | None:
    return StartTrial() if _needs_trial(view, ask) else None


def _sync(view: QueryView, ask: Deploy) -> QueryAction | None:
    return None if view.has_query else PrepareQuery(load=not ask.capabilities.processes)


def _load(view: QueryView, ask: Deploy) -> QueryAction | None:
    """A query whose state is not in memory is replaced by one that has run; one try for every shipped epoch."""
    synced_to = view.next_epoch - 1
    wanted = not ask.capabilities.processes and view.reloads and not view.loaded
    return PrepareQuery(load=True) if wanted and synced_to >= 0 and view.load_tried_at != synced_to else None


def _open(view: QueryView, ask: Deploy) -> QueryAction | None:
    if view.stood_by:
        return CatchUp()
    if not ask.primary:
        return None
    if not view.took_over:
        return TakeOver()
    return LeaveGap() if ask.generation > 1 and not view.replays and not view.gap_left else None


def _close(view: QueryView, _: Deploy) -> QueryAction | None:
    """The state is then that of the last epoch, newer than anything shipped."""
    return None if view.drained else Wait(BATCH_S)


_BEFORE: dict[tuple[Capability, bool], Callable[[QueryView, Deploy], QueryAction | None]] = {
    (Capability.DEPLOYED, True): _exercise,
    (Capability.SYNCED, True): _sync,
    (Capability.RECEIVES, True): _load,
    (Capability.PROCESSES, True): _open,
    (Capability.PROCESSES, False): _close,
}


# -- reading back


def _read_back(view: QueryView, ask: Deploy) -> QueryAction | None:
    if not view.on.processes or view.goal_reached or ask.rewind is not None or not view.replays:
        return None
    if not _is_overtaken(view) or view.newest_shipped == view.fruitless:
        return None
    if not view.drained or view.shipping is Shipping.STOPPING:
        return Wait(BATCH_S)
    if view.shipping is Shipping.ON:
        # Both would change what store and local checkpoint have in common; shipping starts again afterwards.
        return StopShipping()
    return ReadBack() if view.arrived else Wait(LOOK_S)


def _is_overtaken(view: QueryView) -> bool:
    """Another replica has published the next epoch and the one after, and shipped what comes of them; or it has
    acknowledged the next epoch's input, which is in the state it has shipped."""
    epoch = view.next_epoch
    if view.newest_published > epoch and view.newest_shipped > epoch:
        return True
    # What was shipped is looked up last: it costs a directory listing, and this is asked in every decision.
    return not view.input_there and view.given_away is not None and view.newest_shipped >= epoch


# -- shipping


def _ship(view: QueryView, ask: Deploy) -> QueryAction | None:
    shipping = view.shipping
    if not ask.ships:
        return StopShipping() if shipping is Shipping.ON else None
    if shipping is Shipping.OFF:
        return StartShipping()
    return Wait(BATCH_S) if shipping is Shipping.STOPPING else None


# -- working and standing by


def _work(view: QueryView, ask: Deploy) -> QueryAction:
    if view.goal_reached:
        return Wait(LOOK_S)
    if not ask.ships and view.crowded:
        return Throttle(LOOK_S)
    if not view.input_there:
        gone = view.given_away
        return AwaitInput(view.next_epoch, INPUT_S) if gone is None else FailInputGone(gone, view.next_epoch)
    if not view.has_room:
        return Wait(ROOM_S)
    if view.next_epoch - view.done > AHEAD:
        return Wait(BATCH_S)
    return Announce(view.next_epoch)


def _stand_by(view: QueryView) -> QueryAction:
    if not view.on.synced:
        return Wait(IDLE_S)
    if not view.stood_by:
        return StandBy()
    newer = view.newest_shipped >= view.next_epoch - 1 + view.refresh_every
    if newer and view.arrived and view.newest_shipped != view.fruitless:
        return Follow()
    if view.on.receives and view.can_fetch:
        return FetchAhead()
    return TrimSpool() if view.spooled else Wait(LOOK_S)
