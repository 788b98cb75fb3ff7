"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from understudy.config.keys import KEYS, Kind
from understudy.errors import InvalidInput

CONFIG = Annotated[
    Path | None,
    typer.Option("--config", help="Configuration; default: understudy.toml beside the application, if there is one."),
]

SETTINGS = Annotated[list[str] | None, typer.Option("--set", help="NAME=VALUE for us.setting(); repeatable.")]


def configured(name: str) -> Any:
    """The option of a configured value: its name, help and default are those of the section's field.

    The parameter itself defaults to None, so that a value that was given can be told from one that was not.
    """
    key = KEYS[name]
    if key.option is None:
        raise ValueError(f"{name} has no option")
    if key.kind is Kind.FLAG:
        off = f"--no-{key.option.removeprefix('--')}"
        default = key.option if key.default else off
        return typer.Option(f"{key.option}/{off}", help=key.text, show_default=default.removeprefix("--"))
    metavar = {Kind.WHOLE: "INTEGER", Kind.TIME: "TIME", Kind.NAME: "NAME"}.get(key.kind, "TEXT")
    return typer.Option(key.option, help=key.text, show_default=key.shown_default, metavar=metavar)


def settings(pairs: list[str] | None) -> dict[str, str]:
    found = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InvalidInput(f"--set {pair}", why="a setting has a name and a value", fix="write --set NAME=VALUE")
        found[name] = value
    return found
