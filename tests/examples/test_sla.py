"""The service-level example: its requests, its sketch, its oracle, and a run with a kill against that oracle."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples.running import DATA, made, module, read, real, run_with_a_kill
from tests.oracles import sla as oracle
from tests.oracles.lines import differences
from tests.oracles.rows import Row

START = datetime(2026, 1, 1, tzinfo=UTC)
SAMPLE = "nab-ec2_request_latency_system_failure.csv.gz"


def request(minute: float, ms: float, service: str = "a") -> Row:
    return {"service": service, "timestamp": START + timedelta(minutes=minute), "value": ms}


# The oracle, in cases small enough to see.


@pytest.mark.parametrize(("percent", "value"), [(50, 20), (51, 30), (75, 30), (95, 40), (99, 40)])
def test_a_percentile_is_one_of_the_values(percent: int, value: int) -> None:
    assert oracle.exact([40, 10, 30, 20], percent) == value


def test_rounding_is_exact_for_small_values_and_within_one_per_cent_for_large_ones() -> None:
    assert [oracle.rounded(value) for value in (2, 3, 50, 99)] == [2, 3, 50, 99]
    for value in (250, 9_999, 1_234_567, 60_000_000):
        assert abs(oracle.rounded(value) - value) <= value / 100


def test_a_window_has_five_panes_and_ends_with_the_next_request() -> None:
    # Below 0.1 ms every microsecond has a bucket of its own.
    epochs = [[request(0.5, 0.01), request(0.6, 0.03)], [request(1, 0.02)], [request(6, 9.0)], [request(7, 1.0, "b")]]
    out = oracle.percentiles(epochs)
    found = [[(row["start"], row["requests"], row["p50"], row["p99"]) for row in rows] for rows in out]
    # The pane of minute 6 is not over: b's requests do not end a's.
    first, second = ("2026-01-01T00:00:00Z", 2, 10, 30), ("2026-01-01T00:01:00Z", 3, 20, 30)
    assert found == [[], [first], [second], []]
    late = oracle.percentiles([[request(6, 1.0)], [request(4, 5.0), request(0, 7.0)], [request(7, 1.0)]])
    assert [row["requests"] for row in late[2]] == [2], "one came late, and one too late"


def test_budgets_count_slow_requests() -> None:
    out = oracle.budgets([[request(0, 250.0), request(0, 250.001)], [request(1, 1.0, "b")], [request(1, 1.0)]])
    assert out[0] == [{"service": "a", "requests": 2, "slow": 1, "per_mille": 500}]
    assert out[1] == [{"service": "b", "requests": 1, "slow": 0, "per_mille": 0}]
    assert out[2] == [{"service": "a", "requests": 3, "slow": 1, "per_mille": 333}]


# The sketch against sorted lists, stored and restored at every step.


@given(st.lists(st.integers(0, 2_000_000_000), min_size=1, max_size=50), st.integers(1, 100))
def test_the_sketch_finds_the_bucket_of_the_exact_percentile(values: list[int], percent: int) -> None:
    sketch: Any = module("sla", "sla_sketch")
    counts: dict[int, int] = {}
    for value in values:
        counts[sketch.bucket(value)] = counts.get(sketch.bucket(value), 0) + 1
    found, exact = sketch.percentile(counts, percent), oracle.exact(values, percent)
    assert found == oracle.rounded(exact)
    assert abs(found - exact) <= exact / 99 + 1


def watched(epochs: list[list[Row]], pane_s: int) -> list[tuple[int, ...]]:
    """What the model finds for one service, restored for every epoch: requests and the three percentiles."""
    sketch: Any = module("sla", "sla_sketch")
    state: tuple[Any, ...] = ()
    found = []
    for rows in epochs:
        window = sketch.Window(oracle.PANES, *state)
        for row in rows:
            over = window.add((row["timestamp"] - oracle.EARLY) // timedelta(seconds=pane_s), oracle.micros(row))
            found += [] if over is None else [tuple(over)[1:]]
        state = window.state()
    return found


def flat(lines: list[list[Row]]) -> list[tuple[int, ...]]:
    return [(row["requests"], row["p50"], row["p95"], row["p99"]) for rows in lines for row in rows]


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 400)), max_size=40))
def test_the_window_remembers_enough(made: list[tuple[int, int]]) -> None:
    epochs = [[request(minute, ms)] for minute, ms in made]
    assert watched(epochs, 60) == flat(oracle.percentiles(epochs))


@real(SAMPLE)
def test_percentiles_of_real_latencies() -> None:
    settings = {"data": str(DATA / SAMPLE), "pane": "3600", "speed": "86400"}
    epochs = read("sla", 14, settings)
    assert sum(map(len, epochs)) > 3900
    found = watched(epochs, 3600)
    assert found == flat(oracle.percentiles(epochs, 3600))
    assert max(p99 for *_, p99 in found) > 1.5 * min(p99 for *_, p99 in found), "the failure shows"


# The generator and the reader.


def test_generated_incidents_move_the_tail_more_than_the_median() -> None:
    epochs = made("sla", 20, {"rate": "300", "seed": "3"})
    search = [row for rows in oracle.percentiles(epochs) for row in rows if row["service"] == "search"]
    calm, ill = search[12], search[-1]
    assert ill["p99"] > 2 * calm["p99"]
    assert ill["p50"] < 3 * calm["p50"]
    assert {row["service"] for rows in epochs for row in rows} >= {"search", "cart", "export"}


def test_a_series_of_latencies_is_read(tmp_path: Path) -> None:
    path = tmp_path / "latency.csv"
    path.write_text("timestamp,value\n2026-01-01 00:00:00,45.868\n2026-01-01 00:05:00,47.606\n")
    epochs = read("sla", 2, {"data": str(path), "speed": "300"})
    expected = [request(0, 45.868), request(5, 47.606)]
    assert [[{**row, "service": "a"} for row in rows] for rows in epochs] == [[row] for row in expected]


@pytest.mark.spark
def test_a_killed_node_changes_nothing(tmp_path: Path) -> None:
    settings = {"rate": "150", "seed": "6"}
    report = run_with_a_kill("sla", tmp_path, settings)
    expected = oracle.expected(made("sla", report.epochs, settings))
    assert min(sum(map(len, epochs)) for epochs in expected.values()) > 20
    assert differences(tmp_path, expected) == []
