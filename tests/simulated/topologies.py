"""Topologies whose rows are tokens."""

from __future__ import annotations

from tests.builders import one, two
from tests.simulated.world import TokenSink, TokenSource
from understudy.model.recovery import Recovery
from understudy.model.topology import Topology

STATEFUL = ("counts", "met")
"""Operators that keep state, in every topology here."""


def word_count(
    recovery: Recovery | None = None, *, counts: int = 2, live: bool = False, deterministic: bool = True
) -> Topology:
    """lines -> words -> counts (stateful, by key) -> out: two slices of each, one of the sink."""
    app = Topology("wordcount", epoch="100 ms")
    lines = app.source("lines", TokenSource(recorded=live), slices=2)
    words = app.operator(lines, name="words", slices=2, recovery=recovery)(one)
    counted = app.operator(
        words, name="counts", key="word", slices=counts, recovery=recovery, deterministic=deterministic
    )(one)
    app.sink("out", counted, TokenSink())
    return app


def live(recovery: Recovery | None = None) -> Topology:
    """The word count on a live source: where an epoch ends is known only once it was cut."""
    return word_count(recovery, live=True)


def chance(recovery: Recovery | None = None) -> Topology:
    """The word count with an operator that never makes the same twice."""
    return word_count(recovery, deterministic=False)


def chain(recovery: Recovery | None = None) -> Topology:
    """lines -> counts (stateful) -> out: one slice of each, the smallest that has everything."""
    app = Topology("chain", epoch="200 ms")
    lines = app.source("lines", TokenSource())
    counted = app.operator(lines, name="counts", key="word", recovery=recovery)(one)
    app.sink("out", counted, TokenSink())
    return app


def join(recovery: Recovery | None = None) -> Topology:
    """Two sources that meet in a stateful join, then a second stateful operator."""
    app = Topology("join", epoch="200 ms")
    left = app.source("left", TokenSource("left"))
    right = app.source("right", TokenSource("right", recorded=True))
    met = app.operator(left, right, name="met", key="word", slices=2, recovery=recovery)(two)
    counted = app.operator(met, name="counts", key="word", recovery=recovery)(one)
    app.sink("out", counted, TokenSink())
    return app


def wide(recovery: Recovery | None = None) -> Topology:
    """A stateful operator that reads six slices at once."""
    app = Topology("wide", epoch="100 ms")
    lines = app.source("lines", TokenSource(), slices=6)
    counted = app.operator(lines, name="counts", key="word", recovery=recovery)(one)
    app.sink("out", counted, TokenSink())
    return app
