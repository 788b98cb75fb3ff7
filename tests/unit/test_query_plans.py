"""What is derived from a query: keys, slices, event times, output modes, and what each row is carried for."""

from __future__ import annotations

import pytest
from tests.builders import one
from tests.queries import documented, market

import understudy as us
from understudy.errors import InvalidInput
from understudy.model.topology import Topology
from understudy.queries import syntax as s
from understudy.queries.kinds import kind_of
from understudy.queries.matching import evaluate
from understudy.queries.parser import parse
from understudy.queries.places import QueryMistake, Text
from understudy.queries.plans import Aggregation, Joining, Plan, Selection, SequencePlan, Time, Window
from understudy.queries.printer import show
from understudy.queries.query import planned

QUERIES = documented()


def plan(text: str, slices: int | None = None, app: Topology | None = None) -> Plan:
    return planned(app or market(), text, "q", slices)


def sequence(text: str) -> SequencePlan:
    work = plan(text).work
    assert isinstance(work, SequencePlan)
    return work


@pytest.mark.parametrize("number", QUERIES)
def test_a_documented_query_is_printed_as_it_is_written(number: int) -> None:
    assert show(parse(QUERIES[number])) == " ".join(QUERIES[number].split())


@pytest.mark.parametrize(
    ("number", "key", "slices", "mode"),
    [
        (1, (), 3, "append"),
        (6, ("symbol",), 3, "append"),
        (8, (), 1, "append"),
        (9, ("symbol",), 3, "update"),
        (11, ("symbol", "quantity"), 3, "append"),
        (12, (), 1, "append"),
        (14, ("symbol",), 3, "append"),
        (17, ("symbol", "quantity"), 3, "append"),
        (18, ("symbol",), 3, "append"),
        (20, ("symbol",), 3, "append"),
    ],
)
def test_keys_slices_and_modes_follow_from_the_text(number: int, key: tuple[str, ...], slices: int, mode: str) -> None:
    made = us.query(market(slices=3), QUERIES[number], name="q")
    assert (made.key, made.slices, made.output_mode) == (key, slices, mode)


def test_a_query_is_an_operator_like_any_other() -> None:
    app = market()
    means = us.query(app, QUERIES[6], name="means", slices=2, recovery=us.Recovery(scheme="active_standby"))
    joined = us.query(app, QUERIES[14], name="joined")
    assert app.operators == [means, joined]
    assert (means.inputs, means.slices, means.recovery.scheme) == (("trades",), 2, "active_standby")
    assert (joined.inputs, joined.input) == (("trades", "quotes"), "correlated")
    assert str(means.place).endswith(f"test_query_plans.py:{means.place.line if means.place else 0}")


@pytest.mark.parametrize("number", [8, 12])
def test_state_without_a_key_is_not_divided(number: int) -> None:
    assert plan(QUERIES[number], slices=1).slices == 1
    with pytest.raises(QueryMistake, match="cannot be divided among 2 slices"):
        plan(QUERIES[number], slices=2)


def test_a_window_has_a_length_a_rhythm_and_an_event_time() -> None:
    work = plan(QUERIES[7]).work
    assert isinstance(work, Aggregation)
    assert (work.window, work.time) == (Window(4000, 2000), Time("at", 0))
    late = plan(QUERIES[8]).work
    assert isinstance(late, Aggregation)
    assert (late.window, late.time) == (Window(2000, 2000), Time("at", 1500))


def test_equal_aggregates_are_computed_once_and_names_of_results_stand_for_them() -> None:
    work = plan("SELECT symbol AS s, sum(price) / count(*) AS m FROM trades GROUP BY s HAVING m > sum(price) - 3").work
    assert isinstance(work, Aggregation)
    assert [show(one.value) for one in work.aggregates] == ["sum(price)", "count(*)"]
    assert work.having is not None
    assert show(work.having) == "_a0 / _a1 > _a0 - 3"
    assert [(one.name, show(one.value)) for one in work.outputs] == [("s", "_g0"), ("m", "_a0 / _a1")]


