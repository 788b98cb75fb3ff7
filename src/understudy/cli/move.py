"""`understudy move`: a slice goes to another node, while it runs."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from understudy.cli.remote import HOME, JSON, TOKEN, URL, complete_nodes, complete_slices, find
from understudy.model.names import SliceId


def move(
    slice_: Annotated[
        str, typer.Argument(metavar="SLICE", help="Like counts[1].", show_default=False, autocompletion=complete_slices)
    ],
    node: Annotated[
        str, typer.Argument(metavar="NODE", help="Like node-3.", show_default=False, autocompletion=complete_nodes)
    ],
    legacy: Annotated[
        bool, typer.Option("--legacy", help="Stop it, ship its state, start it there: for comparison.")
    ] = False,
    home: HOME = None,
    url: URL = None,
    token_file: TOKEN = None,
    as_json: JSON = False,
) -> None:
    """Move a slice to another node without interruption; 'understudy events --follow' shows when it is there."""
    slice_id = SliceId.parse(slice_)
    body = {"slice": str(slice_id), "node": node, "legacy": legacy}
    answer = find(home, url, token_file).post("/api/v1/move", body)
    print(json.dumps(answer) if as_json else f"{slice_id} moves to {node}")
