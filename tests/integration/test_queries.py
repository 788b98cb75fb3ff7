"""The documented queries on Spark: epoch by epoch what DataFrame code written by hand gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.epochs import EpochRun
from tests.integration.handwritten import SEQUENCES, WRITTEN
from tests.oracles import sequences
from tests.oracles.windows import late, watermarks
from tests.queries import START, documented, market, quotes, reading, trades

import understudy as us
from understudy.errors import InvalidInput
from understudy.model.entries import Operator
from understudy.model.schema import parse
from understudy.stream import check

pytestmark = pytest.mark.spark

EPOCHS, ROWS = 5, 40
QUERIES = documented()
STREAMS = {"trades": trades(EPOCHS, ROWS, seed=6), "quotes": quotes(EPOCHS, ROWS // 2, seed=7)}
STATELESS = range(1, 6)


def operator(number: int) -> Operator:
    return us.query(market(), QUERIES[number], name=f"q{number}")


def tables(inputs: Sequence[str]) -> list[list[pa.Table]]:
    return [STREAMS[name] for name in inputs]


def sorted_rows(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Rows as text: in any order, but with the columns in theirs."""
    return sorted(repr(list(row.items())) for row in rows)


def test_the_page_documents_twenty_queries() -> None:
    assert list(QUERIES) == list(range(1, 21)) == [*WRITTEN, *SEQUENCES]


@pytest.mark.parametrize("number", STATELESS)
def test_a_selection_is_what_is_written_by_hand(spark: SparkSession, number: int) -> None:
    """Rows are looked at one by one, so all epochs may be read at once."""
    rows = spark.createDataFrame(pa.concat_tables(STREAMS["trades"]))
    found, expected = (build(rows).toArrow() for build in (operator(number), WRITTEN[number].function))
    assert found.schema.equals(expected.schema)
    assert found.equals(expected)
    assert found.num_rows > 0


@pytest.mark.parametrize("number", [number for number in WRITTEN if number not in STATELESS])
def test_a_query_with_state_emits_in_every_epoch_what_is_written_by_hand(
    spark: SparkSession, tmp_path: Path, number: int
) -> None:
    query, written = operator(number), WRITTEN[number]
    assert (query.inputs, query.output_mode) == (written.inputs, written.mode)
    runs = [
        EpochRun(spark, tmp_path, build, tables(written.inputs), written.mode) for build in (query, written.function)
    ]
    found, expected = ([sorted_rows(rows) for rows in run.rows()] for run in runs)
    assert found == expected
    assert any(found), "the rows give results"


Step = tuple[int, Callable[..., bool]]
ORACLES: dict[int, tuple[list[Step], float, float, Callable[..., dict[str, Any] | None]]] = {
    18: (
        [(0, lambda a: a["price"] > 100), (0, lambda a, b: b["symbol"] == a["symbol"] and b["price"] > a["price"])],
        3.0,
        0.0,
        lambda a, b: {"symbol": a["symbol"], "first": a["price"], "second": b["price"], "at": b["at"]},
    ),
    19: (
        [
            (0, lambda a: a is not None),
            (0, lambda a, b: b["symbol"] == a["symbol"] and b["price"] < a["price"] * 0.95),
            (
                0,
                lambda a, b, c: (
                    c["symbol"] == a["symbol"] and (c["price"] >= a["price"] or c["price"] - b["price"] > 8)
                ),
            ),
        ],
        2.0,
        0.5,
        lambda a, b, c: (
            {"top": a["id"], "bottom": b["id"], "recovered": c["id"], "rise": c["price"] - b["price"]}
            if a["quantity"] != c["quantity"]
            else None
        ),
    ),
    20: (
        [(0, lambda q: q["bid"] > 100), (1, lambda q, t: t["symbol"] == q["symbol"] and t["price"] < q["bid"])],
        1.0,
        0.0,
        lambda q, t: {
            "symbol": q["symbol"],
            "quoted": q["at"],
            "id": t["id"],
            "note": t["note"] and t["note"].upper(),
        },
    ),
}


@pytest.mark.parametrize("number", SEQUENCES)
def test_a_sequence_is_what_is_written_by_hand_and_what_its_definition_says(
    spark: SparkSession, tmp_path: Path, number: int
) -> None:
    query = operator(number)
    run = EpochRun(spark, tmp_path, query, tables(query.inputs))
    steps, within, delay, take = ORACLES[number]
    epochs = [[table.to_pylist() for table in STREAMS[name]] for name in query.inputs]
    matched = sequences.emitted(epochs, steps, timedelta(seconds=within), timedelta(seconds=delay))
    expected = [[row for match in found if (row := take(*match)) is not None] for found in matched]
    found = run.rows()
    assert [sorted_rows(rows) for rows in found] == [sorted_rows(rows) for rows in expected]
    assert sum(map(len, found)) > 5
    assert sorted_rows([row for rows in found for row in rows]) == _by_hand(spark, number, query, delay)


