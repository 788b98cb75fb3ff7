"""Joins of the whole past: every row is kept, and a pair is delivered when its second row arrives."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.nexmark.views import auctions, bids, people

CATEGORY = 10
NEAR = ("OR", "ID", "CA")


def q3(events: DataFrame) -> DataFrame:
    """Local items: who sells in three states, in one category, and which auctions."""
    sellers = people(events).where(F.col("state").isin(*NEAR))
    found = auctions(events).where(F.col("category") == CATEGORY).join(sellers, F.expr("seller = id"))
    return found.select("name", "city", "state", "item_id")


def q20(events: DataFrame) -> DataFrame:
    """Bids with their auctions, of one category."""
    chosen = auctions(events).where(F.col("category") == CATEGORY)
    found = bids(events).join(chosen, F.expr("auction = item_id"))
    return found.drop("number", "item_id")


def q23(events: DataFrame) -> DataFrame:
    """Bids of people who sell something too, with the person and with every auction of that person."""
    bidders = bids(events).join(people(events), F.expr("bidder = id"))
    found = bidders.join(auctions(events), F.expr("bidder = seller"))
    return found.drop("number", "at", "item_id", "id")
