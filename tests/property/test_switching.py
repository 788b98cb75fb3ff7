"""From any scheme to any other, interrupted anywhere: always towards the target, never worse than the weaker one."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.control.replica.switching import next_step, steps
from understudy.model.capabilities import LADDER, ROWS, Capabilities, Capability, rank, reached
from understudy.model.recovery import Scheme

capabilities = st.builds(Capabilities, **{capability.value: st.booleans() for capability in Capability})


@pytest.mark.parametrize(("before", "after"), list(itertools.product(LADDER, LADDER)))
def test_a_slice_is_never_less_protected_than_by_the_weaker_scheme(before: Scheme, after: Scheme) -> None:
    now, weaker = ROWS[before], min(rank(before), rank(after))
    for step in steps(ROWS[before], ROWS[after]):
        now = now.turned(step.capability, step.on)
        assert rank(reached(now)) >= weaker
    assert now == ROWS[after]


@given(st.sampled_from(LADDER), st.lists(st.tuples(st.sampled_from(LADDER), st.integers(0, 5)), min_size=1))
def test_a_transition_that_is_interrupted_goes_on_from_what_is_on(
    start: Scheme, script: list[tuple[Scheme, int]]
) -> None:
    """Somebody changes their mind after some steps, again and again; the end is the last wish."""
    now = ROWS[start]
    for wish, taken in script:
        weaker = min(rank(reached(now)), rank(wish))
        for _ in range(taken):
            step = next_step(now, ROWS[wish])
            if step is None:
                break
            now = now.turned(step.capability, step.on)
            assert rank(reached(now)) >= weaker
    wish = script[-1][0]
    while (step := next_step(now, ROWS[wish])) is not None:
        now = now.turned(step.capability, step.on)
    assert now == ROWS[wish]


@given(capabilities, capabilities)
def test_every_step_brings_the_target_nearer(now: Capabilities, target: Capabilities) -> None:
    def distance(one: Capabilities) -> int:
        return sum(one.has(capability) != target.has(capability) for capability in Capability)

    for step in steps(now, target):
        nearer = now.turned(step.capability, step.on)
        assert distance(nearer) == distance(now) - 1
        now = nearer
    assert now == target


def test_a_step_says_what_it_turns() -> None:
    deployed, cold = ROWS[Scheme.DEPLOYED], ROWS[Scheme.PASSIVE_STANDBY_COLD]
    assert [str(step) for step in (*steps(deployed, cold), *steps(cold, deployed))] == ["synced on", "synced off"]


def test_the_rows_are_a_ladder() -> None:
    assert [reached(ROWS[scheme]) for scheme in LADDER] == list(LADDER)
    assert all(ROWS[lower] <= ROWS[upper] for lower, upper in itertools.pairwise(LADDER))
