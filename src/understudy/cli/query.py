"""`understudy query`: queries in text, explained without running them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.options import SETTINGS, settings
from understudy.errors import InvalidInput

if TYPE_CHECKING:
    from understudy.queries.plans import Plan

app = typer.Typer(no_args_is_help=True, help="Explain queries in text.")


@app.callback()
def _root() -> None:
    """Explain queries in text."""


@app.command()
def explain(
    query: Annotated[
        str, typer.Argument(help="A query, a file with one, or an application (.py) with queries.", metavar="TEXT|FILE")
    ],
    application: Annotated[
        Path | None, typer.Option("--app", help="The application (.py) whose streams the query reads.")
    ] = None,
    slices: Annotated[int | None, typer.Option(help="As for us.query; default: derived.", min=1)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    set_: SETTINGS = None,
) -> None:
    """Print the syntax tree of a query, the operator it becomes, and why: key, slices, windows, event time."""
    from understudy.queries.explain import as_json as in_json
    from understudy.queries.explain import as_text

    values = settings(set_)
    plans = (
        _of_application(Path(query), values)
        if query.endswith(".py")
        else [_of_text(_text(query), application, slices, values)]
    )
    if as_json:
        found = [in_json(plan) for plan in plans]
        print(json.dumps(found if query.endswith(".py") else found[0], indent=2))
    else:
        print("\n\n".join(as_text(plan) for plan in plans))


def _of_application(path: Path, values: dict[str, str]) -> list[Plan]:
    from understudy.queries.compiled import Compiled
    from understudy.runtime.application import load

    found = [one.function.plan for one in load(path, values).operators if isinstance(one.function, Compiled)]
    if not found:
        raise InvalidInput(
            f"{path} has no query in text",
            why="none of its operators was made by us.query",
            fix=f"'understudy topology {path}' shows its operators",
        )
    return found


def _of_text(text: str, application: Path | None, slices: int | None, values: dict[str, str]) -> Plan:
    """Without an application nothing is known about streams: columns are taken as they are written."""
    from understudy.queries.catalog import assumed_streams
    from understudy.queries.derive import derive
    from understudy.queries.parser import parse
    from understudy.queries.places import Text
    from understudy.queries.query import planned
    from understudy.runtime.application import load

    if application is not None:
        return planned(load(application, values), text, "", slices)
    tree = parse(text)
    return derive(tree, Text(text), assumed_streams(tree), slices)


def _text(query: str) -> str:
    path = Path(query)
    if " " in query.strip() or not (path.suffix or path.is_file()):
        return query
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{query} cannot be read",
            why=str(error),
            fix="give a query in quotes, or a file with one",
        ) from None
