"""A run goes on only with the application it began with; every difference is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.builders import one, stateful

import understudy as us
from understudy.control.application.fusion import lay_out
from understudy.model.fingerprint import differences, of_application, of_queries, refuse
from understudy.model.messages import Analysis
from understudy.model.topology import Topology
from understudy.sources import shapes

VERSIONS = {"Spark": "4.3.0", "understudy": "0.1.0"}
COLUMNS = '{"type": "struct", "fields": [{"name": "word", "type": "string"}]}'


def make(epoch: int, slice_index: int, rows: int, rng: Any) -> Any:
    return None


def application(
    *,
    name: str = "app",
    epoch: str = "1 s",
    slices: int = 1,
    rate: Any = 100,
    seed: int = 1,
    schema: str = "word string, at timestamp",
    sink: str = "out",
    path: str = "out",
    **options: Any,
) -> Topology:
    app = Topology(name, epoch)
    app.source("rows", us.sources.Generator(make, schema, rate=rate, seed=seed), slices=slices)
    operator: dict[str, Any] = {"name": "counts", "key": "word", "slices": 2, "output_mode": "update"} | options
    app.operator("rows", **operator)(one)
    app.sink(sink, operator["name"], us.sinks.Parquet(path))
    return app


def compared(now: Topology, versions: dict[str, str] | None = None) -> list[str]:
    before = of_application(application(), VERSIONS)
    return [str(found) for found in differences(before, of_application(now, versions or VERSIONS))]


def test_the_same_application_has_no_difference() -> None:
    assert compared(application()) == []


CHANGES: dict[str, tuple[Callable[[], Topology], list[str]]] = {
    "slices": (lambda: application(slices=2), ["source 'rows' has slices=2, and had 1"]),
    "epoch": (lambda: application(epoch="500 ms"), ["topology 'app' has epoch=0.5, and had 1.0"]),
    "rate": (lambda: application(rate=50), ["source 'rows' has rate=50, and had 100"]),
    "seed": (lambda: application(seed=7), ["source 'rows' has seed=7, and had 1"]),
    "shape": (lambda: application(rate=shapes.Spikes(5)), ["source 'rows' has rate=Spikes(rate=5, height=5.0,"]),
    "schema": (lambda: application(schema="word string"), ["source 'rows' has schema=word string, and had word"]),
    "key": (lambda: application(key="at"), ["operator 'counts' has key=at, and had word"]),
    "no key": (lambda: application(key=None), ["key=none, and had word"]),
    "mode": (lambda: application(output_mode="append"), ["output_mode=append, and had update"]),
    "sink": (lambda: application(sink="result"), ["sink 'result' is new", "sink 'out' is gone"]),
    "path": (lambda: application(path="other"), ["sink 'out' has path=other, and had out"]),
}


@pytest.mark.parametrize(("make_now", "expected"), CHANGES.values(), ids=CHANGES.keys())
def test_a_change_is_named(make_now: Callable[[], Topology], expected: list[str]) -> None:
    found = compared(make_now())
    assert len(found) == len(expected)
    for text, part in zip(found, expected, strict=True):
        assert part in text


def test_fewer_slices_of_an_operator_are_named() -> None:
    app = Topology("app")
    app.source("rows", us.sources.Generator(make, "word string, at timestamp", rate=100, seed=1))
    app.operator("rows", name="counts", key="word", slices=3, output_mode="update")(one)
    app.sink("out", "counts", us.sinks.Parquet("out"))
    assert compared(app) == ["operator 'counts' has slices=3, and had 2"]


def test_protection_may_change() -> None:
    assert compared(application(recovery=us.Recovery(scheme="active_standby", ship_every=1))) == []


def test_a_version_is_named_with_what_to_install() -> None:
    found = differences(
        of_application(application(), VERSIONS), of_application(application(), VERSIONS | {"Spark": "4.4.0"})
    )
    error = refuse(found)
    assert "Spark" in error.what
    assert "4.4.0" in error.what
    assert "install Spark 4.3.0" in error.fix


def test_options_may_be_secret() -> None:
    class Anything:
        streamReader = simpleStreamReader = None  # noqa: N815 - Spark's names

    def reading(password: str) -> Topology:
        app = Topology("app")
        source = us.sources.Reader(Anything, {"password": password, "topic": "t"}, "word string")
        app.source("rows", source)
        app.sink("out", "rows", us.sinks.Parquet("out"))
        return app

    before, now = (of_application(reading(word), VERSIONS) for word in ("hunter2", "correct horse"))
    found = differences(before, now)
    assert [str(one) for one in found] == ["source 'rows' has another options"]
    assert "hunter2" not in f"{before}{found}"


def test_what_spark_found_is_compared_too() -> None:
    app = application()
    layout = lay_out(app, stateful("counts", of=app))
    before = of_queries(layout, {"counts": Analysis(stateful=True, output=COLUMNS)})
    assert differences(before, before) == []
    wider = COLUMNS.replace("string", "long")
    now = of_queries(layout, {"counts": Analysis(stateful=True, output=wider)})
    assert "result of 'counts' has columns=word long, and had word string" in map(str, differences(before, now))
    stateless = of_queries(layout, {"counts": Analysis(stateful=False, output=COLUMNS)})
    assert [str(one) for one in differences(before, stateless)] == [
        "result of 'counts' has stateful=False, and had True"
    ]


def test_operators_that_no_longer_share_a_query_are_named() -> None:
    def chain(fuse: bool) -> Topology:
        app = Topology("app")
        app.source("rows", us.sources.Generator(make, "word string"))
        app.operator("rows", name="a")(one)
        app.operator("a", name="b", fuse=fuse)(one)
        app.sink("out", "b", us.sinks.Parquet("out"))
        return app

    together, apart = (of_queries(lay_out(app, stateful(of=app)), {}) for app in (chain(fuse=True), chain(fuse=False)))
    assert sorted(map(str, differences(together, apart))) == [
        "query 'a' is new",
        "query 'b' has operators=b, and had a, b",
    ]
