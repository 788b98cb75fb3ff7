"""What the controller promises about itself, whatever it is given."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.controllers import MB, epochs, settled, usages, watched
from understudy.control.schemes.controller import decide_schemes, remember_recovery
from understudy.control.schemes.costs import Usage, prices, weighted
from understudy.control.schemes.decisions import Decision, Why
from understudy.control.schemes.estimates import estimate
from understudy.control.schemes.history import Error, History
from understudy.control.schemes.margin import NO_PENALTY, Caution, after_recovery
from understudy.control.schemes.objectives import Held, Memory, Settings, Watched
from understudy.control.schemes.series import Transfer
from understudy.model.capabilities import LADDER, rank
from understudy.model.costs import EVERYTHING, PAY_PER_MACHINE, Costs
from understudy.model.recovery import Guarantee, Scheme

SETTINGS = Settings()
costs = st.sampled_from([EVERYTHING, PAY_PER_MACHINE, Costs(cpu=3, network=0.5)])
helds = st.builds(Held, st.sampled_from(LADDER), st.sampled_from([1, 2, 5, 7]), st.floats(0, 100))


def decide(one: Watched, held: Held | None, chosen: Settings = SETTINGS, now: float = 1000.0) -> Decision:
    memory = Memory({one.slice: held} if held else {})
    return decide_schemes([one], memory, chosen, now).decisions[0]


def permitted(one: Watched) -> list[Scheme]:
    return [scheme for scheme in LADDER if rank(scheme) <= rank(one.strongest)]


@settings(deadline=None)
@given(watched(), helds, costs)
def test_the_objective_is_kept_whenever_one_scheme_keeps_it(one: Watched, held: Held, weights: Costs) -> None:
    decision = decide(one, held, Settings(costs=weights))
    possible = [scheme for scheme in permitted(one) if decision.keeps(scheme)]
    if possible:
        assert decision.keeps(decision.scheme)
    if decision.why is Why.UNREACHABLE:
        assert not possible


@settings(deadline=None)
@given(watched(), helds, costs)
def test_nothing_dearer_is_taken_than_what_keeps_the_objective_with_room(
    one: Watched, held: Held, weights: Costs
) -> None:
    chosen = Settings(costs=weights)
    decision = decide(one, held, chosen)
    for scheme in permitted(one):
        if decision.needed[rank(scheme)] * (1 + chosen.descend) <= decision.objective_s:
            other = decision.costs[rank(scheme)]
            assert decision.cost <= other * (1 + chosen.tie) + chosen.gain * decision.costs[-1] + 1e-6


@settings(deadline=None)
@given(watched(), st.none() | helds, st.floats(0, 200))
def test_a_slice_is_never_given_more_than_it_can_have(one: Watched, held: Held | None, now: float) -> None:
    assert decide(one, held, now=now).scheme in permitted(one)


@settings(deadline=None)
@given(watched(), st.none() | helds, costs, st.floats(0, 200))
def test_decisions_are_deterministic_and_do_not_depend_on_company(
    one: Watched, held: Held | None, weights: Costs, now: float
) -> None:
    chosen = Settings(costs=weights)
    alone = decide(one, held, chosen, now)
    others = [
        Watched(settled(name="a[0]"), Usage(), 1.0),
        one,
        Watched(History("z[0]"), Usage(cpu=1.0), 0.0, Guarantee.GAP),
    ]
    memory = Memory({one.slice: held} if held else {})
    first, second = (decide_schemes(others, memory, chosen, now).decisions[1] for _ in range(2))
    assert first.to_data() == second.to_data() == alone.to_data()


@settings(deadline=None)
@given(watched())
def test_what_is_new_starts_on_the_safe_side(one: Watched) -> None:
    decision = decide(one, None)
    assert decision.scheme is one.strongest
    assert decision.changed


@settings(deadline=None)
@given(watched(), st.sampled_from(LADDER))
def test_predictions_agree_with_the_estimate_of_one_slice(one: Watched, scheme: Scheme) -> None:
    interval = one.ship_every or 1
    decision = decide(replace(one, ship_every=interval), Held(scheme, interval, 0.0))
    alone = estimate(one.history, one.guarantee, interval)
    for each in LADDER:
        expected, got = alone.predicted_s(each), decision.predicted_s[each]
        assert (expected is None) == (got is None)
        assert expected is None or got is not None
        assert expected is None or math.isclose(expected, got or 0.0, abs_tol=1e-9)


def erratic(rng: np.random.Generator, steps: int) -> list[tuple[float, int]]:
    """Batches from a tenth of a second to seconds, state from kilobytes to gigabytes, from one epoch to the next."""
    return [(float(10 ** rng.uniform(-1, 0.7)), int(10 ** rng.uniform(3, 9.5))) for _ in range(steps)]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1.0, 2.0, 5.0, 20.0]), costs)
def test_erratic_load_never_oscillates_and_widens_the_margin(seed: int, objective: float, weights: Costs) -> None:
    chosen = Settings(costs=weights)
    history, memory = History("counts[0]", detect_s=0.4), Memory()
    changes: list[float] = []
    margins: list[float] = []
    for number, (batch_s, size) in enumerate(erratic(np.random.default_rng(seed), 60)):
        history = epochs(history, [batch_s], [size], Transfer(4 * MB, 0.04))
        for now in (float(number), number + 0.5):
            outcome = decide_schemes([Watched(history, Usage(cpu=0.5), objective)], memory, chosen, now)
            memory = outcome.memory
            margins.append(outcome.decisions[0].margin)
            changes += [now] if outcome.decisions[0].changed else []
    gaps = np.diff(changes)
    assert (gaps >= chosen.cool_down_s).all(), changes
    assert np.median(margins[20:]) > 2 * max(margins[:3])
    # Staying where it cannot hurt, instead of running after the load: rarer than the cool-down would allow.
    assert len(changes) <= 0.75 * 60 / chosen.cool_down_s


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 30), st.floats(0, 300)), min_size=1, max_size=20))
def test_the_margin_never_shrinks_with_a_broken_promise(recoveries: list[tuple[float, float, float]]) -> None:
    caution, penalty, now = Caution(), NO_PENALTY, 0.0
    for predicted, actual, later in recoveries:
        now += later
        before = penalty.now(now, caution)
        error = Error(Scheme.DEPLOYED, predicted, predicted, actual, 5.0)
        penalty = after_recovery(penalty, error, now, caution)
        after = penalty.now(now, caution)
        if actual > 5.0:
            assert after >= min(before + caution.step, caution.limit) - 1e-9
        else:
            assert after == before
        assert penalty.now(now + caution.forget_s, caution) <= after / 2 + 1e-9


def test_a_broken_promise_is_remembered_until_it_is_forgotten() -> None:
    one = Watched(settled(), Usage(cpu=0.3), 2.5)
    memory = decide_schemes([one], Memory(), SETTINGS, 0.0).memory
    before = decide_schemes([one], memory, SETTINGS, 10.0)
    late, early = (Error(Scheme.DEPLOYED, 1.0, 1.0, actual, 2.5) for actual in (3.0, 1.0))
    broken = remember_recovery(before.memory, one.slice, late, SETTINGS, 11.0)
    soon, later = (decide_schemes([one], broken, SETTINGS, now).decisions[0] for now in (16.0, 10_000.0))
    assert soon.margin > before.decisions[0].margin
    assert rank(soon.scheme) > rank(before.decisions[0].scheme)
    assert math.isclose(later.margin, before.decisions[0].margin, abs_tol=0.001)
    assert Memory.from_data(json.loads(json.dumps(broken.to_data()))) == broken
    assert remember_recovery(before.memory, one.slice, early, SETTINGS, 11.0) is before.memory


@settings(deadline=None)
@given(usages)
def test_stronger_schemes_never_use_less_cpu_memory_or_machines(usage: Usage) -> None:
    weights = Costs(network=0.0)
    cost = weighted(prices([usage]), weights, np.arange(len(LADDER)), np.ones(len(LADDER)))[0]
    assert (np.diff(cost) >= -1e-9).all()


def test_where_only_the_network_counts_state_that_changes_a_lot_is_not_pulled() -> None:
    """The example of Martin 2015, §7.4.8: a standby saves CPU and pays with bandwidth."""
    usage = Usage(cpu=0.3, received_bps=1e6, published_bps=1e5, changed_bps=5e6)
    one = Watched(settled(batch_s=0.1, size=200 * MB), usage, 1.0)
    cpu, network = (
        decide(one, Held(Scheme.ACTIVE_STANDBY, 5, 0.0), Settings(costs=weights))
        for weights in (Costs(network=0.0), Costs(cpu=0.0, memory=0.0, nodes=0.0))
    )
    assert cpu.scheme is Scheme.PASSIVE_STANDBY_HOT
    assert network.scheme is Scheme.ACTIVE_STANDBY
