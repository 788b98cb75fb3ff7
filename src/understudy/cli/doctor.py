"""`understudy doctor`: whether this machine can run it, and how to mend what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.remote import JSON
from understudy.model.config import DEFAULTS


def doctor(
    home: Annotated[Path, typer.Option(help="Where runs shall live.")] = Path(".understudy"),
    host: Annotated[str, typer.Option(help="The manager's address.")] = DEFAULTS.web.host,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The manager's port.")] = DEFAULTS.web.port,
    nodes: Annotated[int, typer.Option(min=1, help="How many nodes shall run.")] = DEFAULTS.cluster.nodes,
    as_json: JSON = False,
) -> None:
    """Check Java, PySpark, ports, disk, memory and permissions; exits with 1 if something must be mended."""
    import json

    from rich.console import Console
    from rich.text import Text

    from understudy.runtime.checkup import Finding, examine

    colours = {Finding.GOOD: "green", Finding.DOUBTFUL: "yellow", Finding.BAD: "bold red"}
    console = Console()
    checks = []
    for check in examine(home, host, port, nodes):
        checks.append(check)
        if not as_json:
            text = Text(f"{check.finding:<9}", colours[check.finding]).append(f"{check.name}: {check.found}", "default")
            console.print(text, soft_wrap=True)
            if check.fix:
                console.print(Text(f"         fix: {check.fix}"), soft_wrap=True)
    if as_json:
        print(json.dumps([check.as_json() for check in checks], indent=2))
    raise typer.Exit(1 if any(check.finding is Finding.BAD for check in checks) else 0)
