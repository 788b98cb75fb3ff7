"""The help: every verb is in a group and has examples, and every example is a command that exists."""

from __future__ import annotations

import importlib.metadata
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import understudy as us
from understudy.cli.groups import VERBS, Group, epilog
from understudy.cli.main import app

ROOT: Any = typer.main.get_command(app)
EXAMPLES = [example for verbs in VERBS.values() for examples in verbs.values() for example in examples]
NAMES = [name for verbs in VERBS.values() for name in verbs]


def help_of(*verb: str) -> str:
    said = CliRunner().invoke(app, [*verb, "--help"], env={"COLUMNS": "120", "TERM": "dumb"})
    assert said.exit_code == 0, said.output
    return said.output


def test_every_verb_is_in_exactly_one_group() -> None:
    assert sorted(ROOT.commands) == sorted(NAMES)
    assert len(set(NAMES)) == len(NAMES)
    assert list(VERBS) == list(Group)


def test_the_help_shows_the_groups_in_their_order() -> None:
    text = help_of()
    places = [text.index(f"─ {group} ─") for group in Group]
    assert places == sorted(places)
    assert "─ Commands ─" not in text, "every verb has a group"


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_a_verb_has_its_examples(name: str) -> None:
    text = " ".join(help_of(name).split())
    for examples in (verbs[name] for verbs in VERBS.values() if name in verbs):
        assert " ".join(epilog(examples).split()) in text


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_can_be_parsed(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options and arguments exist and have values that fit. Nothing is executed."""
    monkeypatch.chdir(tmp_path)
    program, name, *arguments = shlex.split(example.partition(" > ")[0])
    assert program == "understudy"
    command = ROOT.commands[name]
    while hasattr(command, "commands"):
        command, arguments = command.commands[arguments[0]], arguments[1:]
    command.make_context(name, arguments)


def test_the_version_is_that_of_the_package() -> None:
    version = importlib.metadata.version("understudy")
    assert us.__version__ == version
    assert CliRunner().invoke(app, ["--version"]).output == f"understudy {version}\n"
    with pytest.raises(AttributeError, match="no_such_name"):
        us.no_such_name  # noqa: B018


@pytest.mark.parametrize(("verb", "parameter"), [("move", "node"), ("move", "slice_"), ("switch", "slice_"),
                                                 ("drain", "node"), ("kill", "node"), ("freeze", "node")])  # fmt: skip
def test_the_shell_completes_nodes_and_slices(
    verb: str, parameter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ROOT.commands[verb]
    known = {"nodes": [{"name": "node-1"}], "slices": [{"slice": "counts[0]"}]}
    monkeypatch.setattr("understudy.cli.remote.find", lambda *_: Remote(known))
    argument = next(one for one in command.params if one.name == parameter)
    context = command.make_context(verb, [], resilient_parsing=True)
    found = [item.value for item in argument.shell_complete(context, "")]
    assert found == [{"node": "node-1", "slice_": "counts[0]"}[parameter]]


class Remote:
    def __init__(self, view: dict[str, Any]) -> None:
        self._view = view

    def get(self, _: str) -> str:
        import json

        return json.dumps(self._view)
