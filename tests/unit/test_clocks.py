"""Clocks that step, and a manager that was stopped for a while: nobody is given up and no source waits for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.simulated.cluster import BEAT_S, Cluster
from tests.sites import a_context, deployed
from tests.snapshots import LINES

import understudy as us
from understudy.control.cluster.instructions import LoseNode
from understudy.model.messages import Begin
from understudy.model.run import Rhythm
from understudy.stream.source import SourceReplica

HOUR_S = 3600.0


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    made = Cluster(tmp_path, for_s=60.0)
    made.until(lambda: made.delivered > 2)
    return made


def lost(cluster: Cluster) -> list[str]:
    return [event.text for event in cluster.manager.events() if event.kind == "node_lost"]


@pytest.mark.parametrize("away_s", [0.4, 4.0, 400.0])
def test_a_manager_that_was_stopped_gives_nobody_up(cluster: Cluster, away_s: float) -> None:
    """Its clock went on, and it could not hear: the heartbeats of that time wait in its sockets, unread."""
    cluster.now += away_s
    assert not [i for i in cluster.manager.tick() if isinstance(i, LoseNode)]
    cluster.steps(2.0)
    assert lost(cluster) == []


def test_a_manager_that_was_stopped_suspects_nobody(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, scheme="passive_standby_hot", reaction="speculative")
    cluster.until(lambda: cluster.delivered > 2)
    cluster.steps(2.0)
    cluster.now += 0.5
    cluster.manager.tick()
    cluster.steps(1.0)
    assert "standing_in" not in {event.kind for event in cluster.manager.events()}


def test_a_node_that_died_meanwhile_is_still_noticed(cluster: Cluster) -> None:
    cluster.kill("node-1")
    cluster.now += 30.0
    cluster.steps(1.0)
    assert len(lost(cluster)) == 1, "only the manager's own pause is forgiven"


def test_a_manager_that_is_merely_busy_forgives_nothing(cluster: Cluster) -> None:
    cluster.nodes["node-1"].frozen = True
    cluster.steps(1.0)
    assert len(lost(cluster)) == 1


def test_a_limited_run_is_as_long_as_it_should_be_whatever_the_wall_clock_does(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, for_s=20.0)
    cluster.until(lambda: cluster.delivered > 2)
    began = cluster.now
    cluster.wall_offset = -HOUR_S
    cluster.until(lambda: cluster.manager.state().phase.over, seconds=60.0)
    assert cluster.now - began < 25.0


def begins(cluster: Cluster, name: str) -> Begin:
    """What a node that joins now is told."""
    node = cluster.start_node(name)
    told: list[Begin] = []
    obey = node.agent.obey

    def listen(message: Any) -> None:
        if isinstance(message, Begin):
            told.append(message)
        obey(message)

    node.agent.obey = listen  # type: ignore[method-assign]
    cluster.until(lambda: bool(told))
    return told[0]


@pytest.mark.parametrize("step_s", [-HOUR_S, HOUR_S])
def test_a_node_learns_the_age_of_the_rhythm_not_the_time_of_day(cluster: Cluster, step_s: float) -> None:
    first = begins(cluster, "node-8")
    at = cluster.now
    cluster.wall_offset = step_s
    second = begins(cluster, "node-9")
    assert second.age_s - first.age_s == pytest.approx(cluster.now - at, abs=2 * BEAT_S)


def test_a_restarted_manager_does_not_believe_a_clock_behind_what_was_delivered(cluster: Cluster) -> None:
    cluster.steps(5.0)
    delivered = cluster.delivered
    cluster.wall_offset = -HOUR_S
    cluster.restart_manager()
    told = begins(cluster, "node-9")
    assert told.age_s >= delivered * told.rhythm.epoch_s


def test_a_rhythm_is_moved_from_one_clock_to_another() -> None:
    rhythm = Rhythm(epoch=10, time=1_700_000_000.0, epoch_s=2.0)
    here = rhythm.anchored(now=500.0, age_s=7.0)
    assert (here.due(10), here.due(14)) == (493.0, 501.0)


def test_a_source_waits_by_the_clock_that_never_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of day steps back by an hour in the middle of a run: the next epoch is cut when it is due."""
    wall, now, waited = 1_700_000_000.0, 500.0, []
    monkeypatch.setattr("time.time", lambda: wall)
    topology = us.Topology("clocks", epoch="1 second")
    topology.source("lines", us.sources.Generator(lambda *_: pa.table({"n": [1]}), "n long", rate=1))
    rhythm = Rhythm(epoch=0, time=wall, epoch_s=topology.epoch_s).anchored(now=now, age_s=0.0)
    context = a_context(tmp_path, topology, rhythm=rhythm, clock=lambda: now)
    replica = SourceReplica(context, deployed(LINES))
    while replica.status().epoch < 3:
        seconds = replica.turn()
        assert seconds is not None
        waited.append(seconds)
        now += seconds
        if replica.status().epoch == 1:
            wall -= HOUR_S
    assert max(waited) == pytest.approx(topology.epoch_s)
