"""Decisions, their sentences and their costs, in cases that can be read."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from tests.controllers import MB, settled

from understudy.control.schemes.controller import decide_schemes
from understudy.control.schemes.costs import Usage, between, prices, secondary_share
from understudy.control.schemes.decisions import Decision, Why
from understudy.control.schemes.objectives import Held, Memory, Settings, Watched
from understudy.errors import InvalidInput
from understudy.model.costs import EVERYTHING, PAY_PER_MACHINE, Costs
from understudy.model.messages import ReplicaStatus
from understudy.model.names import SliceId
from understudy.model.recovery import Guarantee, Recovery, Scheme

BUSY = Usage(cpu=0.3, received_bps=1e6, published_bps=2e5, changed_bps=1e5)


def decide(objective: float, weights: Costs = EVERYTHING, usage: Usage = BUSY, **options: Any) -> Decision:
    one = Watched(settled(), usage, objective, **options)
    memory = Memory({one.slice: Held(Scheme.ACTIVE_REPLICATION, 5, 0.0)})
    return decide_schemes([one], memory, Settings(costs=weights), 100.0).decisions[0]


@pytest.mark.parametrize(
    ("objective", "scheme"),
    [
        (0.0, Scheme.ACTIVE_REPLICATION),
        (1.0, Scheme.ACTIVE_STANDBY),
        (1.6, Scheme.PASSIVE_STANDBY_HOT),
        (2.0, Scheme.PASSIVE_STANDBY_COLD),
        (20.0, Scheme.PASSIVE_REPLICATION),
    ],
)
def test_more_time_means_a_cheaper_scheme(objective: float, scheme: Scheme) -> None:
    assert decide(objective).scheme is scheme


def test_machines_as_the_only_price_leave_nothing_in_between() -> None:
    found = {decide(objective / 2, PAY_PER_MACHINE).scheme for objective in range(40)}
    assert found == {Scheme.ACTIVE_REPLICATION, Scheme.PASSIVE_REPLICATION}


def test_a_smaller_interval_is_tried_before_a_stronger_scheme() -> None:
    tight, wide = decide(4.2), decide(20.0)
    assert tight.scheme is wide.scheme is Scheme.PASSIVE_REPLICATION
    assert tight.ship_every < 5
    insisted = decide(4.2, ship_every=5)
    assert insisted.scheme is not Scheme.PASSIVE_REPLICATION
    assert insisted.ship_every == 5


def test_a_guarantee_that_replays_nothing_is_cheaper_to_keep() -> None:
    assert decide(1.2).scheme is Scheme.ACTIVE_STANDBY
    assert decide(1.2, guarantee=Guarantee.GAP).scheme is Scheme.PASSIVE_STANDBY_COLD


def test_a_decision_says_why_in_a_sentence() -> None:
    hot = decide(1.6)
    assert hot.sentence == (
        "counts[0]: passive standby hot, 1.3 s of 1.6 s, saves 80 % CPU; "
        "passive standby cold would need 1.6 s and a margin of 10 %"
    )
    assert decide(0.0).sentence == "counts[0]: active replication, 0.0 s of 0 s; active standby would need 0.8 s"
    assert decide(20.0).sentence.endswith("saves 100 % CPU; nothing is cheaper")
    assert decide(0.1, strongest=Scheme.PASSIVE_STANDBY_HOT).why is Why.UNREACHABLE
    assert "nothing keeps the objective" in decide(0.1, strongest=Scheme.PASSIVE_STANDBY_HOT).sentence
    data = hot.to_data()
    assert data["predicted_s"]["passive_standby_hot"] == 1.3
    assert data["sentence"] == hot.sentence
    assert 0 < data["cost_ratio"] < 1


def test_the_cool_down_is_kept_and_says_so() -> None:
    one = Watched(settled(), BUSY, 20.0)
    held = Memory({one.slice: Held(Scheme.ACTIVE_REPLICATION, 5, 97.0)})
    early, late = (decide_schemes([one], held, Settings(), now).decisions[0] for now in (100.0, 102.0))
    assert (early.scheme, early.why, early.changed) == (Scheme.ACTIVE_REPLICATION, Why.COOL_DOWN, False)
    assert (late.scheme, late.why, late.changed) == (Scheme.PASSIVE_REPLICATION, Why.CHEAPEST, True)
    assert "cool-down" in early.sentence


def test_on_the_edge_a_slice_stays_where_it_is() -> None:
    # Cold needs 1.55 s: with the margin of 10 % it fits into 1.75 s, with room to move there it does not.
    one = Watched(settled(), BUSY, 1.75)
    settled_in = Memory({one.slice: Held(Scheme.PASSIVE_STANDBY_COLD, 1, 0.0)})
    above = Memory({one.slice: Held(Scheme.PASSIVE_STANDBY_HOT, 1, 0.0)})
    stays = decide_schemes([one], settled_in, Settings(), 100.0).decisions[0]
    waits = decide_schemes([one], above, Settings(), 100.0).decisions[0]
    assert stays.scheme is Scheme.PASSIVE_STANDBY_COLD
    assert (waits.scheme, waits.why) == (Scheme.PASSIVE_STANDBY_HOT, Why.ROOM)
    assert "room" in waits.sentence


def test_slices_that_are_gone_are_forgotten() -> None:
    both = [Watched(settled(name=name), BUSY, 5.0) for name in ("a[0]", "b[0]")]
    memory = decide_schemes(both, Memory(), Settings(), 0.0).memory
    assert set(memory.held) == {"a[0]", "b[0]"}
    assert set(decide_schemes(both[:1], memory, Settings(), 1.0).memory.held) == {"a[0]"}
    assert decide_schemes([], memory, Settings(), 1.0).decisions == ()


def test_usage_is_the_difference_of_two_statuses() -> None:
    before = ReplicaStatus(slice=SliceId("a", 0), generation=1, cpu_s=10.0, bytes_received=1000, bytes_published=100)
    now = before.model_copy(update={"cpu_s": 11.0, "bytes_received": 5000, "bytes_published": 300, "bytes_shipped": 50})
    usage = between(Usage(), before, now, 2.0)
    assert (usage.cpu, usage.received_bps, usage.published_bps, usage.changed_bps) == (0.5, 2000, 100, 25)
    assert between(usage, before, now.model_copy(update={"generation": 2}), 2.0) is usage


def test_rates_are_smoothed() -> None:
    """Windows close now and then: one epoch publishes much, the next nothing."""
    usage, status = Usage(), ReplicaStatus(slice=SliceId("a", 0), generation=1)
    for epoch in range(1, 60):
        later = status.model_copy(update={"bytes_published": status.bytes_published + (2000 if epoch % 2 else 0)})
        usage, status = between(usage, status, later, 1.0), later
    assert usage.published_bps == pytest.approx(1000, rel=0.15)


def test_a_slice_does_not_go_to_and_fro_between_schemes_that_cost_about_the_same() -> None:
    """An active standby that saves now a little more, now a little less than would be worth a change."""
    memory, found = Memory({"counts[0]": Held(Scheme.ACTIVE_REPLICATION, 5, 0.0)}), []
    for step in range(40):
        usage = replace(BUSY, published_bps=3e4 if step % 2 else 6e4)
        outcome = decide_schemes([Watched(settled(), usage, 1.0)], memory, Settings(), 100.0 + 10 * step)
        memory = outcome.memory
        found.append(outcome.decisions[0].scheme)
    assert sum(one is not other for one, other in pairwise(found)) <= 1


def test_measured_shares_replace_the_assumed_ones() -> None:
    usage = secondary_share(BUSY, Scheme.PASSIVE_STANDBY_HOT, 0.15)
    assert prices([BUSY]).cpu[0, 3] == 0.2
    assert prices([usage]).cpu[0, 3] == pytest.approx(0.5)
    assert prices([secondary_share(usage, Scheme.PASSIVE_STANDBY_HOT, 0.0)]).cpu[0, 3] == pytest.approx(0.4)


def test_working_copies_cost_the_same_whether_they_send_or_not() -> None:
    """Otherwise chance would make now one, now the other the cheaper."""
    usage = secondary_share(BUSY, Scheme.ACTIVE_REPLICATION, 0.33)
    cpu = prices([secondary_share(usage, Scheme.ACTIVE_STANDBY, 0.27)]).cpu[0]
    assert cpu[4] == cpu[5] == pytest.approx(1.06)
    assert cpu[3] == 0.2


def test_a_scheme_that_is_not_worth_a_change_is_called_so() -> None:
    silent = decide(1.0, usage=replace(BUSY, published_bps=2e4))
    assert silent.scheme is Scheme.ACTIVE_REPLICATION
    assert silent.sentence.endswith("active standby would hardly be cheaper")


@pytest.mark.parametrize(
    "weights", [{"cpu": -1}, {"nodes": float("nan")}, dict.fromkeys(("cpu", "memory", "network", "nodes"), 0)]
)
def test_weights_that_mean_nothing(weights: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        Costs(**weights)


@pytest.mark.parametrize("objective", [-1, "soon", float("nan"), "5"])
def test_objectives_that_mean_nothing(objective: Any) -> None:
    with pytest.raises(InvalidInput):
        Recovery(objective=objective)


def test_an_objective_is_a_time() -> None:
    assert Recovery(objective="500 ms").objective_s == 0.5
    assert Recovery(objective=0).objective_s == 0.0
    assert Recovery().objective_s is None
    assert Costs.PAY_PER_MACHINE.heaviest == "nodes"
    assert settled().state_bytes == 20 * MB