def test_a_column_of_the_stream_is_meant_before_the_name_of_a_result() -> None:
    work = plan("SELECT symbol, max(quantity) AS price FROM trades GROUP BY symbol, price HAVING price > 3").work
    assert isinstance(work, Aggregation)
    assert [show(one.value) for one in work.groups] == ["symbol", "price"]
    assert work.having is not None
    assert show(work.having) == "_g1 > 3"


def test_columns_are_found_in_any_case_and_kept_in_the_stream_s() -> None:
    work = plan("SELECT Symbol, PRICE * 2 AS p FROM trades WHERE trades.At IS NOT NULL").work
    assert isinstance(work, Selection)
    assert [show(one.value) for one in work.outputs] == ["symbol", "price * 2"]
    assert work.where == s.Missing(s.Column("at"), negated=True)


@pytest.mark.parametrize(
    ("text", "time", "late_ms"),
    [
        ("SELECT at AS moment, id FROM trades", "moment", 0),
        ("SELECT * FROM trades WHERE price > 3", "at", 0),
        ("SELECT id FROM trades", None, 0),
        ("SELECT symbol, window_start AS at, count(*) FROM trades WITHIN 2 s LATE 1 s GROUP BY symbol", "at", 0),
        ("SELECT window_end, count(*) FROM trades WITHIN 2 s", None, 0),
        ("SELECT t.at FROM trades AS t JOIN quotes AS q ON t.symbol = q.symbol WITHIN 2 s LATE 1 s", "at", 3000),
        ("SELECT a.at AS began, b.at AS ended FROM PATTERN a=trades -> b=trades WITHIN 2 s LATE 1 s", "ended", 0),
        ("SELECT a.at AS began FROM PATTERN a=trades -> b=trades WITHIN 2 s", None, 0),
    ],
)
def test_event_time_is_passed_on_to_queries_that_read_this_one(text: str, time: str | None, late_ms: int) -> None:
    emits = plan(text).emits
    assert (emits.time, emits.late_ms) == (time, late_ms)


def test_queries_read_queries_and_operators_in_python() -> None:
    app = market()
    us.query(app, "SELECT t.symbol, t.at AS moment FROM trades AS t JOIN quotes AS q ON t.symbol = q.symbol WITHIN 2 s",
             name="pairs")  # fmt: skip
    counts = us.query(app, "SELECT symbol, count(*) FROM pairs WITHIN 5 s GROUP BY symbol", name="counts")
    work = plan("SELECT symbol, count(*) FROM pairs WITHIN 5 s GROUP BY symbol", app=app).work
    assert isinstance(work, Aggregation)
    assert work.time == Time("moment", 2000)
    assert counts.inputs == ("pairs",)
    with pytest.raises(QueryMistake, match="'price' is not a column of 'pairs'"):
        plan("SELECT price FROM pairs", app=app)
    app.operator("trades", name="python")(one)
    plan("SELECT anything FROM python", app=app)
    with pytest.raises(QueryMistake, match="the event time of 'python' is not known"):
        plan("SELECT anything, count(*) FROM python WITHIN 2 s GROUP BY anything", app=app)
    plan("SELECT anything, count(*) FROM python WITHIN 2 s TIME at GROUP BY anything", app=app)


def test_a_join_of_a_stream_with_itself_reads_it_once() -> None:
    made = plan(QUERIES[17])
    assert isinstance(made.work, Joining)
    assert (made.inputs, made.work.left.input, made.work.right.input) == (("trades",), 0, 0)


def test_what_one_event_decides_is_computed_before_and_what_several_decide_between() -> None:
    work = sequence(
        "SELECT b.id FROM PATTERN a=trades(price > 3) -> b=trades(quantity = 2 AND symbol = a.symbol "
        "AND upper(note) = upper(a.note) AND price > a.price * 1.1) WITHIN 5 s"
    )
    assert [show(step.own) if step.own else None for step in work.steps] == ["price > 3", "quantity = 2"]
    assert work.steps[1].across is not None
    assert show(work.steps[1].across) == "b.v0 = a.v0 AND b.v1 = a.v1 AND b.v2 > a.v3"
    assert [show(one.value) for one in work.carried[0]] == ["symbol", "upper(note)", "price", "price * 1.1", "id"]


