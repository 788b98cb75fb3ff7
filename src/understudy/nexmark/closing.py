"""Queries about auctions that are over: which bid won, and what items were sold for.

An auction is over when the watermark has passed its end. The highest of the bids between its beginning and its end
wins, of equal ones the earlier. Every auction has a state of its own in `transformWithState`, and a timer that closes
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from understudy.nexmark.events import AUCTION, PERSON
from understudy.nexmark.views import DELAY

LAST = 10
"""Of how many auctions of a seller the average is taken."""

TIMES = ("opened", "expires", "bid_at")
AUCTION_TEXTS = "item string, description string, initial long, reserve long, item_extra string"
BID = "bid_at long, number long, bidder long, price long"


class Closing(StatefulProcessor):
    """The winning bid of one auction, when its time is over. Times are milliseconds.

    A bid may come before its auction; it waits until no auction that it could belong to can still come.
    """

    def __init__(self, texts: str = "", bid_texts: str = "") -> None:
        more = f", {texts}" if texts else ""
        self._auction = f"opened long, expires long, seller long, category long{more}"
        self._bid = BID + (f", {bid_texts}" if bid_texts else "")
        self.output = f"auction long, {self._auction}, {self._bid}"

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._open = handle.getValueState("open", self._auction)
        self._best = handle.getValueState("best", self._bid)
        self._waiting = handle.getListState("waiting", self._bid)
        self._auction_names, self._bid_names = _names(self._auction), _names(self._bid)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        arrived = list(rows)
        bids = [tuple(row[name] for name in self._bid_names) for row in arrived if row.kind != AUCTION]
        auction = self._open.get()
        for row in arrived:
            if row.kind == AUCTION:
                auction = tuple(row[name] for name in self._auction_names)
                self._open.update(auction)
                self._handle.registerTimer(row.expires)
                bids += [tuple(bid) for bid in self._waiting.get()]
                self._waiting.clear()
        if auction is not None:
            self._offer(auction, bids)
        elif bids:
            self._waiting.appendList(bids)
            self._handle.registerTimer(max(bid[0] for bid in bids))
        return iter(())

    def _offer(self, auction: Any, bids: list[tuple[Any, ...]]) -> None:
        """Keeps the best of the bids that came in time."""
        opened, expires = auction[0], auction[1]
        valid = [bid for bid in bids if opened <= bid[0] <= expires]
        if not valid:
            return
        before = self._best.get()
        best = min([*valid, *([] if before is None else [tuple(before)])], key=_rank)
        if before is None or best != tuple(before):
            self._best.update(best)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        passed = expiredTimerInfo.getExpiryTimeInMs()
        auction = self._open.get()
        if auction is None:
            # An auction that opened before these bids would be late by now.
            left = [tuple(bid) for bid in self._waiting.get() if bid[0] > passed]
            self._waiting.clear()
            if left:
                self._waiting.put(left)
        elif auction[1] == passed:
            best = self._best.get()
            if best is not None:
                yield Row("auction", *self._auction_names, *self._bid_names)(key[0], *auction, *best)
            self._open.clear()
            self._best.clear()

    def close(self) -> None:
        pass


def _rank(bid: tuple[Any, ...]) -> tuple[Any, ...]:
    """Smaller is better: the price counts first, then the time, then the number of the event."""
    at, number, _, price = bid[:4]
    return -price, at, number


def _names(columns: str) -> list[str]:
    return [column.split()[0] for column in columns.split(", ")]


def _closed(events: DataFrame, processor: Closing) -> DataFrame:
    """Auctions that are over, with the bid that won."""
    timed = events.where(F.col("kind") != PERSON).withWatermark("at", DELAY)
    rows = timed.withColumns(
        {
            "opened": F.unix_millis("at"),
            "bid_at": F.unix_millis("at"),
            "expires": F.unix_millis("expires"),
            "seller": F.col("person"),
            "bidder": F.col("person"),
            "item_extra": F.col("extra"),
            "bid_extra": F.col("extra"),
        }
    )
    needed = dict.fromkeys(["auction", "kind", "at", *_names(processor.output)])
    grouped = rows.select(*needed).groupBy("auction")
    return grouped.transformWithState(processor, processor.output, "append", "eventTime")


def q9(events: DataFrame) -> DataFrame:
    """Every auction with the bid that won it."""
    found = _closed(events, Closing(AUCTION_TEXTS, "bid_extra string"))
    return found.drop("number").withColumns({name: F.timestamp_millis(name) for name in TIMES})


def sold(events: DataFrame) -> DataFrame:
    """What q4 and q6 need of the auctions that are over."""
    return _closed(events, Closing()).select("auction", "expires", "seller", "category", "price")


def q4(sold: DataFrame) -> DataFrame:
    """The average price of every category, over all auctions that are over."""
    totals = sold.groupBy("category").agg(F.sum("price").alias("total"), F.count("*").alias("sales"))
    return totals.select("category", F.expr("total div sales").alias("average"))


class Last(StatefulProcessor):
    """The average price of a seller's last auctions, at every one that is over."""

    OUTPUT = "seller long, auction long, average long"

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._prices = handle.getValueState("prices", "prices array<long>")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        before = self._prices.get()
        prices = [] if before is None else list(before[0])
        for row in sorted(rows, key=lambda row: (row.expires, row.auction)):
            prices = [*prices, row.price][-LAST:]
            yield Row(seller=key[0], auction=row.auction, average=sum(prices) // len(prices))
        self._prices.update((prices,))

    def close(self) -> None:
        pass


def q6(sold: DataFrame) -> DataFrame:
    """The average price of a seller's last ten auctions, at every one that is over."""
    return sold.groupBy("seller").transformWithState(Last(), Last.OUTPUT, "append", "none")
