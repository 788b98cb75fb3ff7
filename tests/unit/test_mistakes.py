"""A mistake in the user's file is answered with file, line, message and fix before anything is started."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from understudy import settings
from understudy.cli.main import app

HEAD = """import understudy as us

def make(epoch, slice_index, rows, rng):
    return None

app = us.Topology("app")
rows = app.source("rows", us.sources.Generator(make, "user long, at timestamp"))
"""
SINK = 'app.sink("out", rows, us.sinks.Parquet("out"))\n'
OPERATOR = """
@app.operator(rows, {options})
def counts(frame):
    return frame

app.sink("out", counts, us.sinks.Parquet("out"))
"""
"""An operator whose decorator is on line 9 and whose name is on line 10."""


@pytest.fixture(autouse=True)
def tidy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in [name for name in sys.modules if name.startswith(("application_", "wrong_"))]:
        del sys.modules[name]
    settings.give({})


def refused(folder: Path, text: str) -> str:
    path = folder / "wrong_app.py"
    path.write_text(text)
    result = CliRunner().invoke(app, ["topology", str(path)])
    assert result.exit_code == 2, (result.output, result.exception)
    assert isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    assert "why:" in result.output
    assert "fix:" in result.output
    return result.output


RAISES = {
    "a module that is not there": ("import no_such_module\n", "wrong_app.py:1", ["no_such_module", "install"]),
    "a name that is not in a module": ("from math import taw\n", "wrong_app.py:1", ["taw"]),
    "a syntax error": (f"{HEAD}def broken(:\n", "wrong_app.py:8", ["SyntaxError"]),
    "a wrong indent": (f"{HEAD}x = 1\n   y = 2\n", "wrong_app.py:9", ["IndentationError"]),
    "a name nobody defined": (f"{HEAD}{SINK}print(rwos)\n", "wrong_app.py:9", ["rwos"]),
    "a division by zero": (f"{HEAD}x = 1 / 0\n", "wrong_app.py:8", ["ZeroDivisionError"]),
    "an exit": ("import sys\nsys.exit(3)\n", "wrong_app.py:2", ["exit"]),
    "a wrong keyword": (HEAD + OPERATOR.format(options="keys='user'"), "wrong_app.py:9", ["keys", "output_mode"]),
    "a wrong keyword of a recovery": (f"{HEAD}us.Recovery(shceme='none')\n", "wrong_app.py:8", ["shceme", "guarantee"]),
    "a wrong keyword of a source": (f"{HEAD}us.sources.Generator(make, 'a int', sede=1)\n", ":8", ["sede", "seed"]),
    "a source that does not exist": (
        f"{HEAD}us.sources.Pulsar('topic')\n",
        "wrong_app.py:8",
        ["Pulsar", "Files", "Reader"],
    ),
    "a sink that does not exist": (f"{HEAD}us.sinks.Pulsar('topic')\n", "wrong_app.py:8", ["Pulsar", "Parquet"]),
    "a source that cannot be imported": ("from understudy.sources import Pulsar\n", ":1", ["Pulsar", "Generator"]),
    "something else that does not exist": (f"{HEAD}us.Stream\n", "wrong_app.py:8", ["Stream", "Topology"]),
    "a method that does not exist": (f"{HEAD}app.window('1 s')\n", "wrong_app.py:8", ["window", "operator"]),
    "an unknown scheme": (f"{HEAD}us.Recovery(scheme='magic')\n", "wrong_app.py:8", ["magic", "active_standby"]),
    "a recovery that is a scheme": (
        HEAD + OPERATOR.format(options="recovery='active_standby'"),
        "wrong_app.py:9",
        ["us.Recovery(scheme='active_standby')"],
    ),
    "an interval in quotes": (f"{HEAD}us.Recovery(ship_every='5')\n", "wrong_app.py:8", ["ship_every", "whole number"]),
    "an interval that is no number": (f"{HEAD}us.Recovery(refresh_every=1.5)\n", ":8", ["refresh_every"]),
    "an objective in a list": (f"{HEAD}us.Recovery(objective=[2])\n", "wrong_app.py:8", ["[2]", "duration"]),
    "a scheme and an objective": (
        f"{HEAD}us.Recovery(scheme='active_standby', objective='2 s')\n",
        "wrong_app.py:8",
        ["active_standby", "objective"],
    ),
    "a sink that is text": (f"{HEAD}app.sink('out', rows, 'out')\n", "wrong_app.py:8", ["'out'", "us.sinks.Parquet"]),
    "a sink that is a class": (f"{HEAD}app.sink('out', rows, us.sinks.Parquet)\n", "wrong_app.py:8", ["Parquet"]),
    "a source that is text": (f"{HEAD}app.source('more', 'more.csv')\n", "wrong_app.py:8", ["us.sources.Files"]),
    "slices in quotes": (HEAD + OPERATOR.format(options="slices='2'"), "wrong_app.py:9", ["slices"]),
    "a key that is a number": (HEAD + OPERATOR.format(options="key=3"), "wrong_app.py:9", ["key"]),
    "an output mode that does not exist": (HEAD + OPERATOR.format(options="output_mode='all'"), ":9", ["append"]),
    "a generator with too few parameters": (
        f"{HEAD}us.sources.Generator(lambda epoch, rows: None, 'a int')\n",
        "wrong_app.py:8",
        ["epoch, slice, rows, rng"],
    ),
    "a rate with too many parameters": (
        f"{HEAD}us.sources.Generator(make, 'a int', rate=lambda a, b: 1)\n",
        "wrong_app.py:8",
        ["rate", "seconds"],
    ),
    "a call sink with too few parameters": (
        f"{HEAD}us.sinks.Call(lambda rows: None)\n",
        "wrong_app.py:8",
        ["epoch, rows"],
    ),
}


@pytest.mark.parametrize(("text", "place", "said"), RAISES.values(), ids=RAISES.keys())
def test_a_line_that_is_wrong_is_named(text: str, place: str, said: list[str], tmp_path: Path) -> None:
    output = refused(tmp_path, text)
    assert place in output
    for word in said:
        assert word in output


WHOLE = {
    "a misspelt key": (HEAD + OPERATOR.format(options="key='usr', slices=2"), "wrong_app.py:9", ["usr", "user, at"]),
    "a misspelt time": (
        HEAD + OPERATOR.format(options="order='strict', time='att'"),
        "wrong_app.py:9",
        ["att", "user, at"],
    ),
    "an operator nobody reads": (
        HEAD + OPERATOR.format(options="").replace('"out", counts', '"out", rows'),
        "wrong_app.py:9",
        ["counts", "app.sink"],
    ),
    "a source nobody reads": (
        f"{HEAD}{SINK}app.source('more', us.sources.Generator(make, 'a int'))\n",
        "wrong_app.py:9",
        ["more"],
    ),
    "keys of two types": (
        f"{HEAD}more = app.source('more', us.sources.Generator(make, 'user double'))\n"
        "@app.operator(rows, more, key='user', slices=2)\n"
        "def joined(left, right):\n    return left\n"
        "app.sink('out', joined, us.sinks.Parquet('out'))\n",
        "wrong_app.py:9",
        ["int64 in 'rows'", "double in 'more'", "cast"],
    ),
    "a stream that does not exist": (f"{HEAD}app.sink('out', 'rwos', us.sinks.Parquet('o'))\n", ":8", ["rwos"]),
}


@pytest.mark.parametrize(("text", "place", "said"), WHOLE.values(), ids=WHOLE.keys())
def test_a_topology_that_is_wrong_as_a_whole_names_the_line(
    text: str, place: str, said: list[str], tmp_path: Path
) -> None:
    output = refused(tmp_path, text)
    assert place in output
    for word in said:
        assert word in output


def test_a_mistake_in_a_file_beside_it_is_found_there(tmp_path: Path) -> None:
    (tmp_path / "wrong_helper.py").write_text("x = 1\ny = x + nothing\n")
    output = refused(tmp_path, "import wrong_helper\n")
    assert "wrong_helper.py:2" in output
    assert "nothing" in output


def test_functions_without_a_signature_are_taken_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "right_app.py"
    path.write_text(f"{HEAD}app.sink('out', rows, us.sinks.Call(print))\n")
    result = CliRunner().invoke(app, ["topology", str(path)])
    assert result.exit_code == 0, result.output
