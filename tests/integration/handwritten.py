"""The documented queries once more, as DataFrame code written by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.model.entries import OutputMode


@dataclass(frozen=True)
class Written:
    """DataFrame code over these inputs."""

    function: Callable[..., DataFrame]
    inputs: tuple[str, ...] = ("trades",)
    mode: OutputMode = "append"


def _timed(rows: DataFrame, late: str = "0 seconds") -> DataFrame:
    return rows.withWatermark("at", late)


def _expensive(rows: DataFrame) -> DataFrame:
    return rows.where("price > 100")


def _values(rows: DataFrame) -> DataFrame:
    return rows.where("symbol in ('OAK', 'ASH')").selectExpr("symbol", "price * quantity AS value")


def _functions(rows: DataFrame) -> DataFrame:
    kept = rows.where("(price < 95 or price > 105) and symbol like 'A%'")
    return kept.selectExpr("id", "lower(symbol) AS name", "round(price / 3, 2) AS third")


def _cases(rows: DataFrame) -> DataFrame:
    high, low = F.col("price") >= 105, F.col("price") < 95
    kind = F.when(high, "high").when(low, "low").otherwise("usual")
    return rows.select("id", kind.alias("class"), F.coalesce("note", F.lit("none")).alias("note"))


def _types(rows: DataFrame) -> DataFrame:
    kept = rows.where("note is not null")
    return kept.selectExpr("id", "int(price) AS whole", "quantity % 2 AS odd", "-quantity AS less")


def _means(rows: DataFrame) -> DataFrame:
    means = _timed(rows).groupBy(F.window("at", "4 seconds"), "symbol").agg(F.avg("price").alias("mean"))
    return means.where("mean > 100").select("symbol", "mean")


def _sliding(rows: DataFrame) -> DataFrame:
    counts = _timed(rows).groupBy(F.window("at", "4 seconds", "2 seconds"), "symbol").count()
    return counts.selectExpr("symbol", "window.start AS window_start", "window.end AS window_end", "count AS n")


def _volume(rows: DataFrame) -> DataFrame:
    windows = _timed(rows, "1500 milliseconds").groupBy(F.window("at", "2 seconds"))
    found = windows.agg(F.count("*").alias("count"), F.sum("quantity").alias("volume"))
    return found.selectExpr("window.end AS window_end", "count", "volume")


def _totals(rows: DataFrame) -> DataFrame:
    return rows.groupBy("symbol").agg(F.count("*").alias("count"), F.sum("quantity").alias("sum_quantity"))


def _spread(rows: DataFrame) -> DataFrame:
    found = rows.groupBy("symbol").agg(F.max("price").alias("hi"), F.min("price").alias("lo"), F.count("*").alias("n"))
    return found.where("hi - lo > 15 and n > 10").selectExpr("symbol", "hi - lo AS spread")


def _by_two(rows: DataFrame) -> DataFrame:
    kept = _timed(rows).where("price > 95")
    counts = kept.groupBy(F.window("at", "4 seconds"), "symbol", "quantity").agg(F.count("*").alias("n"))
    return counts.drop("window")


def _computed(rows: DataFrame) -> DataFrame:
    even = (F.col("quantity") % 2 == 0).alias("even")
    groups = _timed(rows).groupBy(F.window("at", "4 seconds"), even)
    distinct, deviation = F.approx_count_distinct("symbol"), F.stddev("price")
    return groups.agg(distinct.alias("symbols"), deviation.alias("deviation")).drop("window")


def _bars(rows: DataFrame) -> DataFrame:
    found = (
        _timed(rows)
        .groupBy(F.window("at", "2 seconds"), "symbol")
        .agg(
            F.min_by("price", "id").alias("open"),
            F.max("price").alias("high"),
            F.min("price").alias("low"),
            F.max_by("price", "id").alias("close"),
            (F.sum(F.col("price") * F.col("quantity")) / F.sum("quantity")).alias("vwap"),
        )
    )
    return found.selectExpr("symbol", "window.start AS start", "open", "high", "low", "close", "vwap")


def _sides(trades: DataFrame, quotes: DataFrame, late: str = "0 seconds") -> tuple[DataFrame, DataFrame]:
    return _timed(trades, late).alias("t"), _timed(quotes, late).alias("q")


def _near(milliseconds: int, left: str = "t", right: str = "q") -> str:
    bound = f"interval {milliseconds} milliseconds"
    return f"{left}.symbol = {right}.symbol and {right}.at between {left}.at - {bound} and {left}.at + {bound}"


def _join(trades: DataFrame, quotes: DataFrame) -> DataFrame:
    left, right = _sides(trades, quotes)
    return left.join(right, F.expr(_near(500))).select("t.id", "t.price", "q.bid")


def _gains(trades: DataFrame, quotes: DataFrame) -> DataFrame:
    left, right = _sides(trades, quotes)
    pairs = left.join(right, F.expr(f"{_near(1000)} and q.bid > t.price")).where("q.at >= t.at")
    return pairs.selectExpr("t.id AS id", "q.at AS quoted", "q.bid - t.price AS gain")


def _outer(trades: DataFrame, quotes: DataFrame) -> DataFrame:
    left, right = _sides(trades, quotes, "500 milliseconds")
    return left.join(right, F.expr(_near(200)), "leftOuter").select("t.id", "q.bid")


def _with_itself(trades: DataFrame) -> DataFrame:
    left, right = _timed(trades).alias("a"), _timed(trades).alias("b")
    pairs = left.join(right, F.expr(f"{_near(300, 'a', 'b')} and a.quantity = b.quantity"))
    return pairs.where("a.id < b.id").selectExpr("a.id AS first", "b.id AS second")


WRITTEN: dict[int, Written] = {
    1: Written(_expensive),
    2: Written(_values),
    3: Written(_functions),
    4: Written(_cases),
    5: Written(_types),
    6: Written(_means),
    7: Written(_sliding),
    8: Written(_volume),
    9: Written(_totals, mode="update"),
    10: Written(_spread, mode="update"),
    11: Written(_by_two),
    12: Written(_computed),
    13: Written(_bars),
    14: Written(_join, ("trades", "quotes")),
    15: Written(_gains, ("trades", "quotes")),
    16: Written(_outer, ("trades", "quotes")),
    17: Written(_with_itself),
}


def _first(pairs: DataFrame, by: list[str], then: str) -> DataFrame:
    """Of all events that could follow, the earliest."""
    return pairs.groupBy(*by).agg(F.min_by(then, f"{then}.at").alias(then))


def _rising(trades: DataFrame, _: DataFrame) -> DataFrame:
    a = trades.select(F.struct("*").alias("a")).where("a.price > 100")
    b = trades.select(F.struct("*").alias("b"))
    later = "b.symbol = a.symbol and b.price > a.price and b.at > a.at and b.at <= a.at + interval 3 seconds"
    found = _first(a.join(b, F.expr(later)), ["a"], "b")
    return found.selectExpr("a.symbol AS symbol", "a.price AS first", "b.price AS second", "b.at AS at", "b.at AS last")


def _recovery(trades: DataFrame, _: DataFrame) -> DataFrame:
    a, b, c = (trades.select(F.struct("*").alias(name)) for name in "abc")
    fall = "b.symbol = a.symbol and b.price < a.price * 0.95d and b.at > a.at and b.at <= a.at + interval 2 seconds"
    fallen = _first(a.join(b, F.expr(fall)), ["a"], "b")
    rise = "c.symbol = a.symbol and (c.price >= a.price or c.price - b.price > 8)"
    rise += " and c.at > b.at and c.at <= a.at + interval 2 seconds"
    found = _first(fallen.join(c, F.expr(rise)), ["a", "b"], "c").where("a.quantity <> c.quantity")
    rows = ("a.id AS top", "b.id AS bottom", "c.id AS recovered", "c.price - b.price AS rise", "c.at AS last")
    return found.selectExpr(*rows)


def _cheap(trades: DataFrame, quotes: DataFrame) -> DataFrame:
    q = quotes.select(F.struct("*").alias("q")).where("q.bid > 100")
    t = trades.select(F.struct("*").alias("t"))
    later = "t.symbol = q.symbol and t.price < q.bid and t.at > q.at and t.at <= q.at + interval 1 second"
    found = _first(q.join(t, F.expr(later)), ["q"], "t")
    rows = ("q.symbol AS symbol", "q.at AS quoted", "t.id AS id", "upper(t.note) AS note", "t.at AS last")
    return found.selectExpr(*rows)


SEQUENCES: dict[int, Callable[[DataFrame, DataFrame], DataFrame]] = {18: _rising, 19: _recovery, 20: _cheap}
"""Over all rows at once; `last` is when a match is complete."""
