"""The oracles of Nexmark in cases small enough to see."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

from tests.oracles import nexmark as oracle
from tests.oracles.rows import Epochs, Row
from tests.oracles.windows import EARLY

SECOND = timedelta(seconds=1)
NUMBERS = iter(range(10_000))


def event(kind: int, second: float, person: int, auction: int | None = None, **more: Any) -> Row:
    return {
        "number": next(NUMBERS),
        "kind": kind,
        "at": EARLY + second * SECOND,
        "person": person,
        "auction": auction,
    } | more


def bid(second: float, auction: int, price: int = 1, person: int = 7, **more: Any) -> Row:
    return event(2, second, person, auction, **({"price": price, "extra": "c", "channel": "Apple", "url": ""} | more))


def opened(second: float, auction: int, expires: float, seller: int = 1, category: int = 10) -> Row:
    texts = dict.fromkeys(("item", "description", "initial", "reserve", "extra"), "x")
    return event(1, second, seller, auction, expires=EARLY + expires * SECOND, category=category, **texts)


def person(second: float, who: int, state: str = "OR") -> Row:
    return event(0, second, who, name=f"n{who}", city="c", state=state, email="e", card="k", extra="x")


def clock(second: float) -> Row:
    """A bid that nothing else is about: it moves the time on."""
    return bid(second, auction=-1, person=-1)


def test_the_highest_bid_within_the_time_of_an_auction_wins_and_the_first_of_equal_ones() -> None:
    early, first, second, late = bid(0.5, 5, 99), bid(2, 5, 50), bid(3, 5, 50), bid(9, 5, 99)
    epochs: Epochs = [[early, first], [opened(1, 5, expires=8), second, late, clock(20)], [clock(30)], []]
    won = oracle.winners(epochs)
    assert [[(one["auction"], best["number"]) for one, best in rows] for rows in won] == [
        [],
        [],
        [(5, first["number"])],
        [],
    ]


def test_an_auction_without_a_bid_in_time_sells_nothing() -> None:
    epochs: Epochs = [[opened(1, 5, expires=2), bid(2.5, 5), clock(20)], [], []]
    assert oracle.q9(epochs) == [Counter()] * 3


def test_averages_go_over_all_sales_of_a_category_and_ten_of_a_seller() -> None:
    sales = [row for n in range(12) for row in (opened(n + 1, n, n + 1.5), bid(n + 1.1, n, 10 * n))]
    epochs: Epochs = [[*sales, clock(30)], [], []]
    assert oracle.q4(epochs)[1] == Counter([(10, 55)])
    found = oracle.q6(epochs)[1]
    assert found.total() == 12
    assert found[(1, 0, 0)] == 1
    assert found[(1, 9, 45)] == 1
    assert found[(1, 11, 65)] == 1, "the first two are forgotten"


def test_hot_items_are_those_with_the_most_bids_of_a_window() -> None:
    epochs: Epochs = [[bid(2, 1), bid(3, 1), bid(2, 2), bid(3, 2), bid(4, 3)], [clock(20)], []]
    found = oracle.q5(epochs)[2]
    assert found[(EARLY, 1, 2)] == 1
    assert found[(EARLY, 2, 2)] == 1
    assert found[(EARLY + 4 * SECOND, 3, 1)] == 1, "three seconds in, the first two have left"
    assert (EARLY, 3, 1) not in found


def test_equal_highest_bids_are_all_told() -> None:
    epochs: Epochs = [[bid(1, 1, 5), bid(2, 2, 9), bid(3, 3, 9)], [clock(20)], []]
    assert [row[0] for row in oracle.q7(epochs)[2]] == [2, 3]


def test_new_users_come_and_sell_in_the_same_window() -> None:
    epochs: Epochs = [[person(1, 1), opened(9, 1, 99, seller=1), person(2, 2), opened(11, 2, 99, seller=2)]]
    epochs += [[person(30, 9)], []]
    assert oracle.q8(epochs)[2] == Counter([(1, "n1", EARLY)])


def test_a_session_ends_after_ten_quiet_seconds() -> None:
    epochs: Epochs = [[bid(1, 1), bid(9, 2)], [clock(40)], []]
    assert oracle.q11(epochs)[2] == Counter([(7, 2, EARLY + SECOND, EARLY + 19 * SECOND)])


def test_a_pair_comes_with_its_second_row() -> None:
    epochs: Epochs = [[person(1, 1), bid(1, 5, person=1)], [opened(2, 5, 9, seller=1)], [bid(3, 5, person=1)]]
    assert [rows.total() for rows in oracle.q3(epochs)] == [0, 1, 0]
    assert [rows.total() for rows in oracle.q20(epochs)] == [0, 1, 1]
    assert [rows.total() for rows in oracle.q23(epochs)] == [0, 1, 1]


def test_reports_count_what_is_different_by_level_of_price() -> None:
    epochs: Epochs = [[bid(1, 1, 5), bid(2, 1, 10_000)], [bid(3, 2, 1_000_000), bid(4, 2, 6, person=8)]]
    first, second = oracle.q15(epochs)
    assert first == Counter([("1970-01-01", 2, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0)])
    assert second == Counter([("1970-01-01", 4, 2, 1, 1, 2, 2, 1, 1, 2, 2, 1, 1)])
    assert oracle.q17(epochs)[0] == Counter([(1, "1970-01-01", 2, 1, 1, 0, 5, 10_000, 10_005, 5_002)])


def test_the_last_bid_and_the_ten_highest_are_told_when_touched() -> None:
    many = [bid(n, 1, price=n % 7) for n in range(12)]
    epochs: Epochs = [many, [bid(5.5, 1, price=9)], [bid(20, 2)]]
    last = oracle.q18(epochs)
    assert [[row[2] for row in rows] for rows in last] == [[4], [4], [1]], "the last by time, not by arrival"
    top = oracle.q19(epochs)
    assert sorted((row[1], row[3]) for row in top[1])[:3] == [(1, 9), (2, 6), (3, 5)]
    assert [rows.total() for rows in top] == [10, 10, 1]


def test_channels_without_a_number_are_left_out() -> None:
    rows = [
        bid(1, 1, channel="Baidu"),
        bid(1, 2, channel="x", url="https://a/b?query=1&channel_id=42"),
        bid(1, 3, channel="x"),
    ]
    assert [row[-1] for row in oracle.EXPECTED["q21"]([rows])[0]] == ["3", "42"]
