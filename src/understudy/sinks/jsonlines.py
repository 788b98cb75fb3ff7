"""Epochs as files of JSON lines: one object per row, the same bytes whoever writes them."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from understudy.sinks.directory import DirectoryWriter, Owner, check_path, under
from understudy.sinks.interface import Sink, SinkWriter


@dataclass(frozen=True)
class JsonLines(Sink):
    """Writes `epoch-0000000012.jsonl` and so on into the directory `path`, also for an epoch without rows.

    Times are ISO 8601, with a Z where the type has a zone. JSON has no words for some values: decimals become text,
    so that no digit is lost, bytes base64, durations microseconds, NaN and infinities their names.
    """

    path: str | Path

    def __post_init__(self) -> None:
        check_path(self.path)

    def directory(self) -> str | Path:
        return self.path

    def open(self, name: str, home: Path, run: str) -> SinkWriter:
        return DirectoryWriter(under(home, self.path), Owner(run, name), "jsonl", encode)


def encode(rows: pa.Table) -> bytes:
    return "".join(f"{line}\n" for line in lines(rows)).encode()


def lines(rows: pa.Table) -> list[str]:
    names = rows.column_names
    columns = [values_of(column) for column in rows.columns]
    dump = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
    if not names:
        return ["{}"] * rows.num_rows
    return [dump(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


def values_of(column: pa.ChunkedArray) -> list[Any]:
    values: list[Any] = column.to_pylist()
    kind = column.type
    if pt.is_integer(kind) or pt.is_string(kind) or pt.is_boolean(kind):
        return values
    return [plain(value, kind) for value in values]


def plain(value: Any, kind: pa.DataType) -> Any:
    """A value of this Arrow type in the words JSON has."""
    if value is None:
        return None
    if pt.is_map(kind):
        # Arrow gives pairs; two keys with the same text keep the last value, as everywhere in JSON.
        return {_key(plain(k, kind.key_type)): plain(v, kind.item_type) for k, v in value}
    if pt.is_struct(kind):
        return {field.name: plain(value[field.name], field.type) for field in kind}
    if pt.is_nested(kind):
        return [plain(item, kind.value_type) for item in value]
    for python_type, write in _WRITERS:
        if isinstance(value, python_type):
            return write(value)
    return value


def _key(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _time(value: dt.datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")


def _microseconds(value: dt.timedelta) -> int:
    return value // dt.timedelta(microseconds=1)


_WRITERS: list[tuple[type, Callable[[Any], Any]]] = [
    (float, _float),
    (dt.datetime, _time),
    (dt.date, dt.date.isoformat),
    (dt.time, dt.time.isoformat),
    (dt.timedelta, _microseconds),
    (decimal.Decimal, str),
    (bytes, lambda value: base64.b64encode(value).decode()),
]
