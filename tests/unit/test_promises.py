"""Kept promises need no words; broken ones get a reason."""

from __future__ import annotations

from understudy.model.recovery import Scheme
from understudy.reporting.promises import missed

HOT, PASSIVE = Scheme.PASSIVE_STANDBY_HOT, Scheme.PASSIVE_REPLICATION
STEPS = {"detect": 0.3, "replay": 1.5, "first_bag": 0.4, "idle": 9.0}


def test_no_promise_and_a_kept_one() -> None:
    assert missed(None, 99.0, HOT, HOT, STEPS, STEPS) is None
    assert missed(2.0, 2.0, HOT, HOT, STEPS, STEPS) is None


def test_every_miss_has_a_cause() -> None:
    assert "passive standby hot was not established yet" in (missed(1.0, 2.2, HOT, PASSIVE, STEPS, STEPS) or "")
    assert "too little was known" in (missed(1.0, 2.2, HOT, HOT, STEPS, None) or "")
    predicted = {"detect": 0.4, "replay": 0.3, "first_bag": 0.3}
    assert (
        missed(1.0, 2.2, HOT, HOT, STEPS, predicted)
        == "away for 2.20 s instead of 1 s: replay took 1.50 s, 0.30 s were predicted"
    )
    assert "as predicted" in (missed(1.0, 2.2, HOT, HOT, STEPS, STEPS) or "")
