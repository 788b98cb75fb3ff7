"""`understudy kill`, `freeze` and `drain`: what happens to a node, on purpose."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli.remote import HOME, JSON, TOKEN, URL, complete_nodes, find
from understudy.errors import InvalidInput

if TYPE_CHECKING:
    from understudy.runtime.client import Client

NODE = Annotated[
    str, typer.Argument(metavar="NODE", help="Like node-2.", show_default=False, autocompletion=complete_nodes)
]
JVM = Annotated[bool, typer.Option("--jvm", help="Only the node's JVM; its Python process goes on.")]
YES = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def kill(
    node: NODE,
    jvm: JVM = False,
    yes: YES = False,
    home: HOME = None,
    url: URL = None,
    token_file: TOKEN = None,
    as_json: JSON = False,
) -> None:
    """Kill a node as a power cut would (needs a run with --allow-faults)."""
    remote = find(home, url, token_file)
    whom = f"the JVM of {node}" if jvm else node
    _confirm(f"kill {whom} and everything it hosts?", yes)
    done = f"{whom} is killed; 'understudy events --follow' shows what follows"
    _do(remote, node, "kill", {"jvm": True} if jvm else {}, as_json, done)


def freeze(
    node: NODE,
    for_: Annotated[str, typer.Option("--for", help="How long, like 3s.")] = "3s",
    jvm: JVM = False,
    yes: YES = False,
    home: HOME = None,
    url: URL = None,
    token_file: TOKEN = None,
    as_json: JSON = False,
) -> None:
    """Freeze a node for a while, then let it go on (needs a run with --allow-faults)."""
    from understudy.model.topology import seconds

    length = seconds(for_)
    remote = find(home, url, token_file)
    whom = f"the JVM of {node}" if jvm else node
    _confirm(f"freeze {whom} for {length:g} s?", yes)
    body = {"seconds": length} | ({"jvm": True} if jvm else {})
    _do(remote, node, "freeze", body, as_json, f"{whom} is frozen for {length:g} s")


def drain(
    node: NODE,
    undo: Annotated[bool, typer.Option("--undo", help="Let the node take slices again.")] = False,
    within: Annotated[
        str | None, typer.Option(help="The node leaves when it is empty, after so long at the latest, like 30s.")
    ] = None,
    home: HOME = None,
    url: URL = None,
    token_file: TOKEN = None,
    as_json: JSON = False,
) -> None:
    """Move a node's slices away without interruption, the most important first."""
    from understudy.model.topology import seconds

    if undo and within is not None:
        raise InvalidInput("--undo --within", why="a node takes slices again, or it leaves", fix="give one of the two")
    body: dict[str, Any] = {"undo": undo} | ({} if within is None else {"within_s": seconds(within)})
    done = f"{node} takes slices again" if undo else f"{node} is being drained; 'understudy status' shows when it is"
    _do(find(home, url, token_file), node, "drain", body, as_json, done)


def _confirm(question: str, yes: bool) -> None:
    """Asks a person; a script has to say --yes."""
    if not yes:
        typer.confirm(question, abort=True)


def _do(remote: Client, node: str, verb: str, body: dict[str, Any], as_json: bool, done: str) -> None:
    from urllib.parse import quote

    answer = remote.post(f"/api/v1/nodes/{quote(node, safe='')}/{verb}", body)
    print(json.dumps(answer) if as_json else done)
