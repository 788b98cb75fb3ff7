"""`understudy config`: the configuration that holds, and where every value of it comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.options import CONFIG


def config(
    app: Annotated[
        Path | None, typer.Argument(help="The application; default: look in this directory.", show_default=False)
    ] = None,
    config: CONFIG = None,
    defaults: Annotated[
        bool, typer.Option("--defaults", help="Print a commented file with all defaults, to start from.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of TOML.")] = False,
) -> None:
    """Print the effective configuration as TOML, with the origin of every value."""
    import json

    from understudy.config import ambient, effective
    from understudy.config.text import as_data, as_toml, defaults_file

    if defaults and not as_json:
        print(defaults_file(), end="")
        return
    directory = Path() if app is None else app.resolve().parent
    found = effective([] if defaults else ambient(directory, config))
    print(json.dumps(as_data(found), indent=2) if as_json else as_toml(found))
