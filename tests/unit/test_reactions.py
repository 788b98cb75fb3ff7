"""Missed heartbeats: who wakes, who sleeps again, who is given up, and what the report says of it."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.simulated.cluster import Cluster
from tests.snapshots import COUNTS, DETECTOR, LAYOUT, assigns, decided, node, replica, snapshot

from understudy.control.cluster.deploying import agrees, deployments
from understudy.control.cluster.instructions import LoseNode
from understudy.control.cluster.reactions import react
from understudy.control.cluster.secondaries import protection
from understudy.control.schemes.overload import late, throttle
from understudy.model.capabilities import ALL, ROWS
from understudy.model.config import DEFAULTS
from understudy.model.layout import Layout
from understudy.model.names import SliceId
from understudy.model.recovery import Guarantee, Reaction, Recovery, Scheme
from understudy.model.snapshot import Alarms, Assignment, NodeView, Secondary

BUDGET = DEFAULTS.recovery.stand_ins_per_minute

HOT = Scheme.PASSIVE_STANDBY_HOT
SLICE = Assignment(COUNTS, "node-1", 1, scheme=HOT, secondary=Secondary("node-2", 2), issued=2)
AWAKE = replace(SLICE, standing_in=True)


def laid_out(**changes: Any) -> Layout:
    """The word count, its counts protected like this."""
    recovery = Recovery(**({"reaction": "speculative"} | {k: v for k, v in changes.items() if k != "deterministic"}))
    deterministic = changes.get("deterministic", True)
    return Layout(
        tuple(
            replace(vertex, recovery=recovery, deterministic=deterministic) if vertex.name == "counts" else vertex
            for vertex in LAYOUT.vertices
        )
    )


def pair(silent_s: float = 0.0, second: dict[str, Any] | None = None, **changes: Any) -> dict[str, NodeView]:
    """Two nodes, the first of which has been silent for so long; `epoch` is how far its primary is."""
    epoch = changes.pop("epoch", 5)
    first = node("node-1", replica(COUNTS, epoch=epoch), silent_s=silent_s, **changes)
    secondary = replica(COUNTS, 2, primary=False, capabilities=ROWS[HOT], asked=ROWS[HOT])
    return {"node-1": first, "node-2": node("node-2", secondary, **(second or {}))}


def reaction(
    assignment: Assignment, nodes: dict[str, NodeView], layout: Layout | None = None, for_all: Reaction | None = None
) -> bool | None:
    """Whether the secondary shall stand in; None if nothing is said."""
    found = list(react([assignment], nodes, layout or laid_out(), DETECTOR, for_all))
    assert len(found) <= 1
    return found[0].assignment.standing_in if found else None


def test_one_missed_heartbeat_wakes_a_speculative_secondary() -> None:
    assert reaction(SLICE, pair(0.14)) is None, "late, but not clearly"
    assert reaction(SLICE, pair(0.16)) is True
    assert reaction(SLICE, pair(0.0, connected=False)) is True
    assert reaction(SLICE, pair(0.0, slow=True)) is True
    assert reaction(AWAKE, pair(0.16)) is None, "it is standing_in already"


def test_a_conservative_one_waits() -> None:
    patient = laid_out(reaction="conservative")
    assert reaction(SLICE, pair(2.9), patient) is None
    assert reaction(SLICE, pair(0.16), patient, Reaction.SPECULATIVE) is True, "asked for all operators"
    assert reaction(SLICE, pair(0.16), None, Reaction.CONSERVATIVE) is None


def test_an_active_standby_publishes_what_it_holds_whatever_the_reaction() -> None:
    working = replace(SLICE, scheme=Scheme.ACTIVE_STANDBY)
    assert reaction(working, pair(0.16), laid_out(reaction="conservative")) is True


@pytest.mark.parametrize("scheme", [Scheme.NONE, Scheme.PASSIVE_REPLICATION, Scheme.ACTIVE_REPLICATION])
def test_nobody_wakes_who_is_absent_or_publishes_anyway(scheme: Scheme) -> None:
    assert reaction(replace(SLICE, scheme=scheme), pair(0.16)) is None


def test_two_copies_work_only_where_they_agree() -> None:
    assert reaction(SLICE, pair(0.16), laid_out(deterministic=False)) is None
    assert reaction(replace(SLICE, passive=True), pair(0.16)) is None
    for guarantee in Guarantee:
        wakes = reaction(SLICE, pair(0.16), laid_out(guarantee=guarantee))
        assert wakes is (True if guarantee.replays else None)
    assert reaction(replace(SLICE, rewind=3), pair(0.16)) is None, "a bag has to be made again"


def test_two_silent_nodes_wake_nobody() -> None:
    assert reaction(SLICE, pair(0.16, {"silent_s": 0.2})) is None
    assert reaction(SLICE, pair(0.16, {"connected": False})) is None


def test_the_secondary_sleeps_again_when_the_primary_is_well_and_where_it_is() -> None:
    assert reaction(AWAKE, pair(0.0, steady_s=0.2)) is None, "one word in time is not enough"
    assert reaction(AWAKE, pair(0.16, steady_s=9.0)) is None
    assert reaction(AWAKE, pair(0.0, steady_s=0.6, epoch=3)) is None, "it is behind"
    assert reaction(AWAKE, pair(0.0, steady_s=0.6, epoch=4)) is False, "the other may be one ahead"


def test_a_node_whose_work_is_done_elsewhere_is_waited_for() -> None:
    def lost(assignment: Assignment, silent_s: float, **second: Any) -> bool:
        instructions = decided(snapshot(*pair(silent_s, second).values(), assignments=(assignment,)))
        return any(isinstance(i, LoseNode) and i.node == "node-1" for i in instructions)

    assert lost(SLICE, 3.1)
    assert not lost(AWAKE, 3.1)
    assert not lost(AWAKE, 14.9)
    assert lost(AWAKE, 15.1)
    assert lost(AWAKE, 3.1, connected=False), "nobody stands in"
    two = snapshot(*pair(3.1).values(), assignments=(AWAKE, Assignment(SliceId("words", 0), "node-1", 1)))
    assert any(isinstance(i, LoseNode) for i in decided(two)), "somebody waits for the other slice"


def test_who_is_awake_works_publishes_and_ships_without_leading() -> None:
    throttled, standing_in = (dict(deployments(a, LAYOUT))["node-2"] for a in (SLICE, AWAKE))
    assert (throttled.capabilities, throttled.primary, throttled.ships) == (ROWS[HOT], False, False)
    assert (standing_in.capabilities, standing_in.primary, standing_in.ships, standing_in.ship_every) == (
        ALL,
        False,
        True,
        1,
    )
    told = replica(COUNTS, 2, primary=False, asked=ALL, ship_every=0)
    assert not agrees(told, standing_in)
    assert agrees(told.model_copy(update={"ship_every": 1}), standing_in)


def test_a_primary_that_is_given_up_is_taken_over_for_good() -> None:
    nodes = pair()
    del nodes["node-1"]
    found = assigns(decided(snapshot(*nodes.values(), assignments=(AWAKE,))))[COUNTS]
    assert (found.node, found.generation, found.standing_in, found.secondary) == ("node-2", 2, False, None)


def test_a_secondary_that_sleeps_or_does_not_keep_up_protects_like_a_waiting_one() -> None:
    active = replace(SLICE, scheme=Scheme.ACTIVE_REPLICATION)

    def protected(**changes: Any) -> Scheme:
        status = replica(COUNTS, 2, primary=False, capabilities=ALL, **changes)
        return protection(active, {"node-2": node("node-2", status)})

    assert protected() is Scheme.ACTIVE_REPLICATION
    assert protected(throttled=True) is HOT
    assert protected(late=True) is HOT


def test_a_secondary_that_was_woken_protects_as_the_scheme_says() -> None:
    woken = node("node-2", replica(COUNTS, 2, primary=False, capabilities=ALL))
    assert protection(AWAKE, {"node-2": woken}) is AWAKE.scheme


def test_a_secondary_is_late_until_it_has_begun_and_when_it_is_two_epochs_behind() -> None:
    assert late(5, 5, begun=False)
    assert not late(5, 4, begun=True)
    assert late(5, 3, begun=True)


def test_secondaries_sleep_while_a_primary_is_far_behind() -> None:
    assert not throttle(False, [])
    assert not throttle(False, [0, 2])
    assert throttle(False, [0, 3])
    assert throttle(True, [2]), "not yet: it would blink"
    assert not throttle(True, [1, 0])


# -- a machine that is full


def crowd(silent_s: float, *others: dict[str, Any], **changes: Any) -> dict[str, NodeView]:
    """As `pair`, with more nodes beside the two."""
    nodes = pair(silent_s, **changes)
    return nodes | {f"other-{n}": node(f"other-{n}", **other) for n, other in enumerate(others)}


def test_where_most_nodes_are_late_nobody_is_suspected() -> None:
    late = {"late_s": 0.6}
    assert reaction(SLICE, crowd(0.3, {}, {})) is True
    assert reaction(SLICE, crowd(0.3, late, {})) is True, "most come in time"
    assert reaction(SLICE, crowd(0.3, late, late, second=late)) is None, "the machine is full, not the node"
    assert reaction(SLICE, crowd(1.3, late, late, second=late)) is True, "clearly longer than the others"
    assert reaction(SLICE, crowd(0.3, {"silent_s": 0.3}, {"silent_s": 0.2}, second={"silent_s": 0.1})) is None
    assert reaction(SLICE, crowd(0.0, late, late, second=late, connected=False)) is True, "that is no lateness"


def test_a_node_that_is_slow_among_slow_ones_is_not_suspected() -> None:
    slow = {"slow": True}
    assert reaction(SLICE, crowd(0.0, {}, slow, slow=True)) is True
    assert reaction(SLICE, crowd(0.0, slow, slow, slow=True)) is None


def test_a_node_is_given_up_later_where_all_are_late() -> None:
    late = {"late_s": 2.5}

    def dead(silent_s: float, *others: dict[str, Any]) -> bool:
        nodes = crowd(silent_s, *others, second=others[0])
        return DETECTOR.dead(nodes["node-1"], nodes.values())

    assert dead(3.1, {}, {})
    assert not dead(4.9, late, late)
    assert dead(5.1, late, late)
    assert dead(15.1, {"late_s": 60.0}, {"late_s": 60.0}), "never longer than for one whose work is done elsewhere"


def test_where_all_are_late_a_node_need_not_be_better_than_the_others() -> None:
    late = {"late_s": 0.5}
    restless = {"steady_s": 0.2, "late_s": 0.4}
    assert reaction(AWAKE, crowd(0.0, {}, {}, **restless)) is None
    assert reaction(AWAKE, crowd(0.0, late, late, second=late, **restless)) is False


def test_after_every_false_alarm_a_slice_is_twice_as_patient() -> None:
    alarmed = replace(SLICE, alarms=Alarms(false=2, at=100.0))

    def wakes(silent_s: float, age_s: float, **changes: Any) -> bool:
        return bool(list(react([alarmed], pair(silent_s, **changes), laid_out(), DETECTOR, age_s=age_s)))

    assert not wakes(0.5, 101.0)
    assert wakes(0.65, 101.0)
    assert wakes(0.35, 161.0), "one of them is forgotten after a minute"
    assert wakes(0.16, 221.0)
    assert wakes(0.0, 101.0, connected=False), "a broken connection is no false alarm"


def test_what_came_of_an_alarm_is_kept_in_the_assignment() -> None:
    (woken,) = react([SLICE], pair(0.16), laid_out(), DETECTOR, age_s=50.0)
    assert woken.assignment.alarms == Alarms(unproven=(50.0,))
    well = pair(0.0, steady_s=9.0)
    (slept,) = react([woken.assignment], well, laid_out(), DETECTOR, age_s=52.0)
    assert slept.assignment.alarms == Alarms(false=1, at=52.0, unproven=(50.0,)), "nothing came of it"
    made = replica(COUNTS, 2, primary=False, capabilities=ALL, first_bags=3)
    (useful,) = react([woken.assignment], well | {"node-2": node("node-2", made)}, laid_out(), DETECTOR, age_s=52.0)
    assert useful.assignment.alarms == Alarms()


def test_the_cluster_wakes_only_so_many_in_a_minute_the_most_important_first() -> None:
    slices = [SliceId("counts", n) for n in range(6)] + [SliceId("words", 0)]
    nodes = {
        "node-1": node("node-1", *(replica(s) for s in slices), silent_s=0.2),
        "node-2": node("node-2", *(replica(s, 2, primary=False, capabilities=ROWS[HOT]) for s in slices)),
    }
    known = [replace(SLICE, slice=s) for s in slices]
    layout = laid_out(objective="2 s")

    def woken(assignments: list[Assignment], age_s: float, **first: Any) -> list[str]:
        views = nodes | {"node-1": replace(nodes["node-1"], **first)}
        found = react(assignments, views, layout, DETECTOR, Reaction.SPECULATIVE, age_s)
        return [str(one.assignment.slice) for one in found if one.assignment.standing_in]

    assert woken(known, 50.0) == [f"counts[{n}]" for n in range(BUDGET)]
    spent = [replace(one, alarms=Alarms(unproven=(50.0,))) for one in known[:BUDGET]] + known[BUDGET:]
    assert woken(spent, 100.0) == []
    assert len(woken(spent, 111.0)) == BUDGET
    assert len(woken(spent, 100.0, connected=False)) == len(known), "a broken connection costs nothing"


def test_who_proved_to_be_of_use_does_not_count() -> None:
    standing_in = replace(AWAKE, alarms=Alarms(unproven=(1.0,) * BUDGET))
    other = SliceId("counts", 1)
    nodes = pair(0.2)
    nodes["node-1"] = replace(nodes["node-1"], replicas=(*nodes["node-1"].replicas, replica(other)))
    for first_bags, wakes in ((0, 0), (1, 1)):
        secondary = replica(COUNTS, 2, primary=False, capabilities=ALL, first_bags=first_bags)
        nodes["node-2"] = node("node-2", secondary, replica(other, 2, primary=False, capabilities=ROWS[HOT]))
        left = replace(standing_in, alarms=replace(standing_in.alarms, unproven=standing_in.alarms.unproven[:1]))
        others = [
            replace(SLICE, slice=SliceId("counts", n), node="node-2", alarms=Alarms(unproven=(1.0,))) for n in (2, 3, 4)
        ]
        found = list(react([left, replace(SLICE, slice=other), *others], nodes, laid_out(), DETECTOR, age_s=2.0))
        assert len(found) == wakes


# -- in a cluster


def speculative(home: Path, **changes: Any) -> tuple[Cluster, SliceId, str]:
    """A running cluster, a slice alone on its node, and that node."""
    cluster = Cluster(home, nodes=7, scheme=HOT, reaction="speculative", **changes)
    cluster.until(lambda: cluster.delivered > 2 and cluster.settled())
    hosts = {a.slice: a.node for a in cluster.store.assignments()}
    alone = next(s for s, name in hosts.items() if s.operator == "counts" and list(hosts.values()).count(name) == 1)
    return cluster, alone, hosts[alone]


def kinds(cluster: Cluster, slice_id: SliceId) -> list[str]:
    told = ("standing_in", "stood_in", "rolled_back", "promoted")
    return [e.kind for e in cluster.store.events() if e.kind in told and e.fields["slice"] == str(slice_id)]


def finish(cluster: Cluster) -> Any:
    cluster.store.keep({"goal": cluster.delivered + 5})
    cluster.restart_manager()
    cluster.until(lambda: cluster.manager.state().phase.over)
    return cluster.manager.report()


@pytest.mark.parametrize("restarts", [False, True])
def test_a_pause_goes_by_nearly_unnoticed(tmp_path: Path, restarts: bool) -> None:
    cluster, slice_id, name = speculative(tmp_path)
    cluster.nodes[name].frozen = True
    before = cluster.delivered
    cluster.steps(1.0)
    assert cluster.delivered >= before + 5, "the secondary stands in"
    if restarts:
        cluster.restart_manager()
    cluster.steps(0.8)
    cluster.heal()
    cluster.until(cluster.settled)
    cluster.until(lambda: "rolled_back" in kinds(cluster, slice_id))
    assert "promoted" not in kinds(cluster, slice_id)
    assert cluster.nodes[name].replicas[slice_id].status().read_back >= 5, "by state, not by events"
    report = finish(cluster)
    assert report.verdict == "exact"
    assert report.reactions.rolled_back >= 1
    assert report.reactions.promoted == 0
    assert report.reactions.false_alarms == 0


def test_a_long_silence_promotes_for_good(tmp_path: Path) -> None:
    cluster, slice_id, name = speculative(tmp_path)
    cluster.nodes[name].frozen = True
    cluster.until(lambda: "promoted" in kinds(cluster, slice_id))
    assert kinds(cluster, slice_id) == ["standing_in", "stood_in", "promoted"]
    cluster.heal()
    cluster.until(cluster.settled)
    report = finish(cluster)
    assert report.verdict == "exact"
    assert report.reactions.promoted == 1


def test_a_secondary_that_dies_while_it_stands_in_is_replaced(tmp_path: Path) -> None:
    cluster, slice_id, name = speculative(tmp_path)
    cluster.nodes[name].frozen = True
    cluster.until(lambda: "stood_in" in kinds(cluster, slice_id))
    assignment = next(a for a in cluster.store.assignments() if a.slice == slice_id)
    assert assignment.secondary is not None
    cluster.kill(assignment.secondary.node)
    cluster.steps(1.0)
    cluster.heal()
    cluster.until(cluster.settled)
    assert finish(cluster).verdict == "exact"


def test_a_late_word_is_a_false_alarm(tmp_path: Path) -> None:
    cluster, slice_id, name = speculative(tmp_path)
    cluster.nodes[name].frozen = True
    cluster.steps(0.2)
    cluster.heal()
    cluster.until(lambda: "rolled_back" in kinds(cluster, slice_id))
    event = next(e for e in cluster.store.events() if e.kind == "rolled_back" and e.fields["slice"] == str(slice_id))
    assert event.fields["stood_in_s"] > 0
    assert {"cpu_s", "bytes_published", "false_alarm"} <= event.fields.keys()


def storm(home: Path, seconds: float, seed: int, **spec: Any) -> tuple[Cluster, int]:
    """Three nodes on a full machine: each is kept from its work at random, for up to half a second at a time."""
    cluster, rng = Cluster(home, nodes=3, scheme=HOT, reaction="speculative", misses=30, **spec), random.Random(seed)
    cluster.until(lambda: cluster.delivered > 2 and cluster.settled())
    starved = dict.fromkeys(cluster.nodes, 0)
    before = sum(event.kind == "standing_in" for event in cluster.store.events())
    for _ in range(round(seconds / 0.1)):
        for name in starved:
            if starved[name] == 0 and rng.random() < 0.15:
                starved[name] = rng.randint(2, 6)
            cluster.nodes[name].frozen = starved[name] > 0
            starved[name] = max(0, starved[name] - 1)
        cluster.step()
    return cluster, sum(event.kind == "standing_in" for event in cluster.store.events()) - before


@pytest.mark.parametrize("seed", range(3))
def test_a_full_machine_sets_off_no_storm(tmp_path: Path, seed: int) -> None:
    """All nodes are late all the time and none of them fails: it was 50 wake-ups a minute and more."""
    cluster, woken = storm(tmp_path, 120.0, seed)
    assert woken < 10, f"{woken} wake-ups in two minutes"
    cluster.heal()
    cluster.until(cluster.settled)
    assert finish(cluster).verdict == "exact"


def test_a_manager_that_is_killed_in_a_storm_remembers_it(tmp_path: Path) -> None:
    cluster, _ = storm(tmp_path, 30.0, seed=1)
    before = {a.slice: a.alarms for a in cluster.store.assignments()}
    assert any(alarms.unproven or alarms.false for alarms in before.values())
    cluster.restart_manager()
    assert {a.slice: a.alarms for a in cluster.store.assignments()} == before


def test_a_full_node_throttles_its_secondaries_and_lets_them_go_on(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, nodes=3, scheme=HOT)
    cluster.until(lambda: cluster.delivered > 2 and cluster.settled())
    for one in cluster.nodes.values():
        one.slow_down(10.0)
    cluster.until(lambda: any(slice_.throttled for slice_ in cluster.manager.state().slices))
    events = [event for event in cluster.store.events() if event.kind == "throttled"]
    assert "is protected less" in events[0].text
    assert events[0].fields["on"] is True
    looks = {one.slice: one for one in cluster.manager.state().slices}
    throttled = next(name for name, one in looks.items() if one.throttled)
    cluster.steps(0.5)
    assert {one.slice: one.protection for one in cluster.manager.state().slices}[throttled] == Scheme.DEPLOYED
    cluster.restart_manager()
    assert next(a for a in cluster.store.assignments() if str(a.slice) == throttled).throttle.on
    for one in cluster.nodes.values():
        one.slow_down(0.1)
    cluster.until(lambda: not any(slice_.throttled for slice_ in cluster.manager.state().slices), seconds=600)
    cluster.until(cluster.settled)
    assert finish(cluster).verdict == "exact"
