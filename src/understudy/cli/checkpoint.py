"""`understudy checkpoint`: slices ship the state they have, now."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from understudy.cli.remote import HOME, JSON, TOKEN, URL, complete_slices, find
from understudy.model.names import SliceId


def checkpoint(
    slices: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SLICE]...",
            help="Like counts[1]; default: every slice that keeps checkpoints.",
            show_default=False,
            autocompletion=complete_slices,
        ),
    ] = None,
    home: HOME = None,
    url: URL = None,
    token_file: TOKEN = None,
    as_json: JSON = False,
) -> None:
    """Ship checkpoints now, although none is due: before a risky step there is less to replay."""
    wanted = [str(SliceId.parse(name)) for name in slices or ()]
    answer = find(home, url, token_file).post("/api/v1/checkpoint", {"slices": wanted})
    if as_json:
        print(json.dumps(answer))
        return
    for name, epoch in answer["slices"].items():
        print(f"{name} ships its state, that of epoch {epoch} or newer")
