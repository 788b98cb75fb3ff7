"""Recovery times from measured history, step by step, against sums done by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.controllers import MB, epochs, settled, status

from understudy.control.schemes.estimates import COLUMNS, STEPS, estimate
from understudy.control.schemes.history import Error, History, Observation, observe, recovered, shortfall, started
from understudy.control.schemes.series import SMALL_BYTES, Series, Transfer, Transfers
from understudy.model.capabilities import LADDER
from understudy.model.messages import Steps
from understudy.model.recovery import Guarantee, Scheme

# Batches of 0.3 s, 20 MB of state at 100 MB/s, the first deployment 1.5 s, input wired in 0.05 s, detection 0.4 s.
ONE = settled()
WARM = started(ONE, 2, Steps(deploy=0.7, wire_receive=0.05, done=True), fresh=False)


def total(
    history: History, scheme: Scheme, guarantee: Guarantee = Guarantee.PRECISE, interval: int = 1
) -> float | None:
    return estimate(history, guarantee, interval).predicted_s(scheme)


def test_every_scheme_is_the_sum_of_its_steps() -> None:
    replay, first, read = 2 * 0.3, 0.3, 20 / 100
    assert total(WARM, Scheme.ACTIVE_REPLICATION) == 0
    assert total(WARM, Scheme.ACTIVE_STANDBY) == pytest.approx(0.4 + 0.1 + first)
    assert total(WARM, Scheme.PASSIVE_STANDBY_HOT) == pytest.approx(0.4 + replay + first)
    assert total(WARM, Scheme.PASSIVE_STANDBY_COLD) == pytest.approx(0.4 + read + 0.05 + replay + first)
    assert total(WARM, Scheme.DEPLOYED) == pytest.approx(0.4 + 0.7 + 2 * read + 0.05 + replay + first)
    assert total(WARM, Scheme.PASSIVE_REPLICATION) == pytest.approx(0.4 + 1.5 + 2 * read + 0.05 + replay + first)
    steps = estimate(WARM, ship_every=1).steps[Scheme.DEPLOYED]
    assert steps is not None
    assert set(steps) == set(STEPS)
    assert steps["deploy"] == 0.7
    assert steps["replay"] == pytest.approx(replay)


def test_each_scheme_ships_as_it_usually_does() -> None:
    usual = estimate(WARM)
    steps = {scheme: usual.steps[scheme] for scheme in LADDER}
    replays = [None if found is None else round(found["replay"] / 0.3) for found in steps.values()]
    assert replays == [6, 3, 2, 2, 0, 0]


def test_a_gap_replays_nothing_and_amnesia_reads_nothing() -> None:
    assert total(WARM, Scheme.PASSIVE_STANDBY_HOT, Guarantee.GAP) == pytest.approx(0.4 + 0.3)
    assert total(WARM, Scheme.PASSIVE_STANDBY_COLD, Guarantee.AMNESIA) == pytest.approx(0.4 + 0.05 + 0.3)
    assert total(WARM, Scheme.PASSIVE_STANDBY_HOT, Guarantee.ROLLBACK) == total(WARM, Scheme.PASSIVE_STANDBY_HOT)


def test_without_history_only_active_replication_promises_anything() -> None:
    found = estimate(History("counts[0]"))
    known = {scheme for scheme in LADDER if found.predicted_s(scheme) is not None}
    assert known == {Scheme.ACTIVE_REPLICATION}
    young = epochs(History("counts[0]"), [6.0, 2.0], [0, 0])
    assert total(young, Scheme.PASSIVE_STANDBY_HOT) is None


def test_state_that_was_never_read_promises_no_cold_start() -> None:
    history = epochs(History("counts[0]"), [0.3] * 5, [20 * MB] * 5)
    assert total(history, Scheme.PASSIVE_STANDBY_HOT) is not None
    assert total(history, Scheme.PASSIVE_STANDBY_COLD) is None
    stateless = epochs(History("counts[0]"), [0.3] * 5, [0] * 5)
    assert total(stateless, Scheme.PASSIVE_REPLICATION) is not None


def test_a_new_node_is_waited_for_when_none_is_free() -> None:
    full = replace(WARM, free_node=False)
    assert total(full, Scheme.PASSIVE_REPLICATION) is None, "how long a node takes was never seen"
    seen = replace(full, node=full.node.add(7.0))
    assert total(seen, Scheme.PASSIVE_REPLICATION) == pytest.approx((total(WARM, Scheme.PASSIVE_REPLICATION) or 0) + 7)


def test_a_source_is_missed_until_its_failure_is_noticed() -> None:
    assert total(replace(ONE, source=True), Scheme.ACTIVE_REPLICATION) == pytest.approx(0.4)


def test_neighbours_on_the_same_node_share_its_cores() -> None:
    crowded = replace(WARM, neighbours=3, cores=2)
    assert total(crowded, Scheme.PASSIVE_STANDBY_HOT) == pytest.approx(0.4 + 2 * (2 * 0.3 + 0.3))
    assert total(replace(crowded, neighbours=1), Scheme.PASSIVE_STANDBY_HOT) == total(WARM, Scheme.PASSIVE_STANDBY_HOT)


def test_late_shipments_and_rare_refreshes_mean_more_to_replay() -> None:
    late = epochs(ONE, [0.3] * 4, [20 * MB] * 4, interval=100)
    assert late.behind == 4
    assert total(late, Scheme.PASSIVE_STANDBY_HOT) == pytest.approx(0.4 + (2 + 2) * 0.3 + 0.3)
    rare = replace(ONE, refresh_every=3)
    assert total(rare, Scheme.PASSIVE_STANDBY_HOT) == pytest.approx(0.4 + (2 + 2) * 0.3 + 0.3)


def test_the_worst_batch_counts_unless_a_quantile_is_asked_for() -> None:
    batches = [0.2] * 9 + [1.0] + [0.2] * 10
    worst = epochs(History("counts[0]"), batches, [0] * 20)
    usual = epochs(History("counts[0]", quantile=0.9), batches, [0] * 20)
    assert worst.batch.high == 1.0
    assert usual.batch.high == 0.2
    assert Series().add(1).add(2).add(3, quantile=0.5).high == 2


def test_small_transfers_are_seconds_and_large_ones_a_rate() -> None:
    seen = Transfers().add(Transfer(10_000, 0.005))
    assert seen.seconds(10_000) == 0.005
    assert seen.seconds(1_000_000) == pytest.approx(0.5), "scaled, as nothing large was seen"
    seen = seen.add(Transfer(100 * SMALL_BYTES, 1.0)).add(Transfer(100 * SMALL_BYTES, 2.0))
    assert seen.seconds(50 * SMALL_BYTES) == pytest.approx(0.005 + 1.0), "the lowest rate counts"
    assert math.isnan(Transfers().seconds(1))
    assert Transfers().seconds(0) == 0


def test_an_observation_without_news_is_no_change() -> None:
    assert observe(ONE, Observation(status(ONE.epoch, 9.9, 5))) is ONE
    later = observe(ONE, Observation(status(ONE.epoch + 1, 0.3, 20 * MB), ONE.epoch + 1))
    assert later.behind == 0
    assert started(later, 1, Steps(deploy=99.0), fresh=True) is later, "a start counts once"


def test_a_checkpoint_read_at_a_start_tells_how_fast_reading_is() -> None:
    read = started(ONE, 2, Steps(deploy=0.5, read_checkpoint=2.0), fresh=False, bytes_read=100 * MB)
    assert read.read.rate.low == pytest.approx(50 * MB)
    assert (read.start.high, read.fresh.high) == (0.5, 1.5)


def test_what_took_longer_than_predicted_corrects_the_next_prediction() -> None:
    before = total(WARM, Scheme.DEPLOYED) or 0.0
    other = total(WARM, Scheme.PASSIVE_STANDBY_HOT)
    slow = recovered(WARM, Error(Scheme.DEPLOYED, before, before, 1.5 * before, objective_s=2 * before))
    assert total(slow, Scheme.DEPLOYED) == pytest.approx(1.5 * before)
    again = estimate(slow, ship_every=1).error(Scheme.DEPLOYED, 1.5 * before)
    assert again is not None
    assert again.raw_s == pytest.approx(before), "a correction is not corrected"
    assert again.ratio == pytest.approx(1.0)
    assert estimate(History("counts[0]")).error(Scheme.DEPLOYED, 1.0) is None
    assert total(slow, Scheme.PASSIVE_STANDBY_HOT) == other
    quick = recovered(WARM, Error(Scheme.DEPLOYED, before, before, 0.5 * before))
    assert total(quick, Scheme.DEPLOYED) == pytest.approx(before), "luck changes nothing"
    beyond = recovered(WARM, Error(Scheme.DEPLOYED, before, before, 100 * before))
    assert total(beyond, Scheme.DEPLOYED) == pytest.approx(3 * before)


def test_errors_are_counted() -> None:
    errors = tuple(Error(Scheme.DEPLOYED, 1.0, 1.0, actual, 1.2) for actual in (0.5, 1.1, 1.2, 1.3, 2.0))
    assert [error.broken for error in errors] == [False, False, False, True, True]
    assert shortfall(errors) == pytest.approx(2 / 5)
    assert shortfall(()) == 0


def test_rows_and_columns_belong_together() -> None:
    assert len(ONE.row) == len(COLUMNS)
    assert estimate(ONE).to_data()["deployed"] is not None
