"""The second detector of Zhang et al. 2010, §IV-A: alarms by the time of a known piece of work."""

from __future__ import annotations

import pytest

from understudy.control.cluster.benchmarking import calibrated, score
from understudy.errors import InvalidInput
from understudy.runtime.benchmark_work import KnownWork


def test_it_asks_only_under_load() -> None:
    detector = calibrated([0.5, 0.1, 0.1, 0.11])
    assert (detector.load, detector.slow, detector.idle_s) == (0.8, 1.5, 0.1)
    assert not detector.asks(0.79)
    assert not detector.alarm(0.5, 10.0)
    assert not detector.alarm(0.9, 0.15)
    assert detector.alarm(0.9, 0.17)
    assert not detector.alarm(0.9, None)
    with pytest.raises(InvalidInput):
        calibrated([])


def test_detectors_are_scored_by_what_they_noticed() -> None:
    found = score([1.2, 1.4, 7.0, 21.0], [(1.0, 3.0), (10.0, 12.0), (20.0, 25.0)], 1800.0)
    assert (found.spikes, found.noticed, found.alarms, found.false_alarms) == (3, 2, 4, 1)
    assert found.delay_s == pytest.approx(0.6)
    assert found.false_per_hour == 2


def test_a_node_asks_itself_while_the_machine_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    work, detector = KnownWork(), calibrated([1e-9])
    load = 10.0
    monkeypatch.setattr("psutil.cpu_percent", lambda: load)
    assert not work._ask(detector)
    load = 95.0
    assert work._ask(detector), "nothing is done in a nanosecond"
    assert not work._ask(calibrated([3600.0])), "and everything within an hour"
