"""Epochs as files of JSON lines: one object per row, the same bytes from every writer."""

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
    """A sink that writes one file of JSON lines per epoch, one object a row.

    Parameters
    ----------
    path : str or Path
        A directory for this sink alone. A relative path lies under ``HOME/out``. Epoch 12 becomes
        ``epoch-0000000012.jsonl``; an epoch without rows is written too.

    Raises
    ------
    InvalidInput
        If the path is empty or is the address of another store, such as ``s3a://…``.

    Notes
    -----
    Times are ISO 8601, with a Z where the type has a zone. Values that JSON cannot express become text or numbers:
    decimals text, so that no digit is lost, bytes base64, durations microseconds, NaN and infinities their names.

    Examples
    --------
    >>> from pathlib import Path
    >>> import pyarrow as pa
    >>> import understudy as us
    >>> writer = us.sinks.JsonLines("counts").open("counts", Path.cwd(), run="1")
    >>> writer.write(0, pa.table({"word": ["a", "b"], "n": [3.5, float("nan")]})).name
    'ONCE'
    >>> print(Path("out/counts/epoch-0000000000.jsonl").read_text(), end="")
    {"word":"a","n":3.5}
    {"word":"b","n":"NaN"}
    """

    path: str | Path

    def __post_init__(self) -> None:
        check_path(self.path)

    def directory(self) -> str | Path:
        """Returns `path`; see `Sink.directory`."""
        return self.path

    @property
    def takes_tentative(self) -> bool:
        """True: tentative epochs are files in the directory ``_tentative``; see `understudy.sinks.epochs`."""
        return True

    def open(self, name: str, home: Path, run: str) -> SinkWriter:
        """Opens the directory for a run; see `Sink.open`."""
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
