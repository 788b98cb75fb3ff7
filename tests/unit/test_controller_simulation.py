"""The simulator of the controller: deterministic, honest about misses, and shaped as in Martin 2015, chapter 7."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from understudy.cli.main import app
from understudy.control.schemes.objectives import Settings
from understudy.errors import InvalidInput
from understudy.model.capabilities import LADDER
from understudy.model.costs import PAY_PER_MACHINE
from understudy.model.recovery import ACTIVE, Guarantee, Scheme
from understudy.simulate.controller_machine import MB, Machine, Situation, recover
from understudy.simulate.controller_result import Result, Study
from understudy.simulate.controller_run import simulate
from understudy.simulate.controller_trace import Trace, Workload, read_trace, synthetic, to_lines


@pytest.fixture(scope="module")
def trace() -> Trace:
    return synthetic(Workload(), slices=6, epochs=90, seed=1)


@pytest.fixture(scope="module")
def results(trace: Trace) -> dict[float, Result]:
    return {objective: simulate(trace, Study(objective, kills=8, seed=2)) for objective in (0.0, 1.0, 3.0, 20.0)}


def test_more_time_costs_less(results: dict[float, Result]) -> None:
    cpu = [result.costs["cpu"] for result in results.values()]
    assert cpu == sorted(cpu, reverse=True)
    assert cpu[0] == pytest.approx(1.0)
    assert results[3.0].costs["cpu"] < 0.6
    assert results[0.0].shares[Scheme.ACTIVE_REPLICATION] > 0.9
    assert results[20.0].shares[Scheme.PASSIVE_REPLICATION] > 0.5
    assert all(sum(result.shares.values()) == pytest.approx(1.0) for result in results.values())


def test_an_established_scheme_keeps_its_promise_and_misses_have_causes(results: dict[float, Result]) -> None:
    for result in results.values():
        assert len(result.kills) == 8
        assert not result.broken_established
        assert all(kill.cause for kill in result.broken)
        assert result.shortfall <= 0.05


def test_changes_are_a_cool_down_apart(results: dict[float, Result]) -> None:
    gaps = [result.closest_changes_s for result in results.values() if result.closest_changes_s is not None]
    assert min(gaps) >= Settings().cool_down_s


def test_machines_as_the_only_price_leave_nothing_in_between(trace: Trace) -> None:
    for objective in (2.0, 8.0):
        shares = simulate(trace, Study(objective, settings=Settings(costs=PAY_PER_MACHINE), kills=0)).shares
        assert shares[Scheme.ACTIVE_REPLICATION] + shares[Scheme.PASSIVE_REPLICATION] > 0.97


def test_the_same_seed_gives_the_same_answer(trace: Trace) -> None:
    first, second, other = (simulate(trace, Study(2.0, kills=5, seed=seed)).to_data() for seed in (3, 3, 4))
    assert first == second
    assert first != other


def test_state_from_kilobytes_to_gigabytes_is_met_by_staying_safe() -> None:
    rng = np.random.default_rng(0)
    shape = (120, 4)
    sizes = 10 ** rng.uniform(3, 9.3, shape)
    batches = 10 ** rng.uniform(-1, 0.3, shape)
    wild = Trace(tuple(f"wild[{n}]" for n in range(4)), 1.0, np.full(shape, 1e4), sizes, batches, "erratic")
    result = simulate(wild, Study(5.0, kills=8, seed=5))
    assert result.closest_changes_s is None or result.closest_changes_s >= 5.0
    assert result.margins[1] > 2 * result.margins[0]
    assert not result.broken_established
    assert result.shares[Scheme.ACTIVE_STANDBY] + result.shares[Scheme.ACTIVE_REPLICATION] > 0.5


@pytest.mark.parametrize("guarantee", list(Guarantee))
def test_recoveries_take_longer_down_the_ladder(guarantee: Guarantee) -> None:
    batches = np.full(3, 0.3)
    times = []
    for scheme in LADDER:
        rounds = [
            recover(Machine(), Situation(scheme, guarantee, 100 * MB, batches, room=True), np.random.default_rng(seed))
            for seed in range(20)
        ]
        times.append(np.mean([actual.total for actual in rounds]))
    assert times == sorted(times, reverse=True)
    assert times[-1] == 0.0


def test_traces_are_written_and_read(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(to_lines(trace)))
    read = read_trace(path)
    assert read.slices == trace.slices
    assert np.allclose(read.batch_s, trace.batch_s, atol=1e-5)
    assert np.allclose(read.state_bytes, trace.state_bytes, atol=1e-5)
    for text in ("", "{", '{"slice": "a[0]"}'):
        path.write_text(text)
        with pytest.raises(InvalidInput):
            read_trace(path)


def test_missing_epochs_repeat_what_was_last_seen(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    lines = [
        {"slice": "a[0]", "epoch": epoch, "rows_in": epoch, "state_bytes": 1, "batch_s": 0.1} for epoch in (4, 5, 8)
    ]
    path.write_text("\n".join(json.dumps(line) for line in lines))
    assert read_trace(path).rows[:, 0].tolist() == [4, 5, 5, 5, 8]


def _run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["controller", "simulate", *arguments])
    assert result.exit_code == code, result.output
    return result.stdout


def test_the_command_prints_json_and_a_table() -> None:
    small = ("--slices", "3", "--epochs", "30", "--kills", "4", "--objective", "0,20")
    data = json.loads(_run(*small, "--json"))
    assert [result["objective_s"] for result in data["results"]] == [0, 20]
    assert data["results"][0]["simulated"] is True
    assert set(data["results"][0]["shares"]) == {scheme.value for scheme in LADDER}
    assert "always-active" in _run(*small, "--shape", "spikes")
    assert set(LADDER) > ACTIVE


@pytest.mark.parametrize("wrong", ["--objective=soon", "--costs=free", "--shape=square", "--guarantee=x"])
def test_the_command_refuses_what_means_nothing(wrong: str) -> None:
    _run(wrong, "--slices", "1", "--epochs", "5", code=2)
