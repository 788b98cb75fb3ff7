"""The events of an auction house, as the Nexmark benchmark defines them: people, auctions, bids.

Of every 50 events one is a person, three are auctions and 46 are bids. Half of the bids go to a hot auction, three
quarters come from a hot bidder, three quarters of the auctions are of a hot seller. Ids may run ahead of what they
name: a bid may come before its auction. Definitions: Tucker, Tufte, Papadimos and Maier (2002), with the proportions
of Apache Beam's and nexmark/nexmark's generators.

All events are in one stream, one wide row each; the columns of another kind are null. Who an event is about is always
in `person` (a person's id, an auction's seller, a bid's bidder), which auction always in `auction`. `number` is the
number of the event, which tells apart what is otherwise equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from understudy.errors import InvalidInput
from understudy.nexmark import pools
from understudy.nexmark.columns import Columns
from understudy.nexmark.draws import below
from understudy.sources.pace import exact, rows_before

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

SCHEMA = """
    number long, kind int, at timestamp, person long, auction long,
    price long, channel string, url string,
    name string, email string, card string, city string, state string,
    item string, description string, initial long, reserve long, expires timestamp, category long,
    extra string
"""
PERSON, AUCTION, BID = 0, 1, 2
PEOPLE, AUCTIONS, CYCLE = 1, 3, 50
"""Of the 50 events of a cycle, the first is a person, the next three are auctions, the rest are bids."""
FIRST_ID, FIRST_CATEGORY, CATEGORIES = 1_000, 10, 5
ACTIVE_PEOPLE, IN_FLIGHT, LEAD, HOT_EVERY = 1_000, 100, 10, 100
"""People who still do something; auctions that still get bids; how far ids run ahead; of how many one is hot."""
EXTRAS = {PERSON: 138, AUCTION: 390, BID: 68}
"""Letters of filling, so that events have 200, 500 and 100 bytes on average."""
SHUFFLE = 953
"""A prime: event numbers times this, modulo the size of a group, are a permutation of the group."""
START = datetime(2015, 7, 15, tzinfo=UTC)


@dataclass(frozen=True)
class Events:
    """Makes events; `make` is the function for ``us.sources.Generator``.

    Parameters
    ----------
    rate : float
        Events a second, in event time too.
    epoch_s : float
        Length of an epoch in seconds.
    seed : int, optional
        Default: 0.
    group : int, optional
        Events arrive out of order within groups of so many. Default: 1, in order.
    start : datetime, optional
        Event time of the first event.

    Raises
    ------
    InvalidInput
        If the size of a group is not above 0, or a multiple of 953.

    Examples
    --------
    >>> made = Events(rate=100, epoch_s=1.0).make(3, 0, 100, None)
    >>> made["number"][0].as_py(), made["kind"].to_pylist()[:6], str(made["at"][50].as_py().time())
    (300, [0, 1, 1, 1, 2, 2], '00:00:03.500000')
    """

    rate: float
    epoch_s: float
    seed: int = 0
    group: int = 1
    start: datetime = START

    def __post_init__(self) -> None:
        if self.group < 1 or self.group % SHUFFLE == 0:
            raise InvalidInput(
                f"group={self.group} cannot be used",
                why=f"events are put out of order by multiplying with {SHUFFLE}, which must not divide the size",
                fix="choose another size, 1 for events in order",
            )

    def make(self, epoch: int, _slice: int, rows: int, _rng: np.random.Generator | None) -> pa.Table:
        """The events of an epoch, in the order in which they arrive."""
        first = rows_before(epoch, exact(self.rate), exact(self.epoch_s))
        arrived = np.arange(first, first + rows, dtype=np.int64)
        numbers = arrived // self.group * self.group + arrived * SHUFFLE % self.group
        place = numbers % CYCLE
        kind = np.where(place < PEOPLE, PERSON, np.where(place < PEOPLE + AUCTIONS, AUCTION, BID))
        columns = Columns(kind)
        everything = kind >= PERSON
        columns.put("number", everything, numbers)
        columns.put("kind", everything, kind)
        columns.put("at", everything, self._millis(numbers) * 1000)
        self._people(columns, numbers)
        self._auctions(columns, numbers)
        self._bids(columns, numbers)
        return columns.table()

    def _people(self, columns: Columns, all_numbers: NDArray[np.int64]) -> None:
        who = columns.kind == PERSON
        numbers = all_numbers[who]
        columns.put("person", who, last_person(numbers) + FIRST_ID)
        for purpose, (name, pool) in enumerate(_PERSON_TEXTS.items(), 1):
            self._pick(columns, name, who, numbers, pool(), purpose)
        self._pick(columns, "extra", who, numbers, pools.extras(EXTRAS[PERSON]), 9)

    def _auctions(self, columns: Columns, all_numbers: NDArray[np.int64]) -> None:
        which = columns.kind == AUCTION
        numbers = all_numbers[which]
        hot_seller = last_person(numbers) // HOT_EVERY * HOT_EVERY
        seller = np.where(self._draw(4, numbers, 10) > 0, hot_seller, self._any_person(numbers, 11))
        initial = pools.prices()[self._draw(pools.PRICES, numbers, 12)]
        opened = self._millis(numbers)
        usual = self._millis(numbers + IN_FLIGHT * CYCLE // AUCTIONS) - opened
        expires = opened + 1 + self._draw(np.maximum(2 * usual, 1), numbers, 14)
        columns.put("person", which, seller + FIRST_ID)
        columns.put("auction", which, last_auction(numbers) + FIRST_ID)
        columns.put("initial", which, initial)
        columns.put("reserve", which, initial + pools.prices()[self._draw(pools.PRICES, numbers, 13)])
        columns.put("expires", which, expires * 1000)
        columns.put("category", which, FIRST_CATEGORY + self._draw(CATEGORIES, numbers, 15))
        self._pick(columns, "item", which, numbers, pools.items(), 16)
        self._pick(columns, "description", which, numbers, pools.descriptions(), 17)
        self._pick(columns, "extra", which, numbers, pools.extras(EXTRAS[AUCTION]), 18)

    def _bids(self, columns: Columns, all_numbers: NDArray[np.int64]) -> None:
        which = columns.kind == BID
        numbers = all_numbers[which]
        # The second of a hundred people, so that hot bidders are not hot sellers.
        hot_bidder = last_person(numbers) // HOT_EVERY * HOT_EVERY + 1
        bidder = np.where(self._draw(4, numbers, 20) > 0, hot_bidder, self._any_person(numbers, 21))
        newest = last_auction(numbers)
        oldest = np.maximum(newest - IN_FLIGHT, 0)
        any_auction = oldest + self._draw(newest - oldest + 1 + LEAD, numbers, 22)
        hot_auction = newest // HOT_EVERY * HOT_EVERY
        auction = np.where(self._draw(2, numbers, 23) > 0, hot_auction, any_auction)
        columns.put("person", which, bidder + FIRST_ID)
        columns.put("auction", which, auction + FIRST_ID)
        columns.put("price", which, pools.prices()[self._draw(pools.PRICES, numbers, 24)])
        hot = len(pools.HOT_CHANNELS)
        usual_channel = hot + self._draw(pools.CHANNELS, numbers, 27)
        channel = np.where(self._draw(2, numbers, 25) > 0, self._draw(hot, numbers, 26), usual_channel)
        columns.pick("channel", which, channel, pools.channels())
        columns.pick("url", which, channel, pools.urls())
        self._pick(columns, "extra", which, numbers, pools.extras(EXTRAS[BID]), 28)

    def _millis(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Event time in milliseconds; a steady rate, counted exactly."""
        rate = exact(self.rate)
        return int(self.start.timestamp() * 1000) + numbers * (1000 * rate.denominator) // rate.numerator

    def _any_person(self, numbers: NDArray[np.int64], purpose: int) -> NDArray[np.int64]:
        """One of the newest people, or one of those who come next."""
        people = last_person(numbers) + 1
        active = np.minimum(people, ACTIVE_PEOPLE)
        return people - active + self._draw(active + LEAD, numbers, purpose)

    def _pick(
        self,
        columns: Columns,
        name: str,
        rows: NDArray[np.bool_],
        numbers: NDArray[np.int64],
        pool: pa.Array,
        purpose: int,
    ) -> None:
        columns.pick(name, rows, self._draw(len(pool), numbers, purpose), pool)

    def _draw(self, limit: int | NDArray[np.int64], numbers: NDArray[np.int64], purpose: int) -> NDArray[np.int64]:
        return below(limit, numbers, purpose, self.seed)


_PERSON_TEXTS: dict[str, Callable[[], pa.Array]] = {
    "name": pools.names,
    "email": pools.emails,
    "card": pools.cards,
    "city": pools.cities,
    "state": pools.states,
}


def last_person(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many people came before the newest one at this event, which may be a person itself."""
    return numbers // CYCLE


def last_auction(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many auctions came before the newest one at this event, which may be an auction itself."""
    return numbers // CYCLE * AUCTIONS + np.clip(numbers % CYCLE, 0, AUCTIONS) - PEOPLE
