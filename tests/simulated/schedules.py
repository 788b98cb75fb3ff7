"""Random scenarios: what happens to a cluster when, drawn from a seed.

python -m tests.simulated.schedules --seeds 0-9999        # as many as asked for, on both cores
python -m tests.simulated.schedules --seeds 4711 --show   # one of them, as text that can be kept
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import random
import sys
import time

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
    return Scenario(settings, tuple(happenings))


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


def attempt(seed: int) -> str | None:
    """What goes wrong with a seed, if anything does."""
    logging.disable(logging.CRITICAL)
    try:
        play(draw(seed))
    except AssertionError as error:
        return f"seed {seed}:\n{draw(seed)}\n\n{error}"
    return None


def attempt_all(seeds: range, processes: int = 2) -> list[str]:
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return [found for found in pool.imap_unordered(attempt, seeds, chunksize=16) if found is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0-999")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    if options.show:
        for seed in seeds:
            print(draw(seed))
        return
    began = time.monotonic()
    found = attempt_all(seeds) if len(seeds) > 1 else [one for one in [attempt(seeds[0])] if one]
    took = time.monotonic() - began
    print(*found, sep="\n\n")
    print(f"{len(seeds)} schedules in {took:.1f} s, {len(seeds) / took:.0f} a second, {len(found)} failed")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
