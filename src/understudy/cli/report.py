"""`understudy report`: a run's report for people, after the run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.remote import JSON
from understudy.errors import InvalidInput


def report(
    file: Annotated[Path, typer.Argument(help="What 'understudy run --report FILE.json' wrote.", show_default=False)],
    html: Annotated[Path | None, typer.Option(help="Write one self-contained page to this file.")] = None,
    events: Annotated[Path | None, typer.Option(help="The run's events.jsonl, to list them in the page.")] = None,
    as_json: JSON = False,
) -> None:
    """Show a report, or make a page of it with plots, timeline and verdict."""
    from rich.console import Console

    from understudy.cli.progress import show_report
    from understudy.model.report import Report
    from understudy.web.report_page import read_events, report_page

    try:
        found = Report.model_validate_json(file.read_text())
        happened = read_events(events) if events is not None else []
    except OSError as error:
        raise InvalidInput(
            f"{error.filename} cannot be read", why=error.strerror or str(error), fix="name a file that is there"
        ) from None
    except ValueError as error:
        raise InvalidInput(
            f"{file} is no report",
            why=str(error).splitlines()[0],
            fix="make one with 'understudy run --report FILE.json'",
        ) from None
    if html is not None:
        html.write_text(report_page(found, happened))
    if as_json:
        print(found.model_dump_json(indent=2))
    elif html is not None:
        print(f"{html}: {found.verdict}")
    else:
        show_report(Console(), found)
