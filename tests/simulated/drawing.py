"""What all random schedules draw alike."""

from __future__ import annotations

import random

START = {"start": "30"}
"""A run that lacks a node waits so long for it. Everything in a schedule happens within 24 s: who waits longer waits
for nothing."""


def tentative(seed: int) -> dict[str, str]:
    """Every third schedule has tentative output, and queries that take long to start, so that branches live long.

    Drawn apart: the other choices of a seed stay what they were.
    """
    rng = random.Random(f"tentative {seed}")
    if seed % 3:
        return {}
    return {"tentative": rng.choice(("0", "0.3", "1.0")), "pace": rng.choice(("0.1", "0.5", "2.0", "5.0"))}


def placement(seed: int) -> dict[str, str]:
    """Every other schedule places secondaries by another rule than the usual one, and every third balances the load by
    itself. Drawn apart as well."""
    rng = random.Random(f"placement {seed}")
    rule = rng.choice(("least_loaded", "least_loaded", "interleaved", "chained"))
    found = {} if rule == "least_loaded" else {"placement": rule}
    return found | ({"rebalance": "true"} if rng.random() < 1 / 3 else {})
