"""Queries that keep a group for ever and deliver it again whenever an epoch has touched it (update mode)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from understudy.nexmark.views import bids

TOP = 10


def q15(events: DataFrame) -> DataFrame:
    """Bidding statistics of a day: bids, and different bidders and auctions, by level of price."""
    return _with_day(bids(events)).groupBy("day").agg(*_levels("bids"), *_different("bidder"), *_different("auction"))


def q16(events: DataFrame) -> DataFrame:
    """The same for every channel and day, with the newest minute."""
    grouped = _with_day(bids(events)).groupBy("channel", "day")
    newest = F.max(F.date_format("at", "HH:mm")).alias("minute")
    return grouped.agg(newest, *_levels("bids"), *_different("bidder"), *_different("auction"))


def q17(events: DataFrame) -> DataFrame:
    """Statistics of every auction and day: bids by level of price, and the price itself."""
    price = F.col("price")
    total = F.sum(price).alias("sum_price")
    grouped = _with_day(bids(events)).groupBy("auction", "day")
    found = grouped.agg(*_levels("bids"), F.min(price).alias("min_price"), F.max(price).alias("max_price"), total)
    return found.withColumn("avg_price", F.expr("sum_price div total_bids"))


def q18(events: DataFrame) -> DataFrame:
    """The last bid of every bidder on every auction."""
    columns = ("price", "channel", "url", "at", "extra")
    last = F.max_by(F.struct(*columns), F.struct("at", "number")).alias("last")
    return bids(events).groupBy("auction", "bidder").agg(last).select("auction", "bidder", "last.*")


def q19(events: DataFrame) -> DataFrame:
    """The ten highest bids of every auction; of equal ones the earlier comes first."""
    columns = ("bidder", "price", "channel", "url", "at", "extra")
    order = F.struct(F.col("price"), -F.col("number"))
    top = F.max_by(F.struct(*columns), order, TOP)
    ranked = bids(events).groupBy("auction").agg(top.alias("top"))
    listed = ranked.select("auction", F.posexplode("top").alias("place", "bid"))
    return listed.select("auction", (F.col("place") + 1).alias("rank"), "bid.*")


def _with_day(rows: DataFrame) -> DataFrame:
    return rows.withColumn("day", F.date_format("at", "yyyy-MM-dd"))


def _by_level() -> dict[str, Column]:
    """Levels of price by their names; prices are cents."""
    price = F.col("price")
    return {
        "total": F.lit(True),
        "rank1": price < 10_000,
        "rank2": (price >= 10_000) & (price < 1_000_000),
        "rank3": price >= 1_000_000,
    }


def _levels(what: str) -> list[Column]:
    return [F.count_if(holds).alias(f"{level}_{what}") for level, holds in _by_level().items()]


def _different(column: str) -> list[Column]:
    """Spark counts no distinct values in a stream, so the values themselves are kept."""
    sets = {level: F.collect_set(F.when(holds, F.col(column))) for level, holds in _by_level().items()}
    return [F.size(values).cast("long").alias(f"{level}_{column}s") for level, values in sets.items()]