@pytest.mark.parametrize(
    ("steps", "keys"),
    [
        ("a=trades -> b=trades(symbol = a.symbol)", (("symbol",),)),
        ("a=trades -> b=trades(a.symbol = symbol AND id = a.id)", (("symbol",), ("id",))),
        ("a=trades -> b=quotes(symbol = a.symbol)", (("symbol", "symbol"),)),
        ("a=trades -> b=quotes(symbol = a.note)", (("note", "symbol"),)),
        ("a=trades -> b=trades(symbol = a.symbol) -> c=trades(symbol = b.symbol)", (("symbol",),)),
        ("a=trades -> b=trades(symbol = a.symbol) -> c=trades(price > b.price)", ()),
        ("a=trades -> b=trades(symbol = a.note)", ()),
        ("a=trades -> b=trades(symbol = a.symbol OR id = a.id)", ()),
        ("a=trades -> b=trades(symbol > a.symbol)", ()),
    ],
)
def test_the_key_of_a_sequence_is_what_is_equal_in_all_its_steps(steps: str, keys: tuple[tuple[str, ...], ...]) -> None:
    assert sequence(f"SELECT a.id FROM PATTERN {steps} WITHIN 5 s").keys == keys


def test_a_key_of_two_names_groups_events_but_does_not_divide_them() -> None:
    text = "SELECT a.id FROM PATTERN a=trades -> b=quotes(symbol = a.note) WITHIN 5 s"
    assert (plan(text).key, plan(text).slices) == ((), 1)
    with pytest.raises(QueryMistake, match="different names in the inputs"):
        plan(text, slices=2)


def test_a_text_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidInput, match="is given int"):
        us.query(market(), 3, name="q")  # type: ignore[arg-type]


KNOWN = {("a", "n"): "whole number", ("a", "d"): "double", ("a", "t"): "text", ("a", "m"): "decimal"}


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("a.n > 2.5", None),
        ("a.m > 2", None),
        ("a.n + a.d * 2 > -a.n", None),
        ("a.t IN ('x', NULL) AND NOT a.n BETWEEN 1 AND 2 OR a.t IS NULL", None),
        ("a.t > 2", "a text meets a whole number"),
        ("a.m > 2.5", "a decimal meets a double"),
        ("a.m + a.d > 2", "a double meets a decimal"),
        ("a.t + 1 > 2", "a text is used here"),
        ("NOT a.n", "a whole number is used here"),
        ("-a.t = 'x'", "a text is used here"),
    ],
)
def test_between_events_only_values_of_one_kind_meet(condition: str, said: str | None) -> None:
    text = f"SELECT a FROM t WHERE {condition}"
    where = parse(text).where
    assert where is not None
    if said is None:
        assert kind_of(where, KNOWN, Text(text)) == "truth value"
    else:
        with pytest.raises(QueryMistake, match=said):
            kind_of(where, KNOWN, Text(text))


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("a.none = 1 OR TRUE", True),
        ("a.none = 1 AND FALSE", False),
        ("NOT a.none", None),
        ("a.none IS NULL AND a.one IS NOT NULL", True),
        ("a.one IN (2, a.none)", None),
        ("a.one NOT IN (1, a.none)", False),
        ("a.one NOT BETWEEN a.none AND 0", True),
        ("a.nan > 1e300 AND a.nan = a.nan AND NOT a.nan < a.nan", True),
        ("a.one - 2 * a.one = -1", True),
        ("-a.none = 1", None),
    ],
)
def test_null_and_nan_are_compared_as_spark_does(condition: str, value: bool | None) -> None:
    where = parse(f"SELECT a FROM t WHERE {condition}").where
    assert where is not None
    known = {("a", "none"): None, ("a", "one"): 1, ("a", "nan"): float("nan")}
    assert evaluate(where, known) is value
