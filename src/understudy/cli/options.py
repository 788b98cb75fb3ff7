"""Options that several verbs share."""

from __future__ import annotations

from typing import Annotated

import typer

from understudy.errors import InvalidInput

SETTINGS = Annotated[list[str] | None, typer.Option("--set", help="NAME=VALUE for us.setting(); repeatable.")]


def settings(pairs: list[str] | None) -> dict[str, str]:
    found = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InvalidInput(f"--set {pair}", why="a setting has a name and a value", fix="write --set NAME=VALUE")
        found[name] = value
    return found
