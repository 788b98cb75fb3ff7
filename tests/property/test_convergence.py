"""Whatever happens to nodes, replicas, bags and the manager: in the end every slice runs once, and no epoch is lost."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.simulated.cluster import Cluster
from understudy.model.capabilities import LADDER
from understudy.model.names import SliceId
from understudy.model.recovery import Reaction

SLICES = [SliceId("lines", 0), SliceId("lines", 1), SliceId("words", 0), SliceId("words", 1)]
SLICES += [SliceId("counts", 0), SliceId("counts", 1), SliceId("out", 0)]
OPERATORS = [s for s in SLICES if s.operator in ("words", "counts")]
SCHEMES = list(LADDER)
MENDABLE = 3
"""Failures, not damaged bags: of those there may be any number."""

events = st.tuples(
    st.sampled_from(
        [
            "kill",
            "freeze",
            "cut off",
            "restart",
            "join",
            "manager",
            "fail",
            "damage",
            "damage",
            "tear",
            "heal",
            "switch",
            "move",
        ]
    ),
    st.integers(0, 11),  # whom
    st.sampled_from([0, 0, 1, 3, 8, 12]),  # tenths of a second until the next event, times four
)

# A frozen node hears late that it shall make a bag again, which another one has made meanwhile.
THAWED = [("manager", 6, 3), ("kill", 10, 8), ("restart", 4, 12), ("join", 5, 0), ("cut off", 10, 0), ("fail", 10, 12)]
THAWED += [("fail", 9, 1), ("kill", 4, 0), ("damage", 11, 0), ("freeze", 5, 3), ("fail", 3, 0)]


def ask(cluster: Cluster, kind: str, whom: int, node: str) -> None:
    """What people want of a slice."""
    if kind == "switch":
        cluster.switch(OPERATORS[whom % 4], SCHEMES[whom % len(SCHEMES)])
    else:
        cluster.move(SLICES[whom % len(SLICES)], node, legacy=whom > 9)


def cause(cluster: Cluster, kind: str, whom: int) -> None:
    names = sorted(cluster.nodes)
    name = names[whom % len(names)] if names else ""
    if kind in ("kill", "cut off", "restart") and name:
        {"kill": cluster.kill, "cut off": cluster.cut_off, "restart": cluster.restart}[kind](name)
    elif kind == "freeze" and name:
        cluster.nodes[name].frozen = True
    elif kind == "join":
        cluster.start_node()
    elif kind == "manager":
        cluster.restart_manager()
    elif kind == "heal":
        cluster.heal()
    elif kind == "fail":
        cluster.fail(SLICES[whom % len(SLICES)])
    elif kind in ("switch", "move"):
        ask(cluster, kind, whom, name)
    elif kind == "damage":
        cluster.damage(SLICES[whom % 6], back=whom)
    elif kind == "tear":
        cluster.tear()


@settings(max_examples=12, deadline=None)
@given(
    script=st.lists(events, max_size=14),
    early=st.booleans(),
    scheme=st.none() | st.sampled_from([str(s) for s in LADDER]),
    reaction=st.sampled_from([str(r) for r in Reaction]),
)
@example(script=THAWED, early=True, scheme=None, reaction="speculative")
@example(script=[("damage", 0, 0), ("kill", 2, 8), ("damage", 0, 0)], early=False, scheme=None, reaction="conservative")
@example(script=[("kill", 0, 1), ("kill", 1, 1), ("damage", 0, 0)], early=False, scheme=None, reaction="conservative")
def test_the_cluster_always_converges(
    script: list[tuple[str, int, int]], early: bool, scheme: str | None, reaction: str
) -> None:
    with tempfile.TemporaryDirectory() as home:
        cluster = Cluster(Path(home), scheme=scheme, reaction=reaction)
        if not early:
            cluster.until(lambda: cluster.delivered > 2)
        mendable = 0
        for kind, whom, pause in script:
            mendable += kind == "fail"
            if kind != "fail" or mendable <= MENDABLE:
                cause(cluster, kind, whom)
            cluster.steps(pause * 0.4)
        cluster.heal()
        while len(cluster.nodes) < (3 if early else 1):
            cluster.start_node()
        cluster.until(cluster.settled)
        cluster.steps(1.0)
        delivered = cluster.delivered
        cluster.until(lambda: cluster.delivered > delivered + 3)
        cluster.until(cluster.settled)
        cluster.until_quiet()
        goal = cluster.delivered + 5
        cluster.store.keep({"goal": goal})
        cluster.restart_manager()
        cluster.until(lambda: cluster.manager.state().phase.over)
        report = cluster.manager.report()
        assert report.verdict == "exact"
        assert report.sinks["out"].epochs >= goal
