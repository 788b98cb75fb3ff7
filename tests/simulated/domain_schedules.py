"""Random scenarios with failure domains: whole domains die or freeze, under a plan, while other things happen."""

from __future__ import annotations

import random

from tests.simulated.drawing import START, placement, tentative
from tests.simulated.scenario import Happening, Scenario
from understudy.model.capabilities import LADDER

OPERATORS = {
    "chain": ("counts[0]",),
    "word_count": ("words[0]", "words[1]", "counts[0]", "counts[1]"),
    "join": ("met[0]", "met[1]", "counts[0]"),
}
TASKS = {"chain": 2, "word_count": 6, "join": 5}
"""Slices of sources and operators: a budget of so many plans all of them."""
ON_DOMAINS = ("kill", "kill", "freeze", "cut-off", "partition", "kill-jvm", "freeze-jvm")
WEIGHTS = {"domain": 6, "node": 4, "switch": 3, "manager": 3, "join": 2, "heal": 2, "damage": 1, "power": 1}


def draw(seed: int) -> Scenario:
    """The scenario of a seed: a plan for none, some or all, two or three domains, and what happens to them."""
    rng = random.Random(f"domains {seed}")
    topology = rng.choice(tuple(OPERATORS))
    domains, standby = rng.choice((2, 2, 3)), rng.choice((0, 0, 1, 2))
    nodes = domains * rng.choice((1, 2, 2))
    settings = {"topology": topology, "nodes": str(nodes), "domains": str(domains), "standby_nodes": str(standby)}
    settings |= {"budget": str(rng.choice((0, TASKS[topology] // 2, TASKS[topology]))), "seed": str(seed)}
    if rng.random() < 0.5:
        settings["scheme"] = str(rng.choice(LADDER))
    if rng.random() < 0.5:
        settings["at_once"] = "1"
    settings |= {"reaction": rng.choice(("conservative", "speculative")), "epochs": str(rng.choice((8, 12, 20)))}
    settings |= {"spare": "2", "tick": rng.choice(("0.1", "0.2"))}
    joined, happenings = nodes + standby, []
    for number in range(rng.randint(1, 5)):
        happening = _happen(rng, topology, joined, domains)
        joined += happening.verb == "join"
        first = Happening(happening.verb, happening.words, at_epoch=rng.randint(0, 6))
        happenings.append(first if number == 0 else happening)
    return Scenario(settings | START | tentative(seed) | placement(seed), tuple(happenings))


def _happen(rng: random.Random, topology: str, nodes: int, domains: int) -> Happening:
    after_s = rng.choice((0.0, 0.1, 0.3, 0.5, 1.0, 2.0))
    kind = rng.choices(tuple(WEIGHTS), tuple(WEIGHTS.values()))[0]
    if kind in ("domain", "node"):
        verb = rng.choice(ON_DOMAINS)
        target = f"domain-{rng.randint(1, domains)}" if kind == "domain" else f"node-{rng.randint(1, nodes)}"
        lasts = ("for", str(rng.choice((0.2, 0.5, 2.0)))) if verb == "freeze" and rng.random() < 0.7 else ()
        return Happening(verb, (target, *lasts), after_s=after_s)
    if kind == "switch":
        return Happening("switch", (rng.choice(OPERATORS[topology]), str(rng.choice(LADDER))), after_s=after_s)
    if kind == "damage":
        return Happening("damage", (rng.choice(OPERATORS[topology]), str(rng.randint(0, 3))), after_s=after_s)
    plain = {"manager": "restart-manager", "join": "join", "power": "lose-power", "heal": "heal"}[kind]
    return Happening(plain, (), after_s=after_s)
