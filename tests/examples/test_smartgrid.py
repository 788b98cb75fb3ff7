"""The smart grid example: its readings, its oracle, and a run with a kill against that oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples.running import made, module, read, run_with_a_kill
from tests.oracles import smartgrid as oracle
from tests.oracles.lines import differences
from tests.oracles.rows import Row

HOUR = 3600
WORK, LOAD = 0, 1


def reading(minute: int, property: int, value: float, plug: int = 0, house: int = 0) -> Row:
    where = {"plug_id": plug, "household_id": 0, "house_id": house}
    return {"id": 0, "timestamp": 60 * minute, "value": value, "property": property, **where}


# The oracle, in cases small enough to see.


def test_a_load_is_the_mean_of_an_hour_that_is_over() -> None:
    rows = [reading(0, LOAD, 10.0), reading(59, LOAD, 20.001), reading(60, LOAD, 99.0)]
    assert oracle.loads_of(rows) == [oracle.Load(0, 15_000, False)]


def test_a_missing_load_follows_from_the_work() -> None:
    silent = [reading(0, WORK, 1.0), reading(0, LOAD, 5.0), reading(30, WORK, 1.001)]
    # Half a watt-hour until 3:30, after three hours: 166.666 mW on average.
    rows = [*silent, reading(210, WORK, 1.0015), reading(211, LOAD, 8.0), reading(240, LOAD, 1.0)]
    assert oracle.loads_of(rows) == [
        oracle.Load(0, 5000, False),
        oracle.Load(1, 166, True),
        oracle.Load(2, 166, True),
        oracle.Load(3, 8000, False),
    ]


def test_without_work_nothing_is_completed() -> None:
    rows = [reading(0, LOAD, 5.0), reading(180, LOAD, 7.0), reading(240, WORK, 1.0)]
    assert oracle.loads_of(rows) == [oracle.Load(0, 5000, False), oracle.Load(3, 7000, False)]


def test_a_prediction_lies_between_now_and_the_same_time_of_earlier_days() -> None:
    loads = {2: 50, 26: 100, 50: 300, 72: 40}
    assert oracle.prediction(loads, 72) == (40 + 100) // 2, "of the hours 2, 26 and 50"
    assert oracle.prediction({5: 40}, 5) == 40, "nothing else is known"
    assert oracle.prediction({2: 1000, 168 + 24: 40}, 168 + 24) == 40, "hour 2 is older than a week"


def test_a_house_is_the_sum_of_its_plugs_and_told_again_when_one_is_added() -> None:
    first = [reading(0, LOAD, 1.0, 0), reading(0, LOAD, 2.0, 1), reading(60, LOAD, 1.0, 0)]
    out = oracle.expected([first, [reading(61, LOAD, 1.0, 1)]])
    found = [[(row["plug"], row["slice"], row["load"]) for row in rows] for rows in out["predictions"]]
    assert found == [[(0, 2, 1000), (-1, 2, 1000)], [(1, 2, 2000), (-1, 2, 3000)]]
    assert out["loads"][1][0]["at"] == "1970-01-01T00:00:00Z"


def test_outliers_are_plugs_above_the_median_of_all() -> None:
    hours = [[reading(60 * hour, LOAD, watts, plug, house) for house, plug, watts in PLUGS] for hour in range(3)]
    # The loads are 1, 2, 5 and 9 W, so the median of all is 3.5 W.
    out = oracle.expected([hours[0], hours[1], hours[2]])["outliers"]
    assert [[(row["house"], row["percent"]) for row in rows] for rows in out] == [[], [(0, 0), (1, 50), (2, 100)], []]


PLUGS = [(0, 0, 1.0), (1, 0, 2.0), (1, 1, 5.0), (2, 0, 9.0)]


# The incremental model against the oracle, stored and restored at every step.

READINGS = st.lists(st.tuples(st.integers(0, 40), st.sampled_from((WORK, LOAD)), st.integers(0, 9)), max_size=30)


@given(READINGS)
def test_a_plug_remembers_enough(made: list[tuple[int, int, int]]) -> None:
    model: Any = module("smartgrid", "smartgrid_model")
    rows = [reading(15 * quarter, property, value) for quarter, property, value in sorted(made)]
    state: tuple[Any, ...] = ()
    found = []
    for row in rows:
        plug = model.Plug(*state)
        milli = round(row["value"] * (1e6 if row["property"] == WORK else 1000))
        found += [tuple(load) for load in plug.read(model.Reading(row["timestamp"], row["property"], milli))]
        state = tuple(vars(plug).values())
    assert found == [tuple(load) for load in oracle.loads_of(rows)]


@given(st.dictionaries(st.integers(0, 400), st.integers(0, 100), min_size=1))
def test_a_history_remembers_enough(loads: dict[int, int]) -> None:
    model: Any = module("smartgrid", "smartgrid_model")
    history = model.History()
    known: dict[int, int] = {}
    for hour, load in loads.items():
        known[hour] = load
        history = model.History(*history.state())
        history.add(hour, load)
        forgotten = hour < max(known) - oracle.WEEK
        assert history.predict(hour) == (None if forgotten else oracle.prediction(known, hour))


# The generator and the reader.


def test_generated_work_is_the_integral_of_the_load() -> None:
    made: Any = module("smartgrid", "smartgrid_readings")
    plug, at = np.arange(12), np.arange(0, 2 * 86_400, 10)
    for number in plug:
        watts = made._load(np.full(len(at), number), at)
        kwh = made._work(np.full(len(at), number), at)
        used = (kwh[-1] - kwh[0]) * 3.6e6
        assert used == pytest.approx(np.trapezoid(watts, at), rel=0.01)


def test_generated_readings_have_gaps_that_can_be_completed() -> None:
    epochs = made("smartgrid", 12, {"rate": "160", "seed": "2"})
    loads = [row for rows in oracle.expected(epochs)["loads"] for row in rows]
    completed = [row for row in loads if row["completed"]]
    assert 0.02 < len(completed) / len(loads) < 0.2
    assert {row["house"] for row in loads} == {0, 1, 2, 3}
    assert 10_000 < np.median([row["load"] for row in loads]) < 200_000
    for rows in epochs:
        assert [row["timestamp"] for row in rows] == sorted(row["timestamp"] for row in rows)


def test_the_challenge_s_format_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sorted.csv"
    path.write_text("2967740693,1377986401,82.042,0,1,0,12\n2967740694,1377986401,0.5,1,1,0,12\n")
    rows = read("smartgrid", 1, {"data": str(path)})[0]
    assert [(row["house_id"], row["plug_id"], row["property"], row["value"]) for row in rows] == [
        (12, 1, WORK, 82.042),
        (12, 1, LOAD, 0.5),
    ]


@pytest.mark.spark
def test_a_killed_node_changes_nothing(tmp_path: Path) -> None:
    settings = {"rate": "60", "houses": "2", "speed": "7200", "seed": "1"}
    report = run_with_a_kill("smartgrid", tmp_path, settings)
    expected = oracle.expected(made("smartgrid", report.epochs, settings))
    assert report.epochs * 4 > 26, "predictions look back at the day before"
    assert min(sum(map(len, epochs)) for epochs in expected.values()) > 4
    assert any(row["completed"] for rows in expected["loads"] for row in rows)
    assert differences(tmp_path, expected) == []
