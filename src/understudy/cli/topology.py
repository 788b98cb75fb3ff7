"""`understudy topology`: what a file defines, without running it."""

from __future__ import annotations

import json
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from understudy.cli.options import SETTINGS, settings
from understudy.model.layout import Layout
from understudy.model.topology import Topology


class Form(StrEnum):
    TEXT = "text"
    MERMAID = "mermaid"
    JSON = "json"


def topology(
    app: Annotated[Path, typer.Argument(help="The Python file with the topology.", show_default=False)],
    form: Annotated[Form, typer.Option("--format", help="How to print it.")] = Form.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Ask Spark too: state, fused queries, mistakes.")] = False,
    set_: SETTINGS = None,
) -> None:
    """Print a topology, and check it as far as that is possible without Spark."""
    from understudy.reporting.drawing import as_json as in_json
    from understudy.reporting.drawing import as_mermaid, as_text
    from understudy.runtime.application import load

    loaded = load(app, settings(set_))
    layout = _ask_spark(app, loaded) if check else None
    if as_json or form is Form.JSON:
        print(json.dumps(in_json(loaded, layout), indent=2))
    else:
        print(as_mermaid(loaded, layout) if form is Form.MERMAID else as_text(loaded, layout))


def _ask_spark(app: Path, loaded: Topology) -> Layout:
    from understudy.control.application.fusion import lay_out
    from understudy.stream import check, frames, session
    from understudy.stream.profile import QUICK

    with Console(stderr=True).status("asking Spark"), tempfile.TemporaryDirectory() as local:
        frames.share_code(app, loaded)
        spark = session.start("topology", "local[1]", QUICK, Path(local))
        try:
            found = check.analyse(spark, loaded)
        finally:
            session.stop_jvm()
    return lay_out(loaded, {name: analysis.stateful for name, analysis in found.items()})
