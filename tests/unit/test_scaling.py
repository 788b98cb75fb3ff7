"""The number of nodes follows the work: policies, their limits, and nodes that come and go on the simulated cluster."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import word_count
from tests.simulated.work import Work, in_steps, oracle_node_s
from tests.unit.test_enactment import Died, die_after

from understudy.control.scaling import POLICIES, named
from understudy.control.scaling.demand import nodes_for
from understudy.control.scaling.limits import bounded, due
from understudy.control.scaling.sample import Sample, Wish
from understudy.errors import InvalidInput
from understudy.model.config import ScalingSection
from understudy.model.recovery import Scheme
from understudy.model.run import RunSpec
from understudy.runtime.busy_cores import BusyCores
from understudy.runtime.node_commands import NodeCommands
from understudy.runtime.prepare import check

LIMITS = ScalingSection(policy="target_cpu", schedule="08:00=4, 20:00=2")
HOUR = 3600.0


def sample(age_s: float = 0.0, nodes: int = 2, busy: float = 1.0, behind: int = 0, at: float = 0.0) -> Sample:
    return Sample(age_s, at, nodes, busy, 1, behind)


# -- policies


@pytest.mark.parametrize("policy", POLICIES)
@given(busy=st.lists(st.floats(0.0, 20.0), min_size=1, max_size=20), nodes=st.integers(1, 20))
def test_a_policy_says_the_same_twice_with_a_reason(policy: str, busy: list[float], nodes: int) -> None:
    history = [sample(2.0 * number, nodes, cores) for number, cores in enumerate(busy)]
    wish = named(policy)(history, LIMITS)
    assert wish == named(policy)(history, LIMITS)
    assert wish.nodes >= 1
    assert wish.reason


@given(busy=st.floats(0.01, 50.0), nodes=st.integers(1, 40))
def test_work_that_stays_the_same_changes_the_number_once(busy: float, nodes: int) -> None:
    """Whatever number there is: the number it leads to is kept."""
    first = nodes_for(busy, sample(nodes=nodes), LIMITS, "").nodes
    assert nodes_for(busy, sample(nodes=first), LIMITS, "").nodes == first


def test_the_target_has_a_band_around_it() -> None:
    wishes = [nodes_for(busy, sample(nodes=2), LIMITS, "").nodes for busy in (0.4, 0.6, 1.2, 1.37, 1.39, 3.0)]
    assert wishes == [1, 2, 2, 2, 3, 5]


def test_who_lags_gets_a_node_and_who_keeps_up_gives_one_back() -> None:
    lag = named("lag")
    assert lag([sample(behind=7)], LIMITS).nodes == 3
    assert lag([sample(behind=3), sample(2.0, busy=0.1)], LIMITS).nodes == 2, "it was behind lately"
    assert lag([sample(nodes=4, busy=0.1)], LIMITS).nodes == 3, "one at a time"
    assert lag([sample(busy=1.1)], LIMITS).nodes == 2, "the other one would not do"


@pytest.mark.parametrize(("hour", "nodes"), [(7.9, 2), (8.0, 4), (19.9, 4), (20.0, 2), (0.0, 2)])
def test_a_schedule_holds_from_its_time_of_day_on(hour: float, nodes: int) -> None:
    assert named("schedule")([sample(at=86_400 * 20_000 + hour * HOUR)], LIMITS).nodes == nodes


def test_a_trend_is_seen_ahead() -> None:
    rising = [sample(2.0 * n, 2, 0.5 + 0.02 * n) for n in range(31)]
    assert named("target_cpu")(rising, LIMITS).nodes == 2
    assert named("predictive")(rising, LIMITS).nodes == 3
    falling = [sample(2.0 * n, 3, 2.0 - 0.02 * n) for n in range(31)]
    assert named("predictive")(rising[:5], LIMITS).nodes == 2, "too short for a trend"
    assert named("predictive")(falling, LIMITS).nodes == 3, "never below what is needed now"


# -- limits


def test_bounds_and_protection_hold() -> None:
    assert bounded(Wish(9, ""), LIMITS, 1).nodes == 4
    assert bounded(Wish(1, ""), LIMITS, 2).nodes == 2
    assert bounded(Wish(1, ""), LIMITS.model_copy(update={"min_nodes": 3}), 1).nodes == 3


def test_more_at_once_and_fewer_after_a_whole_cool_down() -> None:
    long, short = [sample(0.0), sample(120.0)], [sample(0.0), sample(60.0)]
    assert due(Wish(3, ""), short, [3], None, LIMITS)
    assert not due(Wish(3, ""), short, [3], 0.0, LIMITS), "the number has just changed"
    assert not due(Wish(1, ""), short, [1, 1], None, LIMITS)
    assert due(Wish(1, ""), long, [1, 1], None, LIMITS)
    assert not due(Wish(1, ""), long, [1, 2, 1], None, LIMITS), "more were wanted in between"


@pytest.mark.parametrize(
    ("section", "named_"),
    [
        ({"policy": "guess"}, "target_cpu, lag, schedule, predictive"),
        ({"policy": "lag", "min_nodes": 5}, "between them"),
        ({"policy": "schedule"}, "08:00=4"),
        ({"policy": "schedule", "schedule": "25:00=3"}, "08:00=4"),
        ({"policy": "lag", "start_command": "true"}, "all three"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_starts(section: dict[str, Any], named_: str) -> None:
    with pytest.raises(InvalidInput, match=named_):
        check(RunSpec.of("r", "app.py", config={"scaling": section}), word_count(), ())


def test_cores_are_measured_over_a_while_and_per_process() -> None:
    cores = BusyCores()
    for now, cpu_s in ((0.0, 5.0), (1.0, 5.4), (2.0, 6.0), (3.0, 0.1), (5.0, 1.1)):
        cores.hear("node-1", cpu_s, now)
        if now == 2.0:
            assert cores.busy() == {"node-1": 0.5}
    assert cores.busy() == {"node-1": 0.5}
    cores.hear("node-2", 0.0, 40.0)
    cores.hear("node-2", 2.0, 42.0)
    assert cores.busy() == {"node-2": 1.0}, "node-1 was not heard from for too long"


# -- nodes come and go


def kinds(work: Work) -> list[str]:
    return [event.kind for event in work.cluster.store.events()]


def finish(work: Work) -> None:
    cluster = work.cluster
    cluster.store.keep({"goal": cluster.delivered + 10})
    cluster.restart_manager()
    cluster.until(lambda: cluster.over)
    cluster.check_output()
    assert cluster.manager.report().verdict == "exact"


def test_nodes_come_with_the_work_and_go_with_it() -> None:
    work = Work(in_steps)
    work.until(lambda: len(work.cluster.nodes) == 3)
    assert work.elapsed > 200
    work.until(lambda: work.elapsed > 700.0, 700.0)
    assert len(work.cluster.nodes) == 1
    assert work.node_s <= 1.25 * oracle_node_s()
    assert kinds(work).count("node_left") == 2
    assert "node_lost" not in kinds(work)
    assert not {"assigned", "promoted"} & set(kinds(work)[kinds(work).index("scaled") :]), "all of it by moves"
    finish(work)


def test_nobody_scales_unless_asked() -> None:
    work = Work(lambda _: 3.0, scaling={"policy": None})
    work.steps(60.0)
    assert "scaled" not in kinds(work)


def test_a_secondary_keeps_a_second_node() -> None:
    work = Work(lambda _: 0.1, nodes=4, scheme=Scheme.PASSIVE_STANDBY_HOT)
    work.until(lambda: len(work.cluster.nodes) == 2)
    work.steps(80.0)
    assert len(work.cluster.nodes) == 2
    finish(work)


def test_a_node_that_dies_meanwhile_spoils_nothing() -> None:
    work = Work(lambda elapsed: 1.5 if elapsed < 60 else 0.3)
    work.until(lambda: len(work.cluster.nodes) == 3)
    work.steps(3.0)
    work.cluster.kill("node-2")
    work.until(lambda: work.elapsed > 60 and len(work.cluster.nodes) == 1, 400.0)
    finish(work)


@pytest.mark.parametrize("grows", [True, False])
def test_a_manager_that_dies_anywhere_neither_forgets_nor_repeats_it(grows: bool) -> None:
    for instructions in range(12):
        work = Work(lambda _: 1.0 if grows else 0.2, nodes=1 if grows else 2)
        die_after(work.cluster, instructions)
        try:
            work.until(lambda w=work: "scaled" in kinds(w))  # type: ignore[misc]
            work.steps(15.0)
        except Died:
            work.cluster.restart_manager()
        wanted = 2 if grows else 1
        work.until(lambda w=work, n=wanted: len(w.cluster.nodes) == n and w.cluster.settled())  # type: ignore[misc]
        work.steps(10.0)
        assert len(work.cluster.nodes) == wanted
        assert work.cluster.manager.memory.grown == int(grows)
    finish(work)


# -- nodes elsewhere


def test_commands_start_list_and_stop_nodes(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()

    def script(name: str, line: str) -> str:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    limits = ScalingSection(
        policy="lag",
        start_command=script("start", f'echo "$UNDERSTUDY_URL $UNDERSTUDY_TOKEN" > {there}/$UNDERSTUDY_NODE'),
        stop_command=script("stop", f"rm {there}/$UNDERSTUDY_NODE"),
        list_command=script("list", f"ls {there}"),
    )
    told: list[str] = []
    commands = NodeCommands(limits, "http://here:1", "secret", told.append)
    for name in ("node-2", "node-3"):
        commands.start(name)
    assert commands.running() == {"node-2", "node-3"}
    assert (there / "node-2").read_text().split() == ["http://here:1", "secret"]
    commands.look({"node-1"}, 100.0)
    assert commands.running() == {"node-2", "node-3"}, "they have not joined yet"
    commands.look({"node-1", "node-2", "node-3"}, 200.0)
    commands.look(set(), 205.0)
    assert commands.running() == {"node-2", "node-3"}, "the manager may only have been restarted"
    commands.look({"node-1", "node-3"}, 206.0)
    commands.look({"node-1", "node-3"}, 231.0)
    assert commands.running() == {"node-3"}
    commands.stop_all()
    assert commands.running() == set()
    assert told == []


def test_a_command_that_fails_is_told_and_the_run_goes_on() -> None:
    told: list[str] = []
    limits = ScalingSection(start_command="false", stop_command="true", list_command="/nowhere/list")
    NodeCommands(limits, "http://here:1", "secret", told.append).start("node-2")
    assert len(told) == 2
    assert "false failed for node-2" in told[1]
    assert "secret" not in "".join(told)
