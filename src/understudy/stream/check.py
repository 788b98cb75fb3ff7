"""Asks Spark about every operator before any data flows: does it work, does it keep state, what comes out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from understudy.control.application.grouping import check_grouping
from understudy.errors import InvalidInput
from understudy.model.entry_checks import at, check_columns, check_key_types
from understudy.model.messages import Analysis
from understudy.model.schema import parse
from understudy.model.topology import Operator, Topology
from understudy.stream import frames, plans

# Whatever is not known to be stateless counts as stateful: a checkpoint too many costs little, one too few everything.
_STATELESS = {
    "CollectMetrics", "DeserializeToObject", "EventTimeWatermark", "Expand", "Filter", "Generate", "MapElements",
    "MapInArrow", "MapInPandas", "MapPartitions", "Project", "Repartition", "RepartitionByExpression",
    "ResolvedHint", "SerializeFromObject", "StreamingRelationV2", "SubqueryAlias", "TypedFilter", "Union",
    "ArrowEvalPython", "BatchEvalPython",
}  # fmt: skip


def analyse(spark: SparkSession, topology: Topology) -> dict[str, Analysis]:
    """Builds every operator once on empty streams; raises the first mistake, with the operator's name."""
    schemas = {source.name: source.source.schema for source in topology.sources}
    found: dict[str, Analysis] = {}
    for operator in topology.in_order():
        inputs = [schemas[name] for name in operator.inputs]
        for name, schema in zip(operator.inputs, inputs, strict=True):
            check_columns(operator, name, schema.names)
        check_key_types(operator, schemas)
        frame = _call(spark, operator, inputs)
        plan = _plan(frame)
        _check_supported(spark, operator, plan)
        _check_grouping(operator, plan)
        schemas[operator.name] = _arrow(operator, frame)
        found[operator.name] = Analysis(stateful=_keeps_state(plan), output=frame.schema.json())
    return found


def _call(spark: SparkSession, operator: Operator, inputs: Sequence[pa.Schema]) -> DataFrame:
    try:
        result = operator.function(*frames.inputs(spark, f"check {operator.name}", inputs))
    except InvalidInput as error:
        # A query knows the place in its text, and what to do.
        raise InvalidInput(f"{at(operator)}{error.what}", why=error.why, fix=error.fix) from error
    except Exception as error:
        raise InvalidInput(
            f"{at(operator)}operator '{operator.name}' cannot be built",
            why=f"its function raised {type(error).__name__}: {_short(error)}",
            fix="correct its DataFrame code",
        ) from error
    if not isinstance(result, DataFrame):
        raise InvalidInput(
            f"{at(operator)}operator '{operator.name}' returned {type(result).__name__}",
            why="an operator takes streaming DataFrames and returns one",
            fix="return the DataFrame, not a query or a result",
        )
    if not result.isStreaming:
        raise InvalidInput(
            f"{at(operator)}operator '{operator.name}' returned a DataFrame that is not streaming",
            why="its output must follow from its inputs, epoch by epoch",
            fix="build the result from the function's parameters",
        )
    return result


def _check_supported(spark: SparkSession, operator: Operator, plan: Any) -> None:
    jvm: Any = spark._jvm
    mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, operator.output_mode.title())()
    try:
        jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker.checkForStreaming(plan, mode)
    except PySparkException as error:
        raise InvalidInput(
            f"{at(operator)}Spark refuses operator '{operator.name}' with output_mode='{operator.output_mode}'",
            why=_short(error),
            fix="choose another output_mode, add a watermark, or split the operator in two",
        ) from error


def _check_grouping(operator: Operator, plan: Any) -> None:
    if operator.slices > 1 and operator.key:
        check_grouping(operator, plans.read(plan, len(operator.inputs)))


def _arrow(operator: Operator, frame: DataFrame) -> pa.Schema:
    names = [name.lower() for name in frame.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInput(
            f"{at(operator)}operator '{operator.name}' returns two columns named '{twice[0]}'",
            why="the operators that read it could not tell them apart",
            fix="drop or rename one of them",
        )
    try:
        return parse(frame.schema)
    except InvalidInput as error:
        raise InvalidInput(
            f"{at(operator)}operator '{operator.name}' returns a column that cannot be published",
            why=error.what,
            fix="cast it",
        ) from error


def arrow_schema(analysis: Analysis) -> pa.Schema:
    """The schema of an operator's bags, from what an earlier check found."""
    return parse(StructType.fromJson(json.loads(analysis.output)))


def _plan(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed()


def _keeps_state(plan: Any) -> bool:
    if not plan.isStreaming():
        return False
    children = [plan.children().apply(i) for i in range(plan.children().size())]
    name = plan.nodeName()
    own = name not in _STATELESS and not (name == "Join" and sum(child.isStreaming() for child in children) < 2)
    return own or any(_keeps_state(child) for child in children)


def _short(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["without a word"])[0][:400]
