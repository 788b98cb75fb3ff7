"""Missed heartbeats, in any order: a primary that returns goes on, and one failure is answered once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.control.benchmarking import calibrated, score
from understudy.control.reactions import (
    Action,
    Ignore,
    NodeSign,
    Patience,
    Phase,
    Promote,
    Reaction,
    RollBack,
    Secondary,
    SliceSign,
    Vigil,
    Wake,
    react,
    sign_of,
)
from understudy.errors import InvalidInput
from understudy.model.snapshot import NodeView

PATIENCE = Patience()
CALM = SliceSign("counts[0]", "node-1", 1, Reaction.SPECULATIVE, Secondary.SUSPENDED, "node-2", 10, 9)

heard = st.tuples(st.integers(0, 40), st.booleans())
obeys = st.booleans()


class World:
    """A slice, its two nodes, and a secondary that does as it is told, sooner or later."""

    def __init__(self, sign: SliceSign) -> None:
        self.sign, self.vigil, self.now = sign, Vigil(), 0.0
        self.said: list[Action] = []

    def step(self, primary: NodeSign, standby: NodeSign, obeys: bool = True, standby_epoch: int = 0) -> Action | None:
        self.now += 0.1
        self.sign = replace(self.sign, standby_epoch=max(self.sign.standby_epoch, standby_epoch))
        response = react([primary, standby], [self.sign], self.vigil, PATIENCE, self.now)
        self.vigil = response.vigil
        action = response.actions[0] if response.actions else None
        self.said += response.actions
        if obeys and isinstance(action, Wake):
            self.sign = replace(self.sign, secondary=Secondary.AWAKE)
        if obeys and isinstance(action, RollBack):
            self.sign = replace(self.sign, secondary=Secondary.SUSPENDED)
        return action

    @property
    def phase(self) -> Phase:
        return self.vigil.watches[self.sign.slice].phase


@settings(deadline=None)
@given(st.sampled_from(Reaction), st.lists(st.tuples(heard, heard, obeys), min_size=1, max_size=40))
def test_a_returned_primary_always_goes_on_and_is_given_up_once(
    reaction: Reaction, steps: list[tuple[tuple[int, bool], tuple[int, bool], bool]]
) -> None:
    world = World(replace(CALM, reaction=reaction))
    before = Phase.CALM
    for (misses, connected), (other, reachable), obeys in steps:
        primary = NodeSign("node-1", misses, connected)
        action = world.step(primary, NodeSign("node-2", other, reachable), obeys)
        if before is Phase.AWAKE and primary.answers:
            assert isinstance(action, RollBack)
        if before is Phase.PROMOTED:
            assert isinstance(action, Ignore), "what is promoted stays promoted"
        if primary.answers and before is not Phase.PROMOTED:
            assert world.phase is Phase.CALM
        if reaction is Reaction.CONSERVATIVE:
            assert not isinstance(action, Wake)
        before = world.phase
    counts = world.vigil.counts
    assert sum(isinstance(action, Promote) for action in world.said) <= 1
    assert counts.promotions == sum(isinstance(action, Promote) for action in world.said)
    assert counts.wakes >= counts.roll_backs >= counts.false_alarms


@settings(deadline=None)
@given(st.integers(1, 29), st.integers(0, 20))
def test_a_pause_wakes_rolls_back_and_reads_back(pause: int, ahead: int) -> None:
    world = World(CALM)
    there = NodeSign("node-2")
    assert world.step(NodeSign("node-1"), there) is None
    for missed in range(1, pause + 1):
        action = world.step(NodeSign("node-1", missed), there, standby_epoch=CALM.epoch + ahead)
        assert isinstance(action, Wake) == (missed == 1)
    back = world.step(NodeSign("node-1"), there)
    assert isinstance(back, RollBack)
    assert back.read_back == (CALM.epoch + ahead if ahead else None)
    counts = world.vigil.counts
    assert (counts.wakes, counts.roll_backs, counts.promotions) == (1, 1, 0)
    assert counts.false_alarms == (0 if ahead else 1)
    assert counts.awake_s == pytest.approx(0.1 * pause)
    assert world.step(NodeSign("node-1"), there) is None


def test_a_long_silence_promotes_for_good() -> None:
    world = World(CALM)
    actions = [world.step(NodeSign("node-1", missed), NodeSign("node-2")) for missed in range(1, 35)]
    assert isinstance(actions[0], Wake)
    assert [number for number, action in enumerate(actions, 1) if isinstance(action, Promote)] == [30]
    promoted = actions[29]
    assert promoted == Promote("counts[0]", 1, "node-2", "node-1 missed 30 heartbeats")
    assert isinstance(world.step(NodeSign("node-1"), NodeSign("node-2")), Ignore), "too late"
    # The runtime has made the secondary the primary: a new generation, and a new failure counts again.
    world.sign = replace(CALM, node="node-2", standby="node-1", generation=2)
    assert world.step(NodeSign("node-2"), NodeSign("node-1")) is None
    assert isinstance(react([NodeSign("node-1")], [world.sign], world.vigil, PATIENCE, 9.0).actions[0], Promote)


def test_a_broken_connection_is_nearly_proof() -> None:
    world = World(replace(CALM, reaction=Reaction.CONSERVATIVE))
    broken = [NodeSign("node-1", misses, connected=False) for misses in (1, 2, 3)]
    kinds = [type(world.step(node, NodeSign("node-2"))) for node in broken]
    assert kinds == [Ignore, Ignore, Promote]


@pytest.mark.parametrize("secondary", [Secondary.ABSENT, Secondary.WORKING])
def test_nobody_is_woken_who_is_absent_or_works_anyway(secondary: Secondary) -> None:
    world = World(replace(CALM, secondary=secondary))
    assert isinstance(world.step(NodeSign("node-1", 2), NodeSign("node-2")), Ignore)
    gone = world.step(NodeSign("node-1", 30), NodeSign("node-2"))
    assert gone == Promote(
        "counts[0]", 1, None if secondary is Secondary.ABSENT else "node-2", "node-1 missed 30 heartbeats"
    )


def test_two_silent_nodes_wake_nobody() -> None:
    world = World(CALM)
    assert isinstance(world.step(NodeSign("node-1", 2), NodeSign("node-2", 2)), Ignore)
    assert isinstance(world.step(NodeSign("node-1", 3), NodeSign("node-2")), Wake)


def test_an_order_that_was_lost_is_given_again_and_counted_once() -> None:
    world = World(CALM)
    orders = [world.step(NodeSign("node-1", missed), NodeSign("node-2"), obeys=False) for missed in (1, 2, 3)]
    assert all(isinstance(order, Wake) for order in orders)
    assert world.vigil.counts.wakes == 1
    # A manager that was restarted finds a secondary awake beside a healthy primary.
    fresh = react(
        [NodeSign("node-1"), NodeSign("node-2")], [replace(CALM, secondary=Secondary.AWAKE)], Vigil(), PATIENCE, 0
    )
    assert isinstance(fresh.actions[0], RollBack)


def test_a_heartbeat_is_missed_when_it_is_clearly_late() -> None:
    silences = (0.0, 0.1, 0.14, 0.16, 0.26, 3.1)
    signs = [sign_of(NodeView("n", connected=True, ready=True, silent_s=silent), 0.1) for silent in silences]
    assert [sign.misses for sign in signs] == [0, 0, 0, 1, 2, 30]
    assert not sign_of(NodeView("n", connected=False, ready=True, silent_s=0.0), 0.1).answers


def test_the_benchmark_detector_asks_only_under_load() -> None:
    detector = calibrated([0.5, 0.1, 0.1, 0.11])
    assert (detector.load, detector.slow) == (0.8, 1.5)
    assert detector.idle_s == pytest.approx(0.105)
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
