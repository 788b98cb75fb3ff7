"""`understudy rebalance`: replicas go to other nodes for an even load, one at a time."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from understudy.cli.remote import HOME, JSON, TOKEN, URL, find


def rebalance(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would move.")] = False,
    home: HOME = None,
    url: URL = None,
    token_file: TOKEN = None,
    as_json: JSON = False,
) -> None:
    """Spread the load evenly over the nodes, by a few moves; 'understudy events --follow' shows each of them."""
    answer = find(home, url, token_file).post("/api/v1/rebalance", {"dry_run": dry_run})
    if as_json:
        print(json.dumps(answer))
        return
    for step in answer["steps"]:
        print(step["reason"])
    if not answer["steps"]:
        print("no move is worthwhile")
