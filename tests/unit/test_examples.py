"""The pure parts of the examples, against the simplest program that could be right."""

from __future__ import annotations

import csv
import gzip
import importlib
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.model.hashing import digest
from understudy.runtime.application import load
from understudy.sources import Generator

ROOT = Path(__file__).parents[2]
SAMPLE = Path(os.environ.get("UNDERSTUDY_DATA", ROOT.parent / "shared" / "data")) / "debs2015-rides-sample.csv.gz"
MINUTE = 60_000_000


@pytest.fixture(scope="module")
def taxi() -> Any:
    load(ROOT / "examples" / "taxi.py")
    return importlib.import_module("taxi_routes")


@pytest.fixture(scope="module")
def made() -> Any:
    load(ROOT / "examples" / "taxi.py")
    return importlib.import_module("taxi_rides")


def brute_force(rides: list[tuple[int, int]], window: int) -> list[list[tuple[int, int]] | None]:
    """The window counted anew for every ride."""
    answers: list[list[tuple[int, int]] | None] = []
    shown: list[int] = []
    for i in range(len(rides)):
        now = max(dropoff for dropoff, _ in rides[: i + 1])
        inside = [(dropoff, route) for dropoff, route in rides[: i + 1] if dropoff >= now - window]
        counts = Counter(route for _, route in inside)
        last = {route: dropoff for dropoff, route in sorted(inside)}
        ranked = sorted(counts, key=lambda route: (-counts[route], -last[route], route))[:10]
        answers.append(None if ranked == shown else [(route, counts[route]) for route in ranked])
        shown = ranked
    return answers


def in_two_lives(taxi: Any, rides: list[tuple[int, int]], window: int, cut: int) -> list[Any]:
    """The ranking, put to sleep and woken in between as it is between two epochs."""
    first = taxi.Ranking(window_us=window)
    answers = [first.add(*ride) for ride in rides[:cut]]
    second = taxi.Ranking(first.state(), window)
    return answers + [second.add(*ride) for ride in rides[cut:]]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 15)), max_size=60), st.integers(1, 30), st.data())
def test_ranking_equals_counting_anew(rides: list[tuple[int, int]], window: int, data: st.DataObject) -> None:
    load(ROOT / "examples" / "taxi.py")
    taxi = importlib.import_module("taxi_routes")
    if data.draw(st.booleans(), label="sorted"):
        rides = sorted(rides)
    cut = data.draw(st.integers(0, len(rides)))
    assert in_two_lives(taxi, rides, window, cut) == brute_force(rides, window)


def routes_of(taxi: Any, points: list[tuple[int, float, float, float, float]]) -> list[tuple[int, int]]:
    rides = []
    for dropoff, *numbers in points:
        start, end = taxi.cell(*numbers[:2]), taxi.cell(*numbers[2:])
        if start is not None and end is not None:
            rides.append((dropoff, taxi.route_code(start, end)))
    return sorted(rides)


def test_ranking_on_generated_rides(taxi: Any, made: Any) -> None:
    points = []
    for epoch in range(40):
        rng = np.random.default_rng([1, epoch])
        table = made.rides(epoch, 40, 60.0, rng)
        places = ("pickup_longitude", "pickup_latitude", "dropoff_longitude", "dropoff_latitude")
        columns = [table[name].to_pylist() for name in places]
        points += list(zip(table["dropoff_datetime"].cast("int64").to_pylist(), *columns, strict=True))
    rides = routes_of(taxi, [(int(second) * 1_000_000, *rest) for second, *rest in points])
    assert 0.9 * len(points) < len(rides) < len(points), "some dirt, not much"
    answers = in_two_lives(taxi, rides, 30 * MINUTE, 700)
    assert answers == brute_force(rides, 30 * MINUTE)
    assert sum(answer is not None for answer in answers) > 100
    assert max(count for answer in answers for _, count in answer or []) >= 4, "hot spots make frequent routes"


@pytest.mark.skipif(not SAMPLE.exists(), reason=f"the real rides are not at {SAMPLE}; set UNDERSTUDY_DATA")
def test_ranking_on_real_rides(taxi: Any) -> None:
    with gzip.open(SAMPLE, "rt") as file:
        rows = list(csv.reader(file))
    assert len(rows) == 10_004
    seconds = np.array([row[3].replace(" ", "T") for row in rows], "datetime64[us]").astype(np.int64).tolist()
    points = [(at, *map(float, row[6:10])) for at, row in zip(seconds, rows, strict=True)]
    rides = routes_of(taxi, points)
    assert 9_700 < len(rides) < 9_900
    assert in_two_lives(taxi, rides[::5], 20 * MINUTE, 1000) == brute_force(rides[::5], 20 * MINUTE)


def test_the_grid_is_the_challenge_s(taxi: Any) -> None:
    assert taxi.cell(-74.913585, 41.474937) == (1, 1)
    half_lon, half_lat = taxi.LON_STEP / 2, taxi.LAT_STEP / 2
    assert taxi.cell(-74.913585 - 0.99 * half_lon, 41.474937 + 0.99 * half_lat) == (1, 1)
    assert taxi.cell(-74.913585 + 1.01 * half_lon, 41.474937 - 1.01 * half_lat) == (2, 2)
    assert taxi.cell(-74.913585 + 299 * taxi.LON_STEP, 41.474937 - 299 * taxi.LAT_STEP) == (300, 300)
    assert taxi.cell(-74.913585 + 300 * taxi.LON_STEP, 41.474937) is None
    assert taxi.cell(-74.913585, 41.474937 + taxi.LAT_STEP) is None
    assert taxi.cell(0.0, 0.0) is None
    assert taxi.route_name(taxi.route_code((1, 2), (300, 4))) == "1.2-300.4"


def test_generated_rides_look_like_rides(made: Any) -> None:
    tables = [made.rides(epoch, 300, 60.0, np.random.default_rng(epoch)) for epoch in (0, 240, 1100)]
    night, small_hours, evening = (table.num_rows for table in tables)
    assert small_hours < night < evening
    for table in tables:
        dropoff = table["dropoff_datetime"].cast("int64").to_numpy()
        pickup = table["pickup_datetime"].cast("int64").to_numpy()
        assert (np.diff(dropoff) >= 0).all()
        assert (dropoff - pickup == table["trip_time_in_secs"].to_numpy()).all()
        assert 5 < table["fare_amount"].to_numpy().mean() < 30
        zero = table["pickup_latitude"].to_numpy() == 0
        assert zero.mean() < 0.1
    assert digest(tables[0]) == digest(made.rides(0, 300, 60.0, np.random.default_rng(0)))


@pytest.mark.parametrize("name", ["wordcount", "taxi"])
def test_examples_generate_the_same_rows_again(name: str) -> None:
    app = load(ROOT / "examples" / f"{name}.py")
    source = app.sources[0].source
    assert isinstance(source, Generator)
    digests = [[digest(source.open(0, 1, app.epoch_s).read(epoch, None, None)) for epoch in range(3)] for _ in range(2)]
    assert digests[0] == digests[1]
    assert len(set(digests[0])) == 3


def test_words_follow_zipf() -> None:
    app = load(ROOT / "examples" / "wordcount.py", {"rate": "1000"})
    table = app.sources[0].source.open(0, 1, 1.0).read(7, None, None)
    counts = Counter(word for text in table["text"].to_pylist() for word in text.split())
    assert counts.most_common(1)[0][0] == "the"
    assert counts["the"] > 1.5 * counts["and"] > 2 * counts["of"]
    times = table["at"].cast("int64").to_numpy()
    assert times.min() == 7_000_000
    assert times.max() < 8_000_000
