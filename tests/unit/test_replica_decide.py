"""What a replica does next: every rule, one at a time, on plain values."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import is_dataclass, replace
from typing import Any

import pytest
from tests.builders import COUNTS

from understudy.control import replica
from understudy.control.replica import actions
from understudy.control.replica.decide import decide
from understudy.control.replica.view import Facts, Replacement, Shipping, Trial
from understudy.model.capabilities import ALL, OFF, ROWS, Capabilities, Capability
from understudy.model.messages import Deploy
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme

COLD, HOT = ROWS[Scheme.PASSIVE_STANDBY_COLD], ROWS[Scheme.PASSIVE_STANDBY_HOT]
ACTIVE, DEPLOYED = ROWS[Scheme.ACTIVE_STANDBY], ROWS[Scheme.DEPLOYED]
LINES = SliceId("lines", 0)
WORKING = Facts(on=ALL, has_query=True, took_over=True, shipping=Shipping.ON, next_epoch=5, done=4, input_there=True)
WAITING = Facts(on=HOT, has_query=True, loaded=True, stood_by=True, next_epoch=5, done=4, newest_shipped=4)


def primary(**more: Any) -> Deploy:
    return Deploy(slice=COUNTS, **({"generation": 1} | more))


def secondary(row: Capabilities, **more: Any) -> Deploy:
    usual: dict[str, Any] = {"generation": 2, "primary": False, "capabilities": row, "ship_every": 0}
    return Deploy(slice=COUNTS, **(usual | more))


# -- the trial


@pytest.mark.parametrize(("row", "reloads"), [(DEPLOYED, True), (DEPLOYED, False), (COLD, False), (HOT, False)])
def test_a_plan_that_would_not_have_run_is_exercised(row: Capabilities, reloads: bool) -> None:
    facts = Facts(reloads=reloads)
    assert decide(facts, secondary(row)) == actions.StartTrial()
    assert decide(replace(facts, trial=Trial.RUNNING), secondary(row)) == actions.Wait(0.05)
    assert decide(replace(facts, trial=Trial.DONE), secondary(row)) == actions.EndTrial()
    assert decide(replace(facts, exercised=True), secondary(row)) == actions.Turn(Capability.DEPLOYED, True)


@pytest.mark.parametrize(("row", "reloads"), [(ALL, True), (ACTIVE, False), (HOT, True), (COLD, True)])
def test_one_that_runs_real_rows_in_a_moment_is_not(row: Capabilities, reloads: bool) -> None:
    assert decide(Facts(reloads=reloads), secondary(row)) == actions.Turn(Capability.DEPLOYED, True)


def test_a_trial_that_is_not_needed_any_more_is_not_waited_for() -> None:
    assert decide(Facts(trial=Trial.RUNNING), primary()) == actions.EndTrial()


# -- capabilities


def test_a_primary_starts_its_query_without_loading_because_it_works_in_a_moment() -> None:
    assert decide(Facts(on=DEPLOYED), primary()) == actions.PrepareQuery(load=False)


def test_a_secondary_lets_its_query_load_the_state() -> None:
    assert decide(Facts(on=DEPLOYED), secondary(HOT)) == actions.PrepareQuery(load=True)


@pytest.mark.parametrize(
    ("replacement", "expected"),
    [(Replacement.LOADING, actions.Wait(0.005)), (Replacement.READY, actions.SwapQuery())],
)
def test_a_query_is_swapped_in_when_its_state_is_loaded(replacement: Replacement, expected: object) -> None:
    assert decide(Facts(on=DEPLOYED, replacement=replacement), secondary(HOT)) == expected


def test_a_state_that_is_not_in_memory_is_loaded_once_for_every_shipped_epoch() -> None:
    cold = replace(WAITING, on=COLD, loaded=False)
    assert decide(cold, secondary(HOT)) == actions.PrepareQuery(load=True)
    assert decide(replace(cold, load_tried_at=3), secondary(HOT)) == actions.PrepareQuery(load=True)
    assert decide(replace(cold, next_epoch=1), secondary(HOT)) == actions.PrepareQuery(load=True), "of one epoch"
    turned = actions.Turn(Capability.RECEIVES, True)
    assert decide(replace(cold, load_tried_at=4), secondary(HOT)) == turned, "its input was gone: try the next"
    assert decide(replace(cold, loaded=True), secondary(HOT)) == turned
    assert decide(replace(cold, next_epoch=0), secondary(HOT)) == turned, "there is no state yet"
    assert decide(replace(cold, reloads=False), secondary(HOT)) == turned
    assert decide(cold, secondary(ALL)) == turned, "it works in a moment"


def test_a_promoted_standby_catches_up_takes_over_and_opens_its_gate() -> None:
    ask = primary(generation=2)
    assert decide(WAITING, ask) == actions.CatchUp()
    caught = replace(WAITING, stood_by=False)
    assert decide(caught, ask) == actions.TakeOver()
    assert decide(replace(caught, took_over=True), ask) == actions.Turn(Capability.PROCESSES, True)


def test_where_nothing_is_replayed_a_gap_is_left_once_and_not_by_the_first_replica() -> None:
    ready = replace(WAITING, stood_by=False, took_over=True, replays=False)
    assert decide(ready, primary(generation=2)) == actions.LeaveGap()
    opened = actions.Turn(Capability.PROCESSES, True)
    assert decide(replace(ready, gap_left=True), primary(generation=2)) == opened
    assert decide(ready, primary(generation=1)) == opened
    assert decide(ready, secondary(ALL, generation=2)) == opened


def test_an_active_secondary_that_is_promoted_takes_over_before_anything_else() -> None:
    assert decide(replace(WORKING, took_over=False, trial=Trial.RUNNING), primary()) == actions.TakeOver()


def test_a_gate_closes_when_everything_announced_is_committed() -> None:
    ask = secondary(HOT)
    held = replace(WORKING, on=ACTIVE, shipping=Shipping.OFF)
    assert decide(replace(held, drained=False), ask) == actions.Wait(0.005)
    assert decide(held, ask) == actions.Turn(Capability.PROCESSES, False)


@pytest.mark.parametrize(
    ("on", "asked", "capability"),
    [(ALL, ACTIVE, Capability.SENDS), (HOT, COLD, Capability.RECEIVES), (COLD, DEPLOYED, Capability.SYNCED)],
)
def test_what_is_too_much_is_turned_off_from_the_top(on: Capabilities, asked: Capabilities, capability: str) -> None:
    found = decide(replace(WAITING, on=on), secondary(asked))
    assert found == actions.Turn(Capability(capability), False)


# -- a query that cannot follow


def test_a_query_that_cannot_follow_is_replaced() -> None:
    assert decide(replace(WAITING, unfit=True), secondary(HOT)) == actions.PrepareQuery(load=True)
    assert decide(replace(WORKING, unfit=True), primary()) == actions.PrepareQuery(load=False)
    assert decide(replace(WAITING, unfit=True), secondary(DEPLOYED)) == actions.Turn(Capability.RECEIVES, False)


# -- reading back

OVERTAKEN = replace(WORKING, shipping=Shipping.OFF, newest_published=7, newest_shipped=6)


def test_whoever_is_overtaken_reads_back_when_nothing_moves_any_more() -> None:
    ask = primary()
    assert decide(replace(OVERTAKEN, shipping=Shipping.ON), ask) == actions.StopShipping()
    assert decide(replace(OVERTAKEN, shipping=Shipping.ON, drained=False), ask) == actions.Wait(0.005)
    assert decide(replace(OVERTAKEN, shipping=Shipping.STOPPING), ask) == actions.Wait(0.005)
    assert decide(replace(OVERTAKEN, arrived=False), ask) == actions.Wait(0.05)
    assert decide(OVERTAKEN, ask) == actions.ReadBack()


@pytest.mark.parametrize(
    "change",
    [
        {"newest_published": 5},
        {"newest_shipped": 5},
        {"fruitless": 6},
        {"replays": False},
        {"goal_reached": True},
    ],
)
def test_but_not_otherwise(change: dict[str, Any]) -> None:
    assert decide(replace(OVERTAKEN, **change), primary()) == actions.StartShipping()


def test_nor_while_a_damaged_bag_has_to_be_made_again() -> None:
    assert decide(OVERTAKEN, primary(rewind=5, rewind_to=5)) == actions.StartShipping()


def test_input_that_another_replica_has_given_away_is_in_the_state_it_has_shipped() -> None:
    gone = replace(WORKING, shipping=Shipping.OFF, input_there=False, given_away=LINES, newest_shipped=5)
    assert decide(gone, primary()) == actions.ReadBack()
    assert decide(replace(gone, shipping=Shipping.ON, fruitless=5), primary()) == actions.FailInputGone(LINES, 5)
    older = replace(gone, shipping=Shipping.ON, newest_shipped=4)
    assert decide(older, primary()) == actions.FailInputGone(LINES, 5), "no shipped state covers it"
    there = replace(gone, shipping=Shipping.ON, input_there=True)
    assert decide(there, primary()) == actions.Announce(5)
    late = replace(gone, shipping=Shipping.ON, given_away=None)
    assert decide(late, primary()) == actions.AwaitInput(5, 0.1), "it is not there yet"


# -- shipping


def test_shipping_runs_exactly_while_it_is_asked_for() -> None:
    assert decide(replace(WORKING, shipping=Shipping.OFF), primary()) == actions.StartShipping()
    assert decide(WORKING, secondary(ALL)) == actions.StopShipping()
    assert decide(replace(WORKING, shipping=Shipping.STOPPING), primary()) == actions.Wait(0.005)
    stopping = replace(WORKING, shipping=Shipping.STOPPING)
    assert decide(stopping, secondary(ALL)) == actions.Announce(5)
    standing_in = secondary(ALL, ship_every=1)
    assert decide(replace(WORKING, shipping=Shipping.OFF), standing_in) == actions.StartShipping()


# -- working


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, actions.Announce(5)),
        ({"goal_reached": True}, actions.Wait(0.05)),
        ({"input_there": False}, actions.AwaitInput(5, 0.1)),
        ({"has_room": False}, actions.Wait(0.01)),
        ({"done": 0}, actions.Wait(0.005)),
        ({"done": 1}, actions.Announce(5)),
        ({"crowded": True}, actions.Announce(5)),
    ],
)
def test_a_primary_announces_the_next_epoch_or_waits_for_what_it_needs(
    change: dict[str, Any], expected: object
) -> None:
    assert decide(replace(WORKING, **change), primary()) == expected


def test_a_secondary_gives_way_to_primaries_that_are_behind() -> None:
    working = replace(WORKING, shipping=Shipping.OFF, crowded=True)
    assert decide(working, secondary(ALL)) == actions.Throttle(0.05)
    assert decide(replace(working, shipping=Shipping.ON), secondary(ALL, ship_every=1)) == actions.Announce(5)


# -- standing by


def test_a_standby_follows_what_is_shipped() -> None:
    ask = secondary(HOT)
    assert decide(replace(WAITING, stood_by=False), ask) == actions.StandBy()
    assert decide(WAITING, ask) == actions.Wait(0.05)
    newer = replace(WAITING, newest_shipped=5)
    assert decide(newer, ask) == actions.Follow()
    assert decide(replace(newer, newest_shipped=6, newest_published=7), ask) == actions.Follow(), (
        "it reads nothing back"
    )
    assert decide(replace(newer, arrived=False), ask) == actions.Wait(0.05)
    assert decide(replace(newer, fruitless=5), ask) == actions.Wait(0.05)
    assert decide(replace(newer, refresh_every=2), ask) == actions.Wait(0.05)
    assert decide(replace(newer, refresh_every=2, newest_shipped=6), ask) == actions.Follow()


def test_a_hot_standby_fetches_its_input_ahead_and_a_cold_one_does_not() -> None:
    there = replace(WAITING, can_fetch=True)
    assert decide(there, secondary(HOT)) == actions.FetchAhead()
    assert decide(replace(there, on=COLD), secondary(COLD)) == actions.Wait(0.05)


def test_bags_that_were_held_back_are_dropped_when_the_primary_has_published_them() -> None:
    assert decide(replace(WAITING, spooled=2), secondary(HOT)) == actions.TrimSpool()


@pytest.mark.parametrize("row", [OFF, DEPLOYED])
def test_whoever_only_is_deployed_waits(row: Capabilities) -> None:
    assert decide(Facts(on=row, exercised=True), secondary(row)) == actions.Wait(1.0)


# -- values


@pytest.mark.parametrize("module", [found.name for found in pkgutil.iter_modules(replica.__path__)])
def test_no_rule_can_change_what_it_was_given(module: str) -> None:
    found = vars(importlib.import_module(f"{replica.__name__}.{module}")).values()
    values = [one for one in found if isinstance(one, type) and is_dataclass(one)]
    assert [one.__name__ for one in values if not one.__dataclass_params__.frozen] == []  # type: ignore[attr-defined]
