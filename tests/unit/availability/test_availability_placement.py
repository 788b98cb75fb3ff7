from __future__ import annotations

import numpy as np
import pytest

from understudy.errors import InvalidInput
from understudy.planning.availability.placement import (
    PLACEMENT,
    Host,
    cluster_of,
    coloured,
    interleaved,
    place,
    uniform_cluster,
)
from understudy.planning.availability.placement.bins import Bins
from understudy.planning.availability.placement.first_fit import primaries
from understudy.planning.availability.placement.validate import violations
from understudy.planning.availability.plan import primary_hosts
from understudy.planning.status import Status
from understudy.simulate.availability.instances import random_cluster, random_workload, workload

ONE = np.ones(64, dtype=np.int64)


def test_bins_find_the_first_host_with_room() -> None:
    bins = Bins(cluster_of([Host("a", 0.2), Host("b", 0.9), Host("c", 0.5), Host("d", 0.9)]))
    assert bins.first(0.4, 0.0, set()) == 1
    bins.take(1, 0.6, 0.0)
    assert bins.first(0.4, 0.0, set()) == 2
    assert bins.first(0.4, 0.0, {2}) == 3
    assert bins.first(0.95, 0.0, set()) is None
    bins.give_back(1, 0.6, 0.0)
    assert bins.first(0.4, 0.0, set()) == 1


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 9, 33])
def test_bins_agree_with_looking_at_every_host(count: int) -> None:
    rng = np.random.default_rng(count)
    free = rng.random(count)
    bins = Bins(cluster_of([Host(f"h{n}", cpu) for n, cpu in enumerate(free.tolist())]))
    for need in rng.random(50).tolist():
        expected = next((host for host in range(count) if free[host] >= need), None)
        assert bins.first(need, 0.0, set()) == expected
        if expected is not None:
            bins.take(expected, need, 0.0)
            free[expected] -= need


def test_neighbours_share_a_host_while_there_is_room() -> None:
    made = workload([0.3, 0.3, 0.3, 0.3], [[0, 2], [1, 3]], [(0, 2), (1, 3)])
    cluster = cluster_of([Host("a", 0.6), Host("b", 0.6), Host("c", 2.0)])
    placed = place("first-fit", made, cluster, (0, 1, 2, 2), ONE[:4] * np.array([1, 0, 0, 0]), np.ones(4))
    assert placed.copies[0] == (0, 2), "operator 2, its neighbour, is on host c"


def test_network_and_cpu_limit_a_host() -> None:
    made = workload([0.1, 0.1], [[0, 1]])
    made.net_in[:] = [60.0, 60.0]
    cluster = cluster_of([Host("a", 1.0, network=100.0), Host("b", 1.0, network=100.0)])
    assert [hosts[0] for hosts in primaries(made, cluster).copies] == [0, 1]
    narrow = cluster_of([Host("a", 1.0, network=100.0), Host("b", 1.0, network=10.0)])
    placed = primaries(made, narrow)
    assert placed.status is Status.INFEASIBLE
    assert "network" in str(placed.unplaced[0])


def test_primaries_that_do_not_fit_are_named() -> None:
    made = workload([0.9, 0.9, 0.2], [[0, 1, 2]])
    with pytest.raises(InvalidInput) as caught:
        primary_hosts(made, uniform_cluster(1))
    assert "2 of 3" in caught.value.what or "1 of 3" in caught.value.what
    assert "needs 0.9 CPU" in caught.value.why


def test_largest_first_saves_what_arrival_order_cannot_place() -> None:
    made = workload([0.5, 0.3, 0.5, 0.7], [[0, 1, 2, 3]])
    assert primary_hosts(made, uniform_cluster(2)) == (1, 0, 1, 0)


@pytest.mark.parametrize("name", PLACEMENT)
def test_a_replica_without_room_is_named_with_its_reason(name: str) -> None:
    made = workload([0.6, 0.2], [[0, 1]])
    cluster = cluster_of([Host("a", 1.0), Host("b", 0.5)])
    placed = place(name, made, cluster, (0, 0), ONE[:2], np.array([1.0, 0.5]))
    assert placed.status is Status.INFEASIBLE
    assert [(u.operator, u.copy) for u in placed.unplaced] == [("o0", 1)]
    assert "0.6 CPU" in placed.unplaced[0].reason
    assert placed.copies[1] == (0, 1)


