"""Formats, compression and the errors that name file and line."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy.errors import InvalidInput, UnderstudyError
from understudy.sources import EndOfSource, Files, Generator, formats

SCHEMA = "word string, n int, at timestamp"


def read_all(source: Files, slices: int = 1) -> list[dict[str, Any]]:
    reader = source.open(0, slices, 1.0)
    rows: list[dict[str, Any]] = []
    for epoch in range(1000):
        try:
            rows += reader.read(epoch, None, reader.cut(epoch, None)).to_pylist()
        except EndOfSource:
            return rows
    raise AssertionError("the source does not end")


def words(rows: list[dict[str, Any]]) -> list[Any]:
    return [row["word"] for row in rows]


CSV = 'a,1,2013-01-01 00:00:00\n,,2013-01-01T01:00:00+01:00\n"",3,\n'


@pytest.mark.parametrize(
    ("ending", "pack"),
    [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress),
     (".zst", lambda b: pa.compress(b, "zstd", asbytes=True)), (".lz4", lambda b: pa.compress(b, "lz4", asbytes=True))],
)  # fmt: skip
def test_csv_in_every_packing(tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / f"data.csv{ending}"
    if ending in (".zst", ".lz4"):
        with pa.output_stream(str(path), compression="detect") as stream:
            stream.write(CSV.encode())
    else:
        path.write_bytes(pack(CSV.encode()))
    rows = read_all(Files(path, "csv", SCHEMA, rate=10))
    assert words(rows) == ["a", None, ""]
    assert [row["n"] for row in rows] == [1, None, 3]
    assert [row["at"] and row["at"].isoformat() for row in rows] == ["2013-01-01T00:00:00+00:00"] * 2 + [None]


def test_csv_with_a_header_takes_columns_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("at;other;n;word\n2013-01-01 00:00:00;x;5;hello\n")
    source = Files(tmp_path, "csv", SCHEMA, rate=1, options={"header": True, "delimiter": ";"})
    assert words(read_all(source)) == ["hello"]


def test_json_and_text_and_parquet(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"n": 1, "word": "a", "x": 0}\n\n{"at": "2013-01-01T00:00:00Z"}\n')
    assert words(read_all(Files(tmp_path / "a.json", "json", SCHEMA, rate=10))) == ["a", None]
    (tmp_path / "a.txt").write_bytes("eins\r\nzwei\n\ndrei ü".encode())
    rows = read_all(Files(tmp_path / "a.txt", "text", rate=10))
    assert [row["value"] for row in rows] == ["eins", "zwei", "", "drei ü"]
    pq.write_table(
        pa.table({"n": pa.array([1], pa.int64()), "word": ["p"], "at": pa.array([0], pa.timestamp("us"))}),
        tmp_path / "a.parquet",
    )
    assert words(read_all(Files(tmp_path / "a.parquet", "parquet", SCHEMA, rate=10))) == ["p"]


def test_files_come_in_the_order_of_their_names_and_hidden_ones_not_at_all(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "_done", ".c.txt"):
        (tmp_path / name).write_text(name)
    assert [r["value"] for r in read_all(Files(tmp_path, "text", rate=10))] == ["a.txt", "b.txt"]
    assert [r["value"] for r in read_all(Files(tmp_path / "b*", "text", rate=10))] == ["b.txt"]


def test_large_files_are_read_in_pieces(tmp_path: Path) -> None:
    lines = "".join(f"w{i},{i},2013-01-01 00:00:00\n" for i in range(100_000))
    (tmp_path / "a.csv").write_text(lines)
    reader = Files(tmp_path, "csv", SCHEMA, rate=1000).open(0, 1, 1.0)
    assert reader.read(50, None, reader.cut(50, None))["n"].to_pylist() == list(range(50_000, 51_000))
    assert len(reader._buffer) <= 2  # type: ignore[attr-defined]


LINES = 3_000
WRITERS: dict[str, Callable[[Path], Files]] = {}


def written(name: str) -> Callable[[Callable[[Path], Files]], Callable[[Path], Files]]:
    def add(write: Callable[[Path], Files]) -> Callable[[Path], Files]:
        WRITERS[name] = write
        return write

    return add


def _csv_text(header: str = "") -> str:
    return header + "".join(f'w{i},{i},"2013-01-01 00:00:00"\n' for i in range(LINES))


@written("csv")
def _plain(folder: Path) -> Files:
    (folder / "a.csv").write_text(_csv_text())
    return Files(folder, "csv", SCHEMA, rate=10)


@written("csv with a header, packed")
def _packed(folder: Path) -> Files:
    (folder / "a.csv.gz").write_bytes(gzip.compress(_csv_text("\nword,n,at\n").encode()))
    return Files(folder, "csv", SCHEMA, rate=10, options={"header": True})


@written("csv, xz")
def _xz(folder: Path) -> Files:
    (folder / "a.csv.xz").write_bytes(lzma.compress(_csv_text().encode()))
    return Files(folder, "csv", SCHEMA, rate=10)


@written("json by time")
def _json(folder: Path) -> Files:
    at = "2013-01-01 {:02}:{:02}:00"
    rows = (f'{{"word": "w{i}", "n": {i}, "at": "{at.format(i // 600 % 24, i // 10 % 60)}"}}\n' for i in range(LINES))
    (folder / "a.json").write_text("".join(rows))
    return Files(folder, "json", SCHEMA, event_time="at", speed=60)


@written("parquet")
def _parquet(folder: Path) -> Files:
    table = pa.table({"word": [f"w{i}" for i in range(LINES)], "n": pa.array(range(LINES), pa.int32())})
    table = table.append_column("at", pa.nulls(LINES, pa.timestamp("us")))
    pq.write_table(table, folder / "a.parquet", row_group_size=200)
    return Files(folder, "parquet", SCHEMA, rate=10)


@written("several files")
def _several(folder: Path) -> Files:
    for n in range(10):
        (folder / f"{n}.csv").write_text("".join(f"w{i},{i},\n" for i in range(n * 300, n * 300 + 300)))
    return Files(folder, "csv", SCHEMA, rate=10, options={"multiLine": True})


@pytest.mark.parametrize("name", WRITERS)
def test_who_takes_over_begins_to_read_at_a_bookmark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(formats, "BLOCK", 4096)
    source = WRITERS[name](tmp_path)
    first = source.open(0, 1, 1.0)
    wanted = [first.read(epoch, None, first.cut(epoch, None))["n"].to_pylist() for epoch in range(290)][280:]
    at = first.bookmark(289)
    rows = 0
    read = formats.read

    def count(*arguments: Any) -> Any:
        nonlocal rows
        for piece in read(*arguments):
            rows += piece.rows.num_rows
            yield piece

    monkeypatch.setattr(formats, "read", count)
    second = source.open(0, 1, 1.0)
    second.seek(json.loads(json.dumps(at)))
    assert second.read(289, None, second.cut(289, None))["n"].to_pylist() == wanted[-1] == list(range(2890, 2900))
    assert rows < 700, f"{rows} of {LINES} rows were read again"
    assert second.read(280, None, second.cut(280, None))["n"].to_pylist() == wanted[0]


def test_files_that_changed_are_named(tmp_path: Path) -> None:
    source = WRITERS["csv"](tmp_path)
    reader = source.open(0, 1, 1.0)
    at = reader.bookmark(0)
    with (tmp_path / "a.csv").open("a") as file:
        file.write("more,1,\n")
    with pytest.raises(InvalidInput, match="have changed"):
        source.open(0, 1, 1.0).seek(at)
    (tmp_path / "a.csv").rename(tmp_path / "b.csv")
    with pytest.raises(InvalidInput, match="have changed"):
        source.open(0, 1, 1.0).seek(at)


def test_bookmarks_behind_the_last_row(tmp_path: Path) -> None:
    source = WRITERS["csv"](tmp_path)
    reader = source.open(0, 1, 1.0)
    with pytest.raises(EndOfSource):
        reader.cut(400, None)
    second = source.open(0, 1, 1.0)
    second.seek(reader.bookmark(400))
    with pytest.raises(EndOfSource):
        second.cut(400, None)
    (tmp_path / "b.csv").write_text("more,1,\n")
    with pytest.raises(InvalidInput, match="have changed"):
        source.open(0, 1, 1.0).seek(reader.bookmark(400))


def test_errors_name_the_line_of_the_file_also_in_a_later_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "BLOCK", 300)
    for header in (False, True):
        (tmp_path / "a.csv").write_text(_csv_text("word,n,at\n" if header else "") + "w,x,\n")
        with pytest.raises(InvalidInput, match=f"line {LINES + 1 + header}"):
            read_all(Files(tmp_path, "csv", SCHEMA, rate=100, options={"header": header}))


@pytest.mark.parametrize(
    ("name", "kind", "content", "expected"),
    [
        ("a.csv", "csv", "a,1,\nb,2\n", "line 2"),
        ("a.csv", "csv", "a,1,\nb,x,\n", "line 2"),
        ("a.csv", "csv", "a,1,\nb,2,\nc,3,yesterday\n", "line 3"),
        ("a.json", "json", '{"n": 1}\n{"n": "x"}\n', "line 2"),
        ("a.json", "json", '{"n": 1}\n{"n": \n', "line 2"),
        ("a.json", "json", '{"n": 1}\n{"at": "soon"}\n', "line 2"),
        ("a.txt", "text", b"fine\n\xff\n", "line 2"),
        ("a.csv.gz", "csv", b"not gzip at all", "a.csv.gz"),
        ("a.csv.xz", "csv", b"not xz at all", "a.csv.xz"),
        ("a.parquet", "parquet", b"PAR1", "a.parquet"),
    ],
)
def test_bad_content_is_named(tmp_path: Path, name: str, kind: str, content: str | bytes, expected: str) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    source = Files(path, kind, None if kind == "text" else SCHEMA, rate=10)
    with pytest.raises(UnderstudyError) as caught:
        read_all(source)
    assert str(path) in caught.value.what
    assert expected in caught.value.what


def test_a_header_that_was_not_announced_is_suspected(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("word,n,at\na,1,\n")
    with pytest.raises(InvalidInput) as caught:
        read_all(Files(tmp_path, "csv", SCHEMA, rate=1))
    assert "header" in caught.value.fix


def test_a_column_the_file_lacks_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("word,at\na,\n")
    with pytest.raises(InvalidInput, match="'n'"):
        read_all(Files(tmp_path, "csv", SCHEMA, rate=1, options={"header": True}))
    pq.write_table(pa.table({"word": ["x"]}), tmp_path / "a.parquet")
    with pytest.raises(InvalidInput, match="column 'n' is missing"):
        read_all(Files(tmp_path / "a.parquet", "parquet", SCHEMA, rate=1))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"path": "none.csv", "format": "csv", "schema": SCHEMA, "rate": 1}, "nothing to read"),
        ({"path": "a.csv", "format": "orc", "schema": SCHEMA, "rate": 1}, "format 'orc'"),
        ({"path": "a.csv", "format": "csv", "rate": 1}, "need a schema"),
        ({"path": "a.csv", "format": "csv", "schema": SCHEMA}, "by rate or by event time"),
        ({"path": "a.csv", "format": "csv", "schema": SCHEMA, "rate": 1, "event_time": "at"}, "by rate or by event"),
        ({"path": "a.csv", "format": "csv", "schema": SCHEMA, "event_time": "when"}, "no column 'when'"),
        ({"path": "a.csv", "format": "csv", "schema": SCHEMA, "event_time": "word"}, "no event time"),
        ({"path": "a.csv", "format": "csv", "schema": SCHEMA, "rate": -1}, "rate=-1"),
        ({"path": "a.csv", "format": "csv", "schema": SCHEMA, "rate": 1, "options": {"head": 1}}, "option 'head'"),
        ({"path": "a.csv", "format": "text", "schema": SCHEMA, "rate": 1}, "one column of type string"),
    ],
)  # fmt: skip
def test_mistakes_are_found_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("")
    with pytest.raises(InvalidInput) as caught:
        Files(**arguments)
    assert expected in str(caught.value)


def test_an_empty_file_ends_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("")
    assert read_all(Files(tmp_path, "csv", SCHEMA, rate=1)) == []


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (None, "returned NoneType"),
        (pa.table({"m": [1]}), "returned the columns m"),
        (pa.table({"n": [1], "m": [1]}), "returned the columns n, m"),
        (pa.table({"n": ["x"]}), "column 'n' cannot become int64"),
    ],
)
def test_what_a_generator_returns_is_checked(made: Any, expected: str) -> None:
    def rides(epoch: int, slice_index: int, rows: int, rng: np.random.Generator) -> Any:
        return made

    reader = Generator(rides, "n long").open(0, 1, 1.0)
    with pytest.raises(InvalidInput) as caught:
        reader.read(0, None, None)
    assert "generator 'rides'" in caught.value.what
    assert expected in caught.value.what


@pytest.mark.parametrize("arguments", [{"rate": 0}, {"rate": float("inf")}, {"seed": -1}, {"make": "rides"}])
def test_a_generator_is_checked_at_once(arguments: dict[str, Any]) -> None:
    defaults: dict[str, Any] = {"make": lambda *_: None, "schema": "n long"}
    with pytest.raises(InvalidInput):
        Generator(**(defaults | arguments))
