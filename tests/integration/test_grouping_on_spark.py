"""Spark's plans tell whether the state of an operator is grouped by its key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType
from tests.apps.kinds import Running
from tests.builders import Output

import understudy as us
from understudy.errors import InvalidInput
from understudy.runtime.application import load
from understudy.stream import check

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
APPLICATIONS = [p for p in sorted((ROOT / "examples").glob("*.py")) if "us.Topology(" in p.read_text()]
SCHEMA = "user long, shop string, at timestamp, amount long"


def make(epoch: int, slice_index: int, rows: int, rng: Any) -> Any:
    return None


def topology(function: Callable[..., DataFrame], inputs: int, key: Any, slices: int = 2) -> us.Topology:
    app = us.Topology("app")
    rows = [app.source(f"rows{n}", us.sources.Generator(make, SCHEMA)) for n in range(inputs)]
    app.operator(*rows, name="bad", key=key, slices=slices, output_mode="append")(function)
    app.sink("out", "bad", Output())
    return app


def late(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("at", "1 second")


def counted(rows: DataFrame, *by: Any) -> DataFrame:
    return late(rows).groupBy(F.window("at", "5 seconds"), *by).count()


def by_user(rows: DataFrame) -> DataFrame:
    return counted(rows, "user")


def by_both(rows: DataFrame) -> DataFrame:
    return counted(rows, "shop", "user")


def by_shop(rows: DataFrame) -> DataFrame:
    return counted(rows, "shop")


def by_window(rows: DataFrame) -> DataFrame:
    return counted(rows)


def by_sliding_window(rows: DataFrame) -> DataFrame:
    return late(rows).groupBy(F.window("at", "10 seconds", "5 seconds")).count()


def by_user_in_sliding_windows(rows: DataFrame) -> DataFrame:
    return late(rows).groupBy(F.window("at", "10 seconds", "5 seconds"), "user").count()


def by_session(rows: DataFrame) -> DataFrame:
    return late(rows).groupBy(F.session_window("at", "5 seconds"), "user").count()


def by_renamed(rows: DataFrame) -> DataFrame:
    return counted(rows.select(F.col("user").alias("customer"), "at"), "customer")


def by_swapped_names(rows: DataFrame) -> DataFrame:
    return counted(rows.select(F.col("shop").alias("user"), "at"), "user")


def by_expression(rows: DataFrame) -> DataFrame:
    return counted(rows, (F.col("user") + 1).alias("next"))


def by_struct(rows: DataFrame) -> DataFrame:
    return counted(rows.withColumn("both", F.struct("user", "shop")), "both.user")


def by_opaque(rows: DataFrame) -> DataFrame:
    def same(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches

    return counted(rows.mapInArrow(same, rows.schema), "shop")


def exploded(rows: DataFrame) -> DataFrame:
    return counted(rows.select("user", "at", F.explode(F.split("shop", " ")).alias("word")), "word")


def twice(rows: DataFrame) -> DataFrame:
    first = counted(rows, "user").select(F.window_time("window").alias("at"), "user", "count")
    return first.groupBy(F.window("at", "20 seconds")).agg(F.sum("count").alias("n"))


def distinct_user(rows: DataFrame) -> DataFrame:
    return late(rows).dropDuplicates(["user", "at"])


def distinct_shop(rows: DataFrame) -> DataFrame:
    return late(rows).dropDuplicates(["shop", "at"])


def distinct_rows(rows: DataFrame) -> DataFrame:
    return late(rows).distinct()


def distinct_without_user(rows: DataFrame) -> DataFrame:
    return late(rows).select("shop", "at").distinct()


def distinct_within(rows: DataFrame) -> DataFrame:
    return late(rows).dropDuplicatesWithinWatermark(["shop"])


def limited(rows: DataFrame) -> DataFrame:
    return rows.limit(5)


OUTPUT = StructType([StructField("user", LongType()), StructField("sum", LongType())])


def processed(rows: DataFrame) -> DataFrame:
    return rows.groupBy("user").transformWithState(Running(), OUTPUT, "append", "none")


def processed_by_shop(rows: DataFrame) -> DataFrame:
    return rows.groupBy("shop").transformWithState(Running(), OUTPUT, "append", "none")


def stateless(rows: DataFrame) -> DataFrame:
    return rows.where("amount > 5")


def with_a_table(rows: DataFrame) -> DataFrame:
    table = rows.sparkSession.createDataFrame([(1, "x")], "user long, name string")
    return counted(rows.join(table, "user"), "name")


def joined(left: DataFrame, right: DataFrame) -> DataFrame:
    near = F.expr("l.user = r.user AND r.at BETWEEN l.at - INTERVAL 1 SECOND AND l.at")
    return late(left).alias("l").join(late(right).alias("r"), near).select("l.user", "l.at", "r.shop")


def joined_using(left: DataFrame, right: DataFrame) -> DataFrame:
    return late(left).join(late(right), ["user", "at"]).select("user", "at")


def joined_by_filter(left: DataFrame, right: DataFrame) -> DataFrame:
    both = late(left).alias("l").join(late(right).alias("r"), F.expr("l.at = r.at"))
    return both.where("l.user = r.user").select("l.user", "l.at")


def joined_by_shop(left: DataFrame, right: DataFrame) -> DataFrame:
    near = F.expr("l.shop = r.shop AND r.at BETWEEN l.at - INTERVAL 1 SECOND AND l.at")
    return late(left).alias("l").join(late(right).alias("r"), near).select("l.user", "l.at")


def joined_crosswise(left: DataFrame, right: DataFrame) -> DataFrame:
    near = F.expr("l.user = r.amount AND r.at BETWEEN l.at - INTERVAL 1 SECOND AND l.at")
    return late(left).alias("l").join(late(right).alias("r"), near).select("l.user", "l.at")


def joined_then_grouped(left: DataFrame, right: DataFrame) -> DataFrame:
    return joined(left, right).groupBy(F.window("at", "5 seconds"), "user").count()


def joined_then_grouped_by_shop(left: DataFrame, right: DataFrame) -> DataFrame:
    return joined(left, right).groupBy(F.window("at", "5 seconds"), "shop").count()


def joined_with_itself(rows: DataFrame) -> DataFrame:
    return joined(rows, rows)


def united(left: DataFrame, right: DataFrame) -> DataFrame:
    return counted(left.union(right), "user")


def united_crosswise(left: DataFrame, right: DataFrame) -> DataFrame:
    return counted(left.select("user", "at").union(right.select("amount", "at")), "user")


RIGHT: list[tuple[Callable[..., DataFrame], int, Any]] = [
    *((function, 1, "user") for function in (by_user, by_both, by_user_in_sliding_windows, by_session, by_renamed)),
    *((function, 1, "user") for function in (by_expression, by_struct, by_opaque, distinct_user, distinct_rows)),
    *((function, 1, "user") for function in (processed, stateless, with_a_table, joined_with_itself)),
    *((function, 1, "shop") for function in (by_shop, by_both, exploded, distinct_within)),
    (by_both, 1, ["user", "shop"]),
    *((function, 2, "user") for function in (joined, joined_using, joined_by_filter, joined_then_grouped, united)),
]
WRONG: list[tuple[Callable[..., DataFrame], int, Any, str]] = [
    (by_shop, 1, "user", "shop"),
    (by_user, 1, ["user", "shop"], "shop"),
    (by_window, 1, "user", "window"),
    (by_sliding_window, 1, "user", "window"),
    (by_swapped_names, 1, "user", "user"),
    (exploded, 1, "user", "word"),
    (twice, 1, "user", "window"),
    (distinct_shop, 1, "user", "shop"),
    (distinct_without_user, 1, "user", "shop"),
    (distinct_within, 1, "user", "shop"),
    (limited, 1, "user", "all rows"),
    (processed_by_shop, 1, "user", "shop"),
    (joined_by_shop, 2, "user", "shop = "),
    (joined_crosswise, 2, "user", "amount"),
    (joined_then_grouped_by_shop, 2, "user", "shop"),
    (united_crosswise, 2, "user", "user"),
]


def named(case: Any) -> str:
    return f"{case[0].__name__}-{case[2]}"


@pytest.mark.parametrize("case", RIGHT, ids=named)
def test_state_by_key_passes(case: tuple[Callable[..., DataFrame], int, Any], spark: SparkSession) -> None:
    function, inputs, key = case
    assert check.analyse(spark, topology(function, inputs, key))["bad"]


@pytest.mark.parametrize("case", WRONG, ids=named)
def test_state_by_something_else_is_refused(
    case: tuple[Callable[..., DataFrame], int, Any, str], spark: SparkSession
) -> None:
    function, inputs, key, said = case
    with pytest.raises(InvalidInput, match="operator 'bad'") as raised:
        check.analyse(spark, topology(function, inputs, key))
    assert said in raised.value.what
    assert "slices=1" in raised.value.fix
    assert check.analyse(spark, topology(function, inputs, key, slices=1))["bad"], "one slice holds every group"


@pytest.mark.parametrize("path", APPLICATIONS, ids=lambda path: path.stem)
def test_the_examples_pass(path: Path, spark: SparkSession) -> None:
    app = load(path)
    assert check.analyse(spark, app).keys() == {operator.name for operator in app.operators}
