"""`understudy switch`: another scheme for a slice, while it runs."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from understudy.cli.remote import HOME, JSON, TOKEN, URL, complete_slices, find
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme, member


def complete_schemes(incomplete: str) -> list[str]:
    return [scheme for scheme in Scheme if scheme.startswith(incomplete)]


def switch(
    slice_: Annotated[
        str, typer.Argument(metavar="SLICE", help="Like counts[1].", show_default=False, autocompletion=complete_slices)
    ],
    scheme: Annotated[
        str,
        typer.Argument(
            metavar="SCHEME", help="Like passive_standby_hot.", show_default=False, autocompletion=complete_schemes
        ),
    ],
    home: HOME = None,
    url: URL = None,
    token_file: TOKEN = None,
    as_json: JSON = False,
) -> None:
    """Protect a slice by another scheme; 'understudy events --follow' shows when it is reached."""
    slice_id = SliceId.parse(slice_)
    wanted = member(Scheme, scheme.replace("-", "_"), "scheme")
    answer = find(home, url, token_file).post("/api/v1/switch", {"slice": str(slice_id), "scheme": wanted.value})
    print(json.dumps(answer) if as_json else f"{slice_id} goes to {wanted}")
