"""Random scenarios: what happens to a cluster when, drawn from a seed.

python -m tests.simulated.schedules --seeds 0-9999        # as many as asked for, on both cores
python -m tests.simulated.schedules --seeds 4711 --show   # one of them, as text that can be kept
python -m tests.simulated.schedules --family domains      # with failure domains, budgets and plans
"""

from __future__ import annotations

import argparse
import functools
import gc
import logging
import multiprocessing
import random
import sys
import time

from tests.simulated.domain_schedules import draw as draw_domains
from tests.simulated.drawing import START, placement, tentative
from tests.simulated.scenario import Happening, Scenario, play
from understudy.model.capabilities import LADDER

SLICES = {
    "chain": ("lines[0]", "counts[0]", "out[0]"),
    "word_count": ("lines[0]", "lines[1]", "words[0]", "words[1]", "counts[0]", "counts[1]", "out[0]"),
    "join": ("left[0]", "right[0]", "met[0]", "met[1]", "counts[0]", "out[0]"),
}
OPERATORS = {
    "chain": ("counts[0]",),
    "word_count": ("words[0]", "counts[0]", "counts[1]"),
    "join": ("met[0]", "met[1]", "counts[0]"),
}
ON_NODES = ("kill", "freeze", "freeze-jvm", "restart", "cut-off", "partition", "kill-jvm")
LEAVING = (("drain", ()), ("drain", ("within", "3")), ("drain", ("within", "0.5")), ("give-notice", ()))
ROLLBACKS, FULL_DISKS = 0.1, 0.1
"""Shares of the schedules."""
MOST_FAILURES = 2
"""Replicas that fail for no reason end a run when it happens too often."""


def draw(seed: int) -> Scenario:
    """The scenario of a seed: a small topology, a scheme, and up to five things that happen soon after each other."""
    rng = random.Random(seed)
    topology = rng.choices(("chain", "word_count", "join"), (6, 1, 1))[0]
    settings = {"topology": topology, "nodes": str(rng.randint(2, 3)), "scheme": str(rng.choice(LADDER))}
    settings |= {
        "reaction": rng.choice(("conservative", "speculative")),
        "epochs": str(rng.choice((6, 8, 12))),
        "seed": str(seed),
    }
    settings |= {"spare": "2", "tick": rng.choice(("0.1", "0.2", "0.25"))}
    happenings, failures, joined = [], 0, int(settings["nodes"])
    for number in range(rng.randint(1, 5)):
        happening = _happen(rng, topology, joined)
        failures += happening.verb == "fail"
        joined += happening.verb == "join"
        if happening.verb == "fail" and failures > MOST_FAILURES:
            continue
        first = Happening(happening.verb, happening.words, at_epoch=rng.randint(0, 4))
        happenings.append(first if number == 0 else happening)
    moved = _with_moves(happenings, random.Random(f"moves {seed}"), topology, joined)
    settings |= START | tentative(seed) | placement(seed)
    return _extended(Scenario(settings, moved), random.Random(f"{seed} extended"))


def _with_moves(happenings: list[Happening], rng: random.Random, topology: str, nodes: int) -> tuple[Happening, ...]:
    """In every other schedule slices move and nodes are drained, before and between what else happens.

    Drawn by chance of its own, so that schedules of earlier versions are the same otherwise.
    """
    if rng.random() < 0.5:
        return tuple(happenings)
    for _ in range(rng.randint(1, 3)):
        node, after_s = f"node-{rng.randint(1, nodes)}", rng.choice((0.0, 0.1, 0.3, 0.5, 1.0))
        drawn = rng.random()
        if drawn < 0.1:
            added = Happening("rebalance", (), after_s=after_s)
        elif drawn < 0.7:
            legacy = ("legacy",) if rng.random() < 0.2 else ()
            added = Happening("move", (rng.choice(SLICES[topology]), node, *legacy), after_s=after_s)
        else:
            verb, words = rng.choice(LEAVING)
            added = Happening(verb, (node, *words), after_s=after_s)
        happenings.insert(rng.randint(1, len(happenings)), added)
    return tuple(happenings)


def _extended(scenario: Scenario, rng: random.Random) -> Scenario:
    """Some schedules have the guarantee `rollback`, which replays as `precise` does but fences. Some have a disk that
    is full for a while, which may end the run and must spoil nothing."""
    settings, happenings, expected = dict(scenario.settings), list(scenario.happenings), "exact"
    if rng.random() < ROLLBACKS:
        settings["guarantee"] = "rollback"
    if rng.random() < FULL_DISKS:
        lasts = ("for", str(rng.choice((0.1, 0.3, 1.0, 3.0))))
        full = Happening("fill-disk", lasts, after_s=rng.choice((0.0, 0.1, 0.5)))
        happenings.insert(rng.randint(1, len(happenings)), full)
        expected = "exact or failed"
    return Scenario(settings, tuple(happenings), (expected,))


def _happen(rng: random.Random, topology: str, nodes: int) -> Happening:
    after_s = rng.choice((0.0, 0.1, 0.3, 0.5, 1.0, 2.0))
    kind = rng.choices(("node", "switch", "damage", "manager", "fail", "join", "power", "heal"), WEIGHTS)[0]
    node = f"node-{rng.randint(1, nodes)}"
    if kind == "node":
        verb = rng.choice(ON_NODES)
        lasts = ("for", str(rng.choice((0.2, 0.4, 0.8, 2.0)))) if verb == "freeze" and rng.random() < 0.7 else ()
        return Happening(verb, (node, *lasts), after_s=after_s)
    if kind == "switch":
        return Happening("switch", (rng.choice(OPERATORS[topology]), str(rng.choice(LADDER))), after_s=after_s)
    if kind == "damage":
        return Happening("damage", (rng.choice(SLICES[topology][:-1]), str(rng.randint(0, 4))), after_s=after_s)
    if kind == "fail":
        return Happening("fail", (rng.choice(SLICES[topology]),), after_s=after_s)
    plain = {"manager": "restart-manager", "join": "join", "power": "lose-power", "heal": "heal"}[kind]
    return Happening(plain, (), after_s=after_s)


WEIGHTS = (8, 3, 3, 2, 2, 2, 1, 1)


FAMILIES = {"nodes": draw, "domains": draw_domains}


def attempt(seed: int, family: str = "nodes") -> str | None:
    """What goes wrong with a seed, if anything does."""
    scenario = FAMILIES[family](seed)
    try:
        play(scenario)
    except AssertionError as error:
        return f"seed {seed} of {family}:\n{scenario}\n\n{error}"
    return None


def be_quick() -> None:
    """For a process that does nothing but play schedules: nothing is logged, and garbage is looked for seldom."""
    logging.disable(logging.CRITICAL)
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 10, 10)


def attempt_all(seeds: range, family: str = "nodes", processes: int = 2) -> list[str]:
    work = functools.partial(attempt, family=family)
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        return [found for found in pool.imap_unordered(work, seeds, chunksize=16) if found is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0-999")
    parser.add_argument("--family", default="nodes", choices=FAMILIES)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    if options.show:
        for seed in seeds:
            print(FAMILIES[options.family](seed))
        return
    be_quick()
    began = time.monotonic()
    family = options.family
    found = attempt_all(seeds, family) if len(seeds) > 1 else [one for one in [attempt(seeds[0], family)] if one]
    took = time.monotonic() - began
    print(*found, sep="\n\n")
    print(f"{len(seeds)} schedules in {took:.1f} s, {len(seeds) / took:.0f} a second, {len(found)} failed")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