@pytest.mark.parametrize("name", PLACEMENT)
def test_domains_keep_copies_apart(name: str) -> None:
    made = workload([0.1] * 4, [[0, 1, 2, 3]])
    cluster = cluster_of([Host("a1", 1, domain="a"), Host("a2", 1, domain="a"), Host("b1", 1, domain="b")])
    placed = place(name, made, cluster, (0, 0, 1, 2), ONE[:4], np.ones(4))
    assert not placed.unplaced
    assert placed.copies[0] == (0, 2)
    assert violations(made, cluster, placed.copies) == []
    second = place(name, made, cluster, (0, 0, 1, 2), 2 * ONE[:4], np.ones(4))
    assert len(second.unplaced) == 4, "two domains hold two copies, a third has no place"


@pytest.mark.parametrize("name", PLACEMENT)
def test_every_placement_is_valid_and_repeatable(name: str) -> None:
    for seed in range(25):
        rng = np.random.default_rng(seed)
        made, cluster = random_workload(rng, 10, 5, 0.3), random_cluster(rng, 6)
        primary = primary_hosts(made, cluster)
        levels = rng.integers(0, 3, 10)
        importance = rng.random(10)
        placed = place(name, made, cluster, primary, levels, importance)
        assert violations(made, cluster, placed.copies) == [], f"seed {seed}"
        wanted = int(levels.sum()) + 10
        assert sum(map(len, placed.copies)) + len(placed.unplaced) == wanted, f"seed {seed}"
        assert placed.copies == place(name, made, cluster, primary, levels, importance).copies


def test_the_validator_finds_what_is_wrong() -> None:
    made = workload([0.6, 0.6], [[0, 1]])
    cluster = cluster_of([Host("a", 1.0, domain="x"), Host("b", 1.0, domain="x"), Host("c", 1.0)])
    assert violations(made, cluster, ((0, 1), (2,))) == ["o0 has two copies in one domain"]
    assert violations(made, cluster, ((0, 0), (2,)))[0] == "o0 has two copies on one host"
    assert "a needs 1.2 CPU" in violations(made, cluster, ((0,), (0,)))[0]
    assert violations(made, cluster, ((0,), ())) == ["o1 has no primary"]


def test_colours_spread_replicas_as_thin_as_they_go() -> None:
    made = workload([0.1] * 6, [list(range(6))])
    cluster = uniform_cluster(4, 2.0)
    packed = place("first-fit", made, cluster, (0,) * 6, ONE[:6], np.ones(6))
    assert packed.hosts_used == 2
    spread = coloured.place(made, cluster, (0,) * 6, ONE[:6], np.ones(6))
    assert (spread.colours, spread.proven) == (2, True)
    assert spread.hosts_used == 4


def test_colours_fall_back_to_first_fit_past_the_upper_bound() -> None:
    made = workload([0.1] * 6, [list(range(6))])
    placed = coloured.place(made, uniform_cluster(3, 2.0), (0,) * 6, ONE[:6], np.ones(6), most=2)
    assert placed.colours is None
    assert "plain first-fit" in placed.note
    assert not placed.unplaced


def test_nothing_to_replicate_needs_no_colour() -> None:
    made = workload([0.1], [[0]])
    placed = coloured.place(made, uniform_cluster(1), (0,), np.zeros(1, dtype=np.int64), np.ones(1))
    assert (placed.copies, placed.colours) == (((0,),), 0)


def test_interleaving_as_in_the_dissertation() -> None:
    """Four nodes, three slices each: every other node takes one slice of the one that falls."""
    made = workload([0.1] * 12, [list(range(12))])
    primary = tuple(node for node in range(4) for _ in range(3))
    placed = interleaved.place(made, uniform_cluster(4), primary, ONE[:12], np.ones(12))
    for node in range(4):
        heirs = sorted(hosts[1] for hosts in placed.copies if hosts[0] == node)
        assert heirs == [other for other in range(4) if other != node]


def test_interleaving_says_when_capacity_makes_it_uneven() -> None:
    made = workload([0.3] * 4, [[0, 1, 2, 3]])
    cluster = cluster_of([Host("a", 2.0), Host("b", 2.0), Host("c", 0.1)])
    placed = interleaved.place(made, cluster, (0,) * 4, ONE[:4], np.ones(4))
    assert not placed.unplaced
    assert "uneven" in placed.note


def test_hosts_that_make_no_cluster_are_refused() -> None:
    for hosts, domains in (
        ([Host("a"), Host("a")], {}),
        ([Host("a", cpu=-1)], {}),
        ([Host("a", crash=1.5)], {}),
        ([Host("a")], {"x": 0.1}),
        ([Host("a", domain="x")], {"x": 2.0}),
    ):
        with pytest.raises(InvalidInput, match="make no cluster"):
            cluster_of(hosts, domains)
