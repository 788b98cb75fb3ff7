"""What every Nexmark query must deliver, epoch by epoch, from the definition of the query.

The rows are the wide events of `understudy.nexmark`: `kind` 0 is a person, 1 an auction, 2 a bid; `person` is a
person's id, an auction's seller, a bid's bidder. Rows are delivered as tuples, columns in the order of the query.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.oracles.operators import selected
from tests.oracles.rows import Epochs, Output, Row, counted
from tests.oracles.windows import late, sessions, starts, watermarks

PERSON, AUCTION, BID = 0, 1, 2
DELAY, WINDOW, SLIDE = timedelta(seconds=4), timedelta(seconds=10), timedelta(seconds=2)
Key = Callable[[Row], Any]
LEVELS: tuple[Callable[[int], bool], ...] = (
    lambda price: price >= 0,
    lambda price: price < 10_000,
    lambda price: 10_000 <= price < 1_000_000,
    lambda price: price >= 1_000_000,
)


def of_kind(epochs: Epochs, *kinds: int) -> Epochs:
    return [[row for row in rows if row["kind"] in kinds] for rows in epochs]


def fields(row: Row, names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names.split())


# -- one bid at a time


def on_bids(take: Callable[[Row], tuple[Any, ...]], keep: Callable[[Row], bool] = bool) -> Any:
    return lambda epochs: selected(of_kind(epochs, BID), keep, take)


def euros(row: Row) -> Decimal:
    return Decimal(row["price"]) * 908 / 1000


def part_of_day(at: datetime) -> str:
    if 8 <= at.hour <= 18:
        return "dayTime"
    return "otherTime" if at.hour in (7, 19) else "nightTime"


def q14_row(row: Row) -> tuple[Any, ...]:
    rest = fields(row, "at extra")
    return row["auction"], row["person"], euros(row), part_of_day(row["at"]), *rest, row["extra"].count("c")


def channel_id(row: Row) -> str | None:
    known = ["apple", "google", "facebook", "baidu"]
    if row["channel"].lower() in known:
        return str(known.index(row["channel"].lower()))
    found = re.search(r"[?&]channel_id=([^&]*)", row["url"])
    return found[1] if found else None


# -- groups that are delivered again when an epoch touches them


def touched(epochs: Epochs, key: Key, told: Callable[[Any, list[Row]], Iterable[tuple[Any, ...]]]) -> Output:
    """For every key that a bid of the epoch has, what is told of all its bids so far."""
    past: dict[Any, list[Row]] = defaultdict(list)
    found = []
    for rows in of_kind(epochs, BID):
        for row in rows:
            past[key(row)].append(row)
        found.append([one for name in {key(row) for row in rows} for one in told(name, past[name])])
    return counted(found)


def day(row: Row) -> str:
    return str(row["at"].date())


def by_level(rows: list[Row], value: Callable[[list[Row]], int]) -> tuple[int, ...]:
    return tuple(value([row for row in rows if holds(row["price"])]) for holds in LEVELS)


def statistics(rows: list[Row]) -> tuple[int, ...]:
    """Bids, different bidders and different auctions, each by level of price."""
    people, auctions = (lambda some, name=name: len({row[name] for row in some}) for name in ("person", "auction"))
    return by_level(rows, len) + by_level(rows, people) + by_level(rows, auctions)


def q15(epochs: Epochs) -> Output:
    return touched(epochs, day, lambda name, rows: [(name, *statistics(rows))])


def q16(epochs: Epochs) -> Output:
    def told(name: tuple[str, str], rows: list[Row]) -> list[tuple[Any, ...]]:
        return [(*name, max(f"{row['at']:%H:%M}" for row in rows), *statistics(rows))]

    return touched(epochs, lambda row: (row["channel"], day(row)), told)


def q17(epochs: Epochs) -> Output:
    def told(name: tuple[int, str], rows: list[Row]) -> list[tuple[Any, ...]]:
        prices = [row["price"] for row in rows]
        whole = min(prices), max(prices), sum(prices), sum(prices) // len(prices)
        return [(*name, *by_level(rows, len), *whole)]

    return touched(epochs, lambda row: (row["auction"], day(row)), told)


def q18(epochs: Epochs) -> Output:
    def told(name: tuple[int, int], rows: list[Row]) -> list[tuple[Any, ...]]:
        last = sorted(rows, key=lambda row: (row["at"], row["number"]))[-1]
        return [(*name, *fields(last, "price channel url at extra"))]

    return touched(epochs, lambda row: (row["auction"], row["person"]), told)


def q19(epochs: Epochs) -> Output:
    def told(name: int, rows: list[Row]) -> list[tuple[Any, ...]]:
        best = sorted(rows, key=lambda row: (-row["price"], row["number"]))[:10]
        return [(name, rank, *fields(row, "person price channel url at extra")) for rank, row in enumerate(best, 1)]

    return touched(epochs, lambda row: row["auction"], told)


# -- windows


def in_windows(epochs: Epochs, length: timedelta, slide: timedelta) -> list[dict[datetime, list[Row]]]:
    """For every epoch, the windows that are closed in it, with their rows."""
    marks = watermarks((epochs, DELAY))
    kept: dict[datetime, list[Row]] = defaultdict(list)
    found = []
    for epoch, rows in enumerate(epochs):
        for row in rows:
            for start in starts(row["at"], length, slide):
                if start + length > late(marks, epoch):
                    kept[start].append(row)
        over = [start for start in kept if start + length <= marks[epoch]]
        found.append({start: kept.pop(start) for start in over})
    return found


def q5(epochs: Epochs) -> Output:
    found = []
    for closed in in_windows(of_kind(epochs, BID), WINDOW, SLIDE):
        hot: list[tuple[Any, ...]] = []
        for start, rows in closed.items():
            bids = Counter(row["auction"] for row in rows)
            hot += [(start, auction, count) for auction, count in bids.items() if count == max(bids.values())]
        found.append(hot)
    return counted(found)


def q7(epochs: Epochs) -> Output:
    found = []
    for closed in in_windows(of_kind(epochs, BID), WINDOW, WINDOW):
        highest: list[tuple[Any, ...]] = []
        for rows in closed.values():
            price = max(row["price"] for row in rows)
            highest += [fields(row, "auction person price at extra") for row in rows if row["price"] == price]
        found.append(highest)
    return counted(found)


def q8(epochs: Epochs) -> Output:
    found = []
    for closed in in_windows(of_kind(epochs, PERSON, AUCTION), WINDOW, WINDOW):
        new: list[tuple[Any, ...]] = []
        for start, rows in closed.items():
            sellers = {row["person"] for row in rows if row["kind"] == AUCTION}
            people = {(row["person"], row["name"]) for row in rows if row["kind"] == PERSON}
            new += [(who, name, start) for who, name in people if who in sellers]
        found.append(new)
    return counted(found)


def q11(epochs: Epochs) -> Output:
    found = sessions(of_kind(epochs, BID), "person", WINDOW, DELAY)
    return [Counter({(who, n, start, end): k for (who, start, end, n), k in rows.items()}) for rows in found]


# -- joins of the whole past


def paired(left: Epochs, right: Epochs, one_key: Key, other_key: Key, take: Callable[[Row, Row], Row]) -> Epochs:
    """Every pair, in the epoch in which its second row arrives."""
    lefts: dict[Any, list[Row]] = defaultdict(list)
    rights: dict[Any, list[Row]] = defaultdict(list)
    found: Epochs = []
    for ones, others in zip(left, right, strict=True):
        pairs = [take(one, other) for one in ones for other in rights[one_key(one)]]
        for one in ones:
            lefts[one_key(one)].append(one)
        for other in others:
            rights[other_key(other)].append(other)
        found.append(pairs + [take(one, other) for other in others for one in lefts[other_key(other)]])
    return found


def person(row: Row) -> Any:
    return row["person"]


def auction(row: Row) -> Any:
    return row["auction"]


def both(one: Row, other: Row) -> Row:
    return {"one": one, "other": other}


def in_category(epochs: Epochs) -> Epochs:
    return [[row for row in rows if row["category"] == 10] for rows in of_kind(epochs, AUCTION)]


def q3(epochs: Epochs) -> Output:
    near = [[row for row in rows if row["state"] in ("OR", "ID", "CA")] for rows in of_kind(epochs, PERSON)]
    pairs = paired(in_category(epochs), near, person, person, both)
    return counted(
        [[(*fields(pair["other"], "name city state"), pair["one"]["auction"]) for pair in rows] for rows in pairs]
    )


BID_FIELDS = "auction person price channel url at extra"
AUCTION_FIELDS = "item description initial reserve at expires person category extra"


def q20(epochs: Epochs) -> Output:
    pairs = paired(of_kind(epochs, BID), in_category(epochs), auction, auction, both)
    return counted(
        [[fields(pair["one"], BID_FIELDS) + fields(pair["other"], AUCTION_FIELDS) for pair in rows] for rows in pairs]
    )


def q23(epochs: Epochs) -> Output:
    bidders = paired(of_kind(epochs, BID), of_kind(epochs, PERSON), person, person, both)
    found = paired(bidders, of_kind(epochs, AUCTION), lambda pair: pair["one"]["person"], person, both)

    def row(pair: Row) -> tuple[Any, ...]:
        bid, who = pair["one"]["one"], pair["one"]["other"]
        own = fields(bid, "auction person price channel url extra")
        return own + fields(who, "extra name email card city state") + fields(pair["other"], AUCTION_FIELDS)

    return counted([[row(pair) for pair in rows] for rows in found])


# -- auctions that are over


def winners(epochs: Epochs) -> list[list[tuple[Row, Row]]]:
    """For every epoch, the auctions whose time is over in it, with the bid that won."""
    events = of_kind(epochs, AUCTION, BID)
    marks = watermarks((events, DELAY))
    in_time = [[row for row in rows if row["at"] > late(marks, epoch)] for epoch, rows in enumerate(events)]
    bids: dict[int, list[Row]] = defaultdict(list)
    still_open: list[Row] = []
    found = []
    for epoch, rows in enumerate(in_time):
        for row in rows:
            if row["kind"] == BID:
                bids[row["auction"]].append(row)
        still_open += [row for row in rows if row["kind"] == AUCTION]
        over = [row for row in still_open if row["expires"] <= marks[epoch]]
        still_open = [row for row in still_open if row["expires"] > marks[epoch]]
        won = []
        for one in over:
            valid = [bid for bid in bids[one["auction"]] if one["at"] <= bid["at"] <= one["expires"]]
            valid.sort(key=lambda bid: (-bid["price"], bid["at"], bid["number"]))
            won += [(one, bid) for bid in valid[:1]]
        found.append(won)
    return found


def q9(epochs: Epochs) -> Output:
    names = "auction at expires person category item description initial reserve extra"
    return counted(
        [[fields(one, names) + fields(bid, "at person price extra") for one, bid in won] for won in winners(epochs)]
    )


def q4(epochs: Epochs) -> Output:
    prices: dict[int, list[int]] = defaultdict(list)
    found = []
    for won in winners(epochs):
        for one, bid in won:
            prices[one["category"]].append(bid["price"])
        changed = {one["category"] for one, _ in won}
        found.append([(name, sum(prices[name]) // len(prices[name])) for name in changed])
    return counted(found)


def q6(epochs: Epochs) -> Output:
    prices: dict[int, list[int]] = defaultdict(list)
    found = []
    for won in winners(epochs):
        told = []
        for one, bid in sorted(won, key=lambda pair: (pair[0]["expires"], pair[0]["auction"])):
            prices[one["person"]].append(bid["price"])
            last = prices[one["person"]][-10:]
            told.append((one["person"], one["auction"], sum(last) // len(last)))
        found.append(told)
    return counted(found)


EXPECTED: dict[str, Callable[[Epochs], Output]] = {
    "q0": on_bids(lambda row: fields(row, "auction person price at extra")),
    "q1": on_bids(lambda row: (*fields(row, "auction person"), euros(row), *fields(row, "at extra"))),
    "q2": on_bids(lambda row: fields(row, "auction price"), lambda row: row["auction"] % 123 == 0),
    "q3": q3,
    "q4": q4,
    "q5": q5,
    "q6": q6,
    "q7": q7,
    "q8": q8,
    "q9": q9,
    "q10": on_bids(
        lambda row: (*fields(row, "auction person price at extra"), day(row), row["at"].strftime("%H:%M")),
    ),
    "q11": q11,
    "q13": on_bids(lambda row: (*fields(row, "auction person price at"), str(row["auction"] % 10_000))),
    "q14": on_bids(q14_row, lambda row: 1_000_000 < euros(row) < 50_000_000),
    "q15": q15,
    "q16": q16,
    "q17": q17,
    "q18": q18,
    "q19": q19,
    "q20": q20,
    "q21": on_bids(
        lambda row: (*fields(row, "auction person price channel"), channel_id(row)),
        lambda row: channel_id(row) is not None,
    ),
    "q22": on_bids(lambda row: (*fields(row, "auction person price channel"), *row["url"].split("/")[3:6])),
    "q23": q23,
}
