"""Queries over windows of event time: each result is delivered once, when no row of it can be missing."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.nexmark.events import AUCTION, BID, PERSON
from understudy.nexmark.views import DELAY, bids

WINDOW, SLIDE, GAP = "10 seconds", "2 seconds", "10 seconds"


def q5(events: DataFrame) -> DataFrame:
    """Hot items: the auctions with the most bids in the last ten seconds, every two seconds."""
    timed = bids(events).withWatermark("at", DELAY)
    counts = timed.groupBy(F.window("at", WINDOW, SLIDE), "auction").agg(F.count("*").alias("bids"))
    every = F.collect_list(F.struct("auction", "bids")).alias("every")
    windows = counts.groupBy("window").agg(F.max("bids").alias("most"), every)
    hottest = F.filter("every", lambda one: one["bids"] == F.col("most"))
    return windows.select(F.col("window.start").alias("start"), F.inline(F.sort_array(hottest)))


def q7(events: DataFrame) -> DataFrame:
    """The highest bids of every ten seconds; several, if their prices are equal."""
    timed = bids(events).withWatermark("at", DELAY)
    columns = ("number", "auction", "bidder", "price", F.unix_micros("at").alias("micros"), "extra")
    same = F.sort_array(F.collect_list(F.struct(*columns))).alias("same")
    prices = timed.groupBy(F.window("at", WINDOW), "price").agg(same)
    highest = prices.groupBy("window").agg(F.max_by("same", "price").alias("highest"))
    found = highest.select(F.inline("highest"))
    return found.select("auction", "bidder", "price", F.timestamp_micros("micros").alias("at"), "extra")


def q8(events: DataFrame) -> DataFrame:
    """New users: people who came and opened an auction within the same ten seconds.

    A person and the auctions of that person share a key, so the join of two windows is one group.
    """
    timed = events.where(F.col("kind") != BID).select("kind", "at", "person", "name").withWatermark("at", DELAY)
    came, opened = F.count_if(F.col("kind") == PERSON), F.count_if(F.col("kind") == AUCTION)
    found = timed.groupBy(F.window("at", WINDOW), "person").agg(
        F.max("name").alias("name"), came.alias("came"), opened.alias("opened")
    )
    new = found.where("came > 0 AND opened > 0")
    return new.select(F.col("person").alias("id"), "name", F.col("window.start").alias("start"))


def q11(events: DataFrame) -> DataFrame:
    """Sessions: how many bids a bidder made without a pause of ten seconds."""
    timed = bids(events).withWatermark("at", DELAY)
    counted = timed.groupBy("bidder", F.session_window("at", GAP)).agg(F.count("*").alias("bids"))
    return counted.select("bidder", "bids", F.col("session_window.start"), F.col("session_window.end"))
