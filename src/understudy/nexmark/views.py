"""The three kinds of events as DataFrames of their own, with names that no other kind has, so that they can be joined.

A watermark is set after a view has chosen its rows: Spark would move the choice before it anyway, so a view's watermark
follows the rows of that view alone.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.nexmark.events import AUCTION, BID, PERSON

DELAY = "4 seconds"
"""How much out of order events may be: later ones are dropped where windows or auctions are closed."""


def people(events: DataFrame) -> DataFrame:
    renamed = [F.col("person").alias("id"), F.col("extra").alias("person_extra")]
    return events.where(F.col("kind") == PERSON).select(*renamed, "name", "email", "card", "city", "state")


def auctions(events: DataFrame) -> DataFrame:
    return events.where(F.col("kind") == AUCTION).select(
        F.col("auction").alias("item_id"),
        "item",
        "description",
        "initial",
        "reserve",
        F.col("at").alias("opened"),
        "expires",
        F.col("person").alias("seller"),
        "category",
        F.col("extra").alias("item_extra"),
    )


def bids(events: DataFrame) -> DataFrame:
    bidder = F.col("person").alias("bidder")
    chosen = events.where(F.col("kind") == BID)
    return chosen.select("number", "auction", bidder, "price", "channel", "url", "at", "extra")
