"""The cards example: its payments, its rules, its oracle, and a run with a kill against that oracle."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples.running import made, module, run_with_a_kill
from tests.oracles import cards as oracle
from tests.oracles.lines import differences
from tests.oracles.rows import Row

START = datetime(2026, 1, 1, tzinfo=UTC)
EARLY = datetime.fromtimestamp(0, UTC)
BERLIN, PARIS, SYDNEY = (52.52, 13.40), (48.86, 2.35), (-33.87, 151.21)


def payment(number: int, minute: float, cents: int = 1000, place: tuple[float, float] = BERLIN) -> Row:
    at = START + timedelta(minutes=minute)
    where = {"latitude": place[0], "longitude": place[1]}
    return {"id": number, "card": 1, "merchant": number % 3, "at": at, "cents": cents, **where}


def rules_of(payments: list[Row]) -> list[dict[str, int]]:
    return [oracle.broken(one, payments[:number]) for number, one in enumerate(payments)]


def test_the_oracle_knows_the_earth() -> None:
    one, other, far = (payment(0, 0, place=place) for place in (BERLIN, PARIS, SYDNEY))
    assert oracle.kilometres(one, other) == pytest.approx(877.5, abs=1)
    assert oracle.kilometres(one, far) == pytest.approx(16_090, rel=0.01)
    assert oracle.kilometres(one, one) == 0


def test_velocity_counts_five_minutes() -> None:
    found = rules_of([payment(n, minute) for n, minute in enumerate((0, 1, 2, 4.9, 5, 20))])
    assert found == [{}, {}, {}, {"velocity": 4}, {"velocity": 4}, {}]


def test_distance_asks_whether_anybody_could_have_travelled() -> None:
    found = rules_of([payment(0, 0), payment(1, 30, place=PARIS), payment(2, 150, place=BERLIN)])
    assert found == [{}, {"distance": 877}, {}]


def test_spike_compares_with_the_mean_so_far() -> None:
    usual = [payment(n, 60 * n, cents) for n, cents in enumerate((100, 100, 1000))]
    assert rules_of(usual) == [{}, {}, {}], "the third is large, but nothing was usual by then"
    assert oracle.broken(payment(3, 180, 4000), usual) == {}, "ten times the mean of 400"
    assert oracle.broken(payment(3, 180, 4001), usual) == {"spike": 1000}
    assert oracle.broken(payment(3, 180, 8000), usual) == {"spike": 2000}


def test_shops_add_up_what_their_alerts_are_about() -> None:
    quick = [payment(n, n / 10, 100 * n) for n in range(6)]
    out = oracle.expected([quick[:4], quick[4:]])
    assert [[(row["payment"], row["value"]) for row in rows] for rows in out["alerts"]] == [[(3, 4)], [(4, 5), (5, 6)]]
    assert out["shops"] == [
        [{"merchant": 0, "alerts": 1, "cents": 300}],
        [{"merchant": 1, "alerts": 1, "cents": 400}, {"merchant": 2, "alerts": 1, "cents": 500}],
    ]


PAYMENTS = st.lists(
    st.tuples(st.integers(0, 400), st.sampled_from((90, 100, 1100)), st.sampled_from((BERLIN, PARIS, SYDNEY))),
    max_size=15,
)


@given(PAYMENTS)
def test_the_rules_remember_enough(made: list[tuple[int, int, tuple[float, float]]]) -> None:
    """A card that is stored and restored after every payment judges as one who looks at the whole past."""
    rules: Any = module("cards", "cards_rules")
    payments = [payment(n, minute, *rest) for n, (minute, *rest) in enumerate(sorted(made))]  # type: ignore[arg-type]
    state: tuple[Any, ...] = ()
    found = []
    for one in payments:
        card = rules.Card(*state)
        at = (one["at"] - EARLY) // timedelta(microseconds=1)
        judged = rules.Payment(at, *(one[name] for name in ("id", "merchant", "cents", "latitude", "longitude")))
        found.append({alert.rule: alert.value for alert in card.pay(judged)})
        state = (card.recent, card.at, card.latitude, card.longitude, card.payments, card.cents)
    assert found == rules_of(payments)


def test_generated_payments_have_thieves_and_a_leaky_shop() -> None:
    epochs = made("cards", 60, {"rate": "100", "cards": "500"})
    out = oracle.expected(epochs)
    rules = Counter(row["rule"] for rows in out["alerts"] for row in rows)
    assert set(rules) == {"velocity", "distance", "spike"}
    assert sum(rules.values()) < 0.15 * sum(map(len, epochs))
    shops = Counter(row["merchant"] for rows in out["alerts"] for row in rows)
    assert shops.most_common(1)[0][0] == module("cards", "cards_payments").LEAKY
    for rows in epochs:
        assert [row["at"] for row in rows] == sorted(row["at"] for row in rows)


@pytest.mark.spark
def test_a_killed_node_changes_nothing(tmp_path: Path) -> None:
    settings = {"rate": "80", "cards": "200", "seed": "4"}
    report = run_with_a_kill("cards", tmp_path, settings)
    expected = oracle.expected(made("cards", report.epochs, settings))
    assert min(sum(map(len, epochs)) for epochs in expected.values()) > 20
    assert differences(tmp_path, expected) == []