def _by_hand(spark: SparkSession, number: int, query: Operator, delay: float) -> list[str]:
    """The matches among all rows that were not late, as far as the watermark has passed them."""
    streams = {name: [table.to_pylist() for table in STREAMS[name]] for name in query.inputs}
    marks = watermarks(*((epochs, timedelta(seconds=delay)) for epochs in streams.values()))
    frames = {}
    for name, parts in STREAMS.items():
        kept = [
            table.filter([row["at"] > late(marks, epoch) for row in table.to_pylist()])
            for epoch, table in enumerate(parts)
        ]
        frames[name] = spark.createDataFrame(pa.concat_tables(kept))
    rows = SEQUENCES[number](frames["trades"], frames["quotes"]).toArrow().to_pylist()
    final = [row for row in rows if row.pop("last") <= marks[-1]]
    return sorted_rows(final)


PLAIN = parse(
    "id long, at timestamp, day date, money decimal(10,2), half float, fits boolean, raw binary, naive timestamp_ntz, "
    "few short, missing string"
)


def plain(number: int) -> dict[str, Any]:
    """A row whose values of every kind grow with its number, which is also its second."""
    return {
        "id": number,
        "at": START + timedelta(seconds=number),
        "day": START.date() + timedelta(days=number),
        "money": Decimal(number) / 4,
        "half": number / 2,
        "fits": number % 2 == 0,
        "raw": bytes([0, 255, number]),
        "naive": START.replace(tzinfo=None) + timedelta(microseconds=number),
        "few": number,
        "missing": None,
    }


def test_values_of_every_kind_pass_through_a_sequence_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    """The first event waits in the state, then its match does, then it is emitted."""
    names = [name for name in PLAIN.names if name != "at"]
    text = f"""
        SELECT {", ".join(f"a.{name}" for name in names)}, b.id AS last
        FROM PATTERN a=rows(id = 1)
                  -> b=rows(day > a.day AND money > a.money AND half > a.half AND fits = a.fits AND raw > a.raw
                            AND naive > a.naive AND few - a.few = 2 AND missing IS NULL AND a.missing IS NULL)
        WITHIN 5 s TIME at
    """
    query = us.query(reading({"rows": PLAIN}), text, name="q")
    epochs = [pa.Table.from_pylist([plain(number)], schema=PLAIN) for number in range(1, 6)]
    found = EpochRun(spark, tmp_path, query, [epochs]).rows()
    expected = {name: plain(1)[name] for name in names} | {"last": 3}
    assert found == [[], [], [], [expected], []]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("SELECT id + (name = 'A') AS s FROM names", "id + (name = 'A')"),
        ("SELECT id FROM names WHERE id", "id"),
        ("SELECT name, sum(id > 3) AS s FROM names GROUP BY name", "sum(id > 3)"),
        ("SELECT name, count(*) FROM names WITHIN 2 s TIME id GROUP BY name", "2 s"),
        ("SELECT a.id FROM PATTERN a=names(id > 3 AND name) -> b=names WITHIN 2 s", "name"),
        ("SELECT a.id FROM PATTERN a=names -> b=names(name > a.id) WITHIN 2 s", "name > a.id"),
    ],
)
def test_what_only_spark_knows_is_said_at_its_place_before_data_flows(
    spark: SparkSession, text: str, wrong: str
) -> None:
    app = market(slices=2)
    us.query(app, "SELECT id, at, upper(symbol) AS name FROM trades WHERE symbol LIKE 'A%'", name="names")
    us.query(app, text, name="wrong")
    with pytest.raises(InvalidInput) as caught:
        check.analyse(spark, app)
    shown, carets = caught.value.what.splitlines()[-2:]
    assert shown == f"    {text}"
    assert shown[carets.index("^") : carets.rindex("^") + 1] == wrong


@pytest.mark.parametrize("number", [6, 14, 18])
def test_the_key_of_a_query_in_slices_passes_the_check_of_groups(spark: SparkSession, number: int) -> None:
    app = market(slices=2)
    made = us.query(app, QUERIES[number], name="q")
    assert (made.key, made.slices) == (("symbol",), 2)
    assert check.analyse(spark, app)["q"].stateful
