"""What every connector promises without its server: examples that work, errors in three parts, secrets unseen."""

from __future__ import annotations

import doctest
import importlib
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from tests.builders import one

import understudy as us
from understudy.errors import InvalidInput, Unavailable
from understudy.extras import need
from understudy.model.fingerprint import of_application
from understudy.sinks.sequence import NOTHING, is_there

MODULES = [
    "understudy.clients.kafka",
    "understudy.extras",
    "understudy.sinks.delta",
    "understudy.sinks.fitting",
    "understudy.sinks.iceberg",
    "understudy.sinks.kafka",
    "understudy.sinks.postgres",
    "understudy.sinks.postgres_table",
    "understudy.sinks.sequence",
    "understudy.sources.kafka",
    "understudy.sources.offsets",
]
SECRET = "hunter2"


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_work(name: str) -> None:
    module = importlib.import_module(name)
    names = {"us": us, **vars(module)}
    assert doctest.testmod(module, extraglobs=names, optionflags=doctest.ELLIPSIS).failed == 0


def sinks() -> list[Any]:
    return [
        us.sinks.Postgres(f"postgresql://me:{SECRET}@db/x", "counts"),
        us.sinks.Kafka("broker:9092", "counts", options={"sasl.password": SECRET}),
        us.sinks.Iceberg("shop.counts", properties={"uri": f"postgresql://me:{SECRET}@db/x"}),
        us.sinks.Delta("s3://bucket/counts", storage_options={"secret_access_key": SECRET}),
    ]


def sources() -> list[Any]:
    registry = f"http://me:{SECRET}@registry"
    return [
        us.sources.Kafka("b:9092", "orders", "n long", "avro", avro=registry, options={"sasl.password": SECRET}),
    ]


def application(sources: Sequence[Any], sinks: Sequence[Any]) -> us.Topology:
    app = us.Topology("app")
    for number, source in enumerate(sources or [us.sources.Generator(lambda *_: None, "word string")]):
        app.source(f"rows-{number}", source)
    app.operator("rows-0", name="counts")(one)
    for number, sink in enumerate(sinks):
        app.sink(f"out-{number}", "counts", sink)
    return app


def test_secrets_appear_nowhere() -> None:
    fingerprint = json.dumps(of_application(application(sources(), sinks()), {}))
    for end in [*sources(), *sinks()]:
        assert SECRET not in repr(end)
        with pytest.raises(InvalidInput) as caught:
            us.Topology("app").sink("out", "rows", type(end))
        assert SECRET not in str(caught.value)
    assert SECRET not in fingerprint
    assert "counts" in fingerprint, "what decides about the content counts"


def test_a_missing_package_is_named_with_its_extra() -> None:
    with pytest.raises(Unavailable) as caught:
        need(["json", "no_such_package"], extra="kafka", user="us.sinks.Kafka")
    assert caught.value.fix == "pip install 'understudy[kafka]'"
    assert "no_such_package" in caught.value.why


@pytest.mark.parametrize(
    ("epoch", "last", "missing"),
    [(0, NOTHING, ""), (3, 5, ""), (6, 5, ""), (7, 5, "lacks epoch 6"), (9, NOTHING, "lacks epochs 0 to 8")],
)
def test_a_target_without_the_epochs_before_is_refused(epoch: int, last: int, missing: str) -> None:
    if missing:
        with pytest.raises(InvalidInput, match=missing):
            is_there("table t", epoch, last)
    else:
        assert is_there("table t", epoch, last) == (epoch <= last)


def test_no_client_is_imported_before_it_is_used() -> None:
    """An application that names no connector pays for none, and runs where they are not installed."""
    clients = {"confluent_kafka", "deltalake", "fastavro", "psycopg", "pyiceberg", "sqlalchemy"}
    code = f"import sys, understudy; print(sorted({clients!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
