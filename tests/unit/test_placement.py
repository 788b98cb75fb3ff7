"""Where secondaries stand by: the rules themselves, and who takes over when a node dies."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import word_count
from tests.simulated import topologies
from tests.simulated.cluster import Cluster
from tests.simulated.deaths import deaths, die, settled
from tests.snapshots import COUNTS, LAYOUT, OTHER, WORDS, healthy
from tests.unit.test_enactment import die_after, dies

from understudy.control.cluster.sites import Placing, Sites, apart
from understudy.control.cluster.weights import LEAST, Weights
from understudy.control.placement import RULES, Question, named
from understudy.errors import InvalidInput
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme
from understudy.model.run import RunSpec
from understudy.model.snapshot import Assignment, NodeView
from understudy.runtime.prepare import check

STANDBY = Scheme.ACTIVE_STANDBY
AMOUNTS = st.floats(0.0, 10.0)


# -- every rule


@st.composite
def questions(draw: st.DrawFn) -> Question:
    hosts = draw(st.integers(2, 8))
    home = draw(st.integers(0, hosts - 1))
    able = np.array([draw(st.booleans()) and n != home for n in range(hosts)])
    able[(home + 1) % hosts] = True
    share, load = (np.array(draw(st.lists(AMOUNTS, min_size=hosts, max_size=hosts))) for _ in range(2))
    return Question(home, able, share, load)


@pytest.mark.parametrize("rule", RULES)
@given(question=questions())
def test_a_rule_chooses_one_of_the_able_always_the_same_and_changes_nothing(rule: str, question: Question) -> None:
    before = [question.able.copy(), question.share.copy(), question.load.copy()]
    chosen = named(rule)(question)
    assert question.able[chosen]
    assert named(rule)(question) == chosen
    for kept, now in zip(before, (question.able, question.share, question.load), strict=True):
        assert (kept == now).all()


def test_a_name_that_is_none_is_refused_before_anything_starts() -> None:
    spec = RunSpec.of("r", "app.py", config={"cluster": {"placement": "random"}})
    with pytest.raises(InvalidInput, match="least_loaded, interleaved, chained"):
        check(spec, word_count(), ())


# -- the nodes of a run as rules see them


def slices(count: int) -> list[SliceId]:
    return [SliceId("counts", number) for number in range(count)]


@given(
    homes=st.lists(st.integers(0, 4), min_size=1, max_size=40),
    loads=st.lists(st.floats(0.1, 5.0), min_size=40, max_size=40),
    nodes=st.integers(2, 6),
)
def test_interleaved_shares_differ_by_at_most_one_slice_in_whatever_order_they_come(
    homes: list[int], loads: list[float], nodes: int
) -> None:
    names = [f"node-{number}" for number in range(nodes)]
    given_loads = dict(zip(slices(40), loads, strict=True))
    placing = Placing(named("interleaved"), Weights(LAYOUT, given_loads))
    known = [Assignment(s, names[home % nodes], 1, scheme=STANDBY) for s, home in zip(slices(40), homes, strict=False)]
    sites, taken = Sites(names, known, placing), {name: dict.fromkeys(names, 0.0) for name in names}
    for one in known:
        chosen = sites.choose(one.node, [name for name in names if name != one.node])
        sites.stand_by(one, chosen)
        taken[one.node][chosen] += placing.weights.primary(one.slice)
    for home, shares in taken.items():
        others = [shares[name] for name in names if name != home]
        heaviest = max((placing.weights.primary(one.slice) for one in known if one.node == home), default=0.0)
        assert max(others) - min(others) <= heaviest + 1e-6


def test_measured_loads_count_against_the_average() -> None:
    weights = Weights(LAYOUT, {COUNTS: 0.9, OTHER: 0.3, WORDS: 0.0})
    assert [round(weights.primary(s), 3) for s in (COUNTS, OTHER)] == [2.25, 0.75]
    assert weights.primary(WORDS) == LEAST
    assert weights.primary(SliceId("lines", 0)) == 0.2, "a source takes no query"
    hot = Assignment(COUNTS, "node-1", 1, scheme=Scheme.PASSIVE_STANDBY_HOT)
    assert weights.secondary(hot) == pytest.approx(0.3 * 2.25)
    assert Weights(LAYOUT).primary(COUNTS) == 1.0, "nothing was measured yet"


def test_the_usual_rule_goes_by_counts_and_the_others_by_what_was_measured() -> None:
    base = replace(healthy(), loads={COUNTS: 3.0, OTHER: 1.0})
    assert Placing.of(base, LAYOUT).weights.primary(COUNTS) == 1.0
    for rule in ("interleaved", "chained"):
        config = RunSpec.of("r", "a", config={"cluster": {"placement": rule}}).config
        assert Placing.of(replace(base, config=config), LAYOUT).weights.primary(COUNTS) == 1.5


def test_chained_goes_round_the_ring() -> None:
    names = ["node-1", "node-2", "node-3"]
    sites = Sites(names, [], Placing(named("chained"), Weights(LAYOUT)))
    assert [sites.choose(home, [n for n in names if n != home]) for home in names] == ["node-2", "node-3", "node-1"]


def test_domains_are_kept_apart_and_standby_nodes_are_a_pool() -> None:
    def view(name: str, domain: str = "", standby: bool = False) -> NodeView:
        return NodeView(name, connected=True, ready=True, silent_s=0.0, domain=domain, standby=standby)

    home, beside, far = view("node-1", "rack-1"), view("node-2", "rack-1"), view("node-3", "rack-2")
    pool = [view("node-4", "rack-2", standby=True), view("node-5", "rack-2", standby=True)]
    assert apart([beside, far], home) == [far]
    assert apart([beside], home) == [beside], "beside it is better than nowhere"
    assert apart([beside, far, *pool], home) == pool


# -- a node dies


@pytest.mark.parametrize(("nodes", "counts"), [(3, 10), (4, 14), (6, 13)])
@pytest.mark.parametrize("scheme", [STANDBY, Scheme.PASSIVE_REPLICATION])
def test_interleaved_the_busiest_survivor_takes_its_fair_share_and_one_slice_at_most(
    nodes: int, counts: int, scheme: Scheme
) -> None:
    for death in deaths("interleaved", nodes, counts, scheme):
        assert death.busiest <= death.fair + 1


def test_chained_and_the_usual_rule_let_one_survivor_take_nearly_all() -> None:
    busiest = {rule: max(one.busiest for one in deaths(rule, 4, 14, STANDBY)) for rule in RULES}
    assert busiest["interleaved"] == 2
    assert busiest["chained"] == busiest["least_loaded"] == 5


def test_with_domains_the_other_domains_share() -> None:
    death, cluster = die("interleaved", 6, 13, "node-1", STANDBY, domains=3)
    assert len(death.taken) == 4
    assert sum(death.taken.values()) == death.hosted
    assert death.busiest <= death.fair + 1
    domains = {name: node.hello.domain for name, node in cluster.nodes.items()}
    cluster.until(lambda: settled(cluster))
    placed = [(a.node, a.secondary.node) for a in cluster.store.assignments() if a.secondary]
    assert placed
    assert all(domains[here] != domains[there] for here, there in placed)


def test_standby_nodes_share() -> None:
    _, cluster = die("interleaved", 3, 10, "node-2", STANDBY, standby_nodes=3)
    took = Counter(a.node for a in cluster.store.assignments() if a.generation > 1 and a.slice.operator != "lines")
    pool = {name for name, node in cluster.nodes.items() if node.hello.standby}
    assert set(took) <= pool | {"node-1", "node-3"}
    assert max(took[name] for name in pool) - min(took[name] for name in pool) <= 1


def test_a_death_that_is_interrupted_anywhere_leaves_everybody_protected() -> None:
    for instructions in range(60):
        config = {"cluster": {"placement": "interleaved"}}
        cluster = Cluster(nodes=4, topology=topologies.word_count(counts=3), scheme=STANDBY, config=config)
        cluster.until(lambda c=cluster: settled(c))  # type: ignore[misc]
        cluster.kill("node-1")
        die_after(cluster, instructions)
        died = dies(cluster)
        cluster.until(lambda c=cluster: settled(c))  # type: ignore[misc]
        cluster.check_output()
        if not died:
            assert instructions > 2
            return
    raise AssertionError("there was no end of instructions")
