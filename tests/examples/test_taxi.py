"""The taxi example: its parts, its oracle, and whole runs with a kill against that oracle."""

from __future__ import annotations

import csv
import gzip
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples.running import DATA, app_file, made, module, read, real, run_with_a_kill
from tests.oracles import taxi as oracle
from tests.oracles.lines import Lines, differences
from tests.oracles.rows import Epochs, Row
from understudy.model.hashing import digest
from understudy.sources import Files
from understudy.testing.cluster import run

SAMPLE = "debs2015-rides-sample.csv.gz"
START = datetime(2013, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
MICROSECOND = timedelta(microseconds=1)
LINE = (
    "07290D3599E7A0D62097A346EFCC1FB5,E7750A37CAB07D0DFF0AF7E3573AC141,2013-01-01 00:00:00,2013-01-01 00:02:00,120,"
    "0.44,-73.956528,40.716976,-73.962440,40.715008,CSH,3.50,0.50,0.50,1.25,0.00,5.75\n"
)


def point(cell: tuple[int, int], metres: int = 500) -> tuple[float, float]:
    """Longitude and latitude of the middle of a cell."""
    part = metres / 500
    west, north = oracle.LONGITUDE - oracle.EAST / 2, oracle.LATITUDE + oracle.SOUTH / 2
    return west + (cell[0] - 0.5) * oracle.EAST * part, north - (cell[1] - 0.5) * oracle.SOUTH * part


def row(minute: float, start: tuple[int, int], end: tuple[int, int], taxi: str = "a", fare: float = 10.0) -> Row:
    """A ride of a minute between two cells of 250 m."""
    dropoff = START + minute * MINUTE
    (lon, lat), (to_lon, to_lat) = point(start, 250), point(end, 250)
    return {
        "medallion": taxi,
        "pickup_datetime": dropoff - MINUTE,
        "dropoff_datetime": dropoff,
        "pickup_longitude": lon,
        "pickup_latitude": lat,
        "dropoff_longitude": to_lon,
        "dropoff_latitude": to_lat,
        "fare_amount": fare,
        "tip_amount": 0.5,
    }


def shown(lines: Lines, column: str) -> list[list[Any]]:
    return [[line[column] for line in epoch] for epoch in lines]


# The oracle, in cases small enough to see.


def test_the_grid_is_the_challenge_s() -> None:
    assert oracle.cell(-74.913585, 41.474937, 500) == (1, 1)
    assert [oracle.cell(*point((600, 4), 250), metres) for metres in (500, 250)] == [(300, 2), (600, 4)]
    assert oracle.cell(*point((301, 1)), 500) is None
    assert oracle.cell(*point((1, 0)), 500) is None
    assert oracle.cell(0.0, 0.0, 250) is None


def test_the_oracle_counts_routes_for_half_an_hour() -> None:
    here, there = (2, 2), (10, 10)  # the large cells 1.1 and 5.5
    out = oracle.expected(
        [
            [row(0, here, there), row(1, there, here, "b"), row(1, (1, 1), there, "c")],
            [row(30, there, there)],
            [row(31, there, here)],
        ]
    )["routes"]
    assert shown(out, "routes") == [
        [["1.1-5.5"], ["1.1-5.5", "5.5-1.1"]],
        [["1.1-5.5", "5.5-5.5", "5.5-1.1"]],  # of one ride each, the fresher
        [["5.5-1.1", "5.5-5.5", "1.1-5.5"]],  # the first ride is older than half an hour
    ]
    assert shown(out, "rides") == [[[1], [2, 1]], [[2, 1, 1]], [[2, 1, 1]]]
    assert out[0][1] | {"routes": 0, "rides": 0} == {
        "pickup": "2013-01-01T00:00:00Z",
        "dropoff": "2013-01-01T00:01:00Z",
        "routes": 0,
        "rides": 0,
    }


def test_the_oracle_divides_the_median_by_the_empty_taxis() -> None:
    a, b = (7, 7), (9, 9)
    out = oracle.expected(
        [
            [row(0, a, b, "x", 20.0)],  # a earned something, nobody is empty there
            [row(1, b, a, "y", 30.0), row(2, a, a, "x", 10.0)],
            [row(17, b, b, "z", 8.0)],  # the trips of minutes 0 and 1 no longer count, their taxis do
        ]
    )["areas"]
    # In the first minute y stands in a, x in b. In the second x has left b for a, where the median is 15.50 by then.
    assert shown(out, "areas") == [[], [["9.9", "7.7"], ["7.7"]], [["9.9", "7.7"]]]
    assert shown(out, "empty") == [[], [[1, 1], [2]], [[1, 2]]]
    assert shown(out, "profit") == [[], [[3050.0, 2050.0], [1550.0]], [[850.0, 1050.0]]]
    assert shown(out, "profitability") == [[], [[3050.0, 2050.0], [775.0]], [[850.0, 525.0]]]


# The incremental windows against the oracle, put to sleep and woken at every epoch.


def micros(at: datetime) -> int:
    return (at - datetime.fromtimestamp(0, UTC)) // MICROSECOND


def by_second(rides: list[oracle.Ride]) -> list[tuple[int, list[oracle.Ride]]]:
    """The rides of each second, as the application takes them."""
    ordered = sorted(rides, key=lambda one: one.dropoff)
    return [(micros(at), list(together)) for at, together in groupby(ordered, key=lambda one: one.dropoff)]


def routes_of(epochs: list[list[oracle.Ride]]) -> list[list[list[int]]]:
    routes = module("taxi", "taxi_routes")
    codes = {route: code for code, route in enumerate(sorted({one.route for rides in epochs for one in rides}))}
    state, found = None, []
    for rides in epochs:
        ranking = routes.Ranking(state)
        tops = []
        for at, together in by_second(rides):
            counts = {codes[one.route]: sum(other.route == one.route for other in together) for one in together}
            tops.append(ranking.second(at, counts.items()))
        found.append([[count for _, count in top] for top in tops if top is not None])
        state = ranking.state()
    return found


def areas_of(epochs: list[list[oracle.Ride]]) -> list[list[list[tuple[int, float]]]]:
    areas = module("taxi", "taxi_areas")
    cells = {cell: code for code, cell in enumerate(sorted({c for rides in epochs for one in rides for c in one.area}))}
    state, found = None, []
    for rides in epochs:
        window = areas.Areas(state)
        tops = []
        for at, together in by_second(rides):
            trips = [
                areas.Trip(micros(one.pickup), cells[one.area[1]], cells[one.area[0]], one.cents, hash(one.taxi))
                for one in together
            ]
            tops.append(window.second(at, trips))
        found.append([[(area.empty, area.twice_profit / 2) for area in top] for top in tops if top is not None])
        state = window.state()
    return found


CELLS = st.tuples(st.integers(1, 3), st.integers(1, 2))
RIDES = st.builds(
    lambda minute, start, end, taxi, fare: oracle.ride(row(minute, start, end, taxi, fare)),
    st.integers(0, 70),
    CELLS,
    CELLS,
    st.sampled_from("abcde"),
    st.integers(3, 6),
)


@settings(max_examples=100)
@given(st.lists(RIDES, min_size=1, max_size=40), st.integers(1, 30))
def test_the_windows_show_what_counting_anew_shows(rides: list[oracle.Ride], minutes: int) -> None:
    ordered = sorted(rides, key=lambda one: one.dropoff)
    cut = groupby(ordered, key=lambda one: (one.dropoff - START) // (minutes * MINUTE))
    epochs = [list(together) for _, together in cut]
    routes, areas = oracle.changes(epochs, oracle.top_routes), oracle.changes(epochs, oracle.top_areas)
    assert routes_of(epochs) == shown(routes, "rides")
    pairs = [[list(zip(line["empty"], line["profit"], strict=True)) for line in epoch] for epoch in areas]
    assert areas_of(epochs) == pairs


def test_a_count_that_comes_again_replaces_the_one_before() -> None:
    ranking = module("taxi", "taxi_routes").Ranking()
    assert ranking.second(1, [(7, 1), (8, 2)]) == [(8, 2), (7, 1)]
    assert ranking.second(1, [(7, 3)]) == [(7, 3), (8, 2)]


# The generator and the reader.


def test_generated_rides_look_like_rides() -> None:
    made = module("taxi", "taxi_rides")
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


def test_the_challenge_s_format_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rides.csv"
    path.write_text(LINE + LINE.replace("00:02:00", "00:03:30"))
    epochs = read("taxi", 2, {"data": str(path)})
    assert [len(rows) for rows in epochs] == [1, 1]
    ride = oracle.ride(epochs[0][0])
    assert ride is not None
    assert (ride.pickup, ride.dropoff - ride.pickup, ride.cents) == (START, 2 * MINUTE, 475)
    assert ride.route == ((161, 170), (160, 170))
    assert ride.area == ((321, 339), (319, 340))


def test_the_schema_is_the_file_s() -> None:
    schema = Files(__file__, "csv", module("taxi", "taxi_rides").SCHEMA, rate=1).schema
    assert isinstance(schema, pa.Schema)
    assert len(schema.names) == len(LINE.split(","))


# Whole runs.


@pytest.mark.spark
def test_a_killed_node_changes_nothing(tmp_path: Path) -> None:
    settings = {"rate": "60", "speed": "300", "seed": "5"}
    report = run_with_a_kill("taxi", tmp_path, settings)
    expected = oracle.expected(made("taxi", report.epochs, settings))
    assert report.epochs * 5 > 35, "rides leave both windows"
    assert min(sum(map(len, epochs)) for epochs in expected.values()) > 30
    assert differences(tmp_path, expected) == []


def real_rides(epoch: timedelta) -> Epochs:
    """The sample, read with Python's own means and cut by drop-off."""
    with gzip.open(DATA / SAMPLE, "rt") as file:
        rows = [real_ride(fields) for fields in csv.reader(file)]
    assert len(rows) == 10_004
    numbers = [(one["dropoff_datetime"] - rows[0]["dropoff_datetime"]) // epoch for one in rows]
    return [[one for one, at in zip(rows, numbers, strict=True) if at == n] for n in range(numbers[-1] + 1)]


def real_ride(fields: list[str]) -> Row:
    places = ("pickup_longitude", "pickup_latitude", "dropoff_longitude", "dropoff_latitude")
    pickup, dropoff = (datetime.fromisoformat(f"{text}+00:00") for text in fields[2:4])
    money = {"fare_amount": float(fields[11]), "tip_amount": float(fields[14])}
    where = dict(zip(places, map(float, fields[6:10]), strict=True))
    return {"medallion": fields[0], "pickup_datetime": pickup, "dropoff_datetime": dropoff, **where, **money}


@pytest.mark.spark
@real(SAMPLE)
def test_both_queries_on_real_rides(tmp_path: Path) -> None:
    settings = {"data": str(DATA / SAMPLE), "speed": "240"}
    report = run(app_file("taxi"), tmp_path, nodes=2, backlog=4, settings=settings, faults=["kill:node-2@epoch6"])
    assert report.verdict == "exact", report.failure
    assert report.epochs == 14
    expected = oracle.expected(real_rides(timedelta(seconds=240)))
    assert min(sum(map(len, epochs)) for epochs in expected.values()) > 50
    assert differences(tmp_path, expected) == []
