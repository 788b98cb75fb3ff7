"""Which checkpoints stay, and what may be given away: every bag that still has readers can be made again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.control.replica.retention import acknowledgeable, kept

HISTORY = (29, 24, 19, 14, 9, 4)


@pytest.mark.parametrize(
    ("released", "epochs", "given_away"),
    [
        (40, [29, 24], 24),
        (24, [29, 24], 24),
        (23, [29, 24, 19], 19),
        (18, [29, 24, 19, 14], 14),
        (9, [29, 24, 14, 9], 9),
        (5, [29, 24, 9, 4], 4),
        (3, [29, 24, 4], -1),
        (-1, [29, 24, 4], -1),
    ],
)
def test_the_two_newest_one_to_start_from_and_the_next_one(released: int, epochs: list[int], given_away: int) -> None:
    assert [HISTORY[n] for n in sorted(kept(HISTORY, released))] == epochs
    assert acknowledgeable(HISTORY, released) == given_away


@pytest.mark.parametrize("epochs", [(), (7,)])
def test_with_less_than_two_nothing_is_given_away(epochs: tuple[int, ...]) -> None:
    assert kept(epochs, 100) == frozenset(range(len(epochs)))
    assert acknowledgeable(epochs, 100) == -1


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 8)), max_size=30))
def test_over_time_no_bag_is_out_of_reach_and_little_is_kept(steps: list[tuple[int, int]]) -> None:
    """A slice ships at some epochs while its readers come on at their own pace."""
    shipped: list[int] = []
    epoch = released = given_away = -1
    for more, read in steps:
        epoch += more
        shipped.insert(0, epoch)
        given_away = max(given_away, acknowledgeable(shipped, released))
        shipped = [e for n, e in enumerate(shipped) if n in kept(shipped, released)]
        assert len(shipped) <= 4
        if given_away >= 0:
            assert any(given_away <= e <= released for e in shipped), "a bag after `released` has nothing to start from"
        released = min(epoch, released + read)
