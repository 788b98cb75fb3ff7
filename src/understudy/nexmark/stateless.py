"""Queries that look at one bid at a time."""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from understudy.nexmark.pools import HOT_CHANNELS
from understudy.nexmark.views import bids

EUROS = Decimal("0.908")
SIDE_ROWS = 10_000
CHANNEL_ID = r"(&|^)channel_id=([^&]*)"


def q0(events: DataFrame) -> DataFrame:
    """Pass through: what the machinery costs."""
    return bids(events).select("auction", "bidder", "price", "at", "extra")


def q1(events: DataFrame) -> DataFrame:
    """Currency conversion: every bid in euros."""
    return bids(events).select("auction", "bidder", _euros().alias("price"), "at", "extra")


def _euros() -> Column:
    return (F.col("price") * F.lit(EUROS)).cast("decimal(23,3)")


def q2(events: DataFrame) -> DataFrame:
    """Selection: bids on every 123rd auction."""
    return bids(events).where("auction % 123 = 0").select("auction", "price")


def q10(events: DataFrame) -> DataFrame:
    """Log to the file system: every bid with the day and the minute it belongs to."""
    day, minute = (F.date_format("at", text).alias(name) for text, name in (("yyyy-MM-dd", "dt"), ("HH:mm", "hm")))
    return bids(events).select("auction", "bidder", "price", "at", "extra", day, minute)


def q13(events: DataFrame) -> DataFrame:
    """Bounded side input: every bid with a value looked up in a table that never changes."""
    side = events.sparkSession.range(SIDE_ROWS).select("id", F.col("id").cast("string").alias("value"))
    found = bids(events).join(side, F.expr(f"auction % {SIDE_ROWS} = id"))
    return found.select("auction", "bidder", "price", "at", "value")


def q14(events: DataFrame) -> DataFrame:
    """Calculation: bids within a range of prices, with the time of day in words and how often a letter occurs."""
    hour = F.hour("at")
    part = F.when(hour.between(8, 18), "dayTime").when((hour <= 6) | (hour >= 20), "nightTime").otherwise("otherTime")
    letters = F.regexp_count("extra", F.lit("c")).cast("long")
    priced = bids(events).withColumn("price", _euros()).where("price > 1000000 AND price < 50000000")
    return priced.select("auction", "bidder", "price", part.alias("part"), "at", "extra", letters.alias("letters"))


def q21(events: DataFrame) -> DataFrame:
    """Channel ids: known channels have a fixed one, the others name theirs in the address, or are left out."""
    known = {name.lower(): str(number) for number, name in enumerate(HOT_CHANNELS)}
    channel, found = F.lower("channel"), F.regexp_extract("url", CHANNEL_ID, 2)
    number = F.coalesce(*[F.when(channel == name, value) for name, value in known.items()], F.nullif(found, F.lit("")))
    numbered = bids(events).select("auction", "bidder", "price", "channel", number.alias("channel_id"))
    return numbered.where("channel_id IS NOT NULL")


def q22(events: DataFrame) -> DataFrame:
    """The folders of every address."""
    parts = F.split("url", "/")
    folders = [F.get(parts, F.lit(number + 2)).alias(f"dir{number}") for number in (1, 2, 3)]
    return bids(events).select("auction", "bidder", "price", "channel", *folders)
