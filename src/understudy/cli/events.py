"""`understudy events`: what happened, and what led to what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.remote import HOME, JSON, TOKEN, URL, find

if TYPE_CHECKING:
    from rich.text import Text

    from understudy.model.events import Event

EVERY_S = 0.5
COLOURS = {"bad": "red", "good": "green", "plain": ""}


def events(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what comes, until the run is over.")
    ] = False,
    after: Annotated[int, typer.Option(min=0, help="Only events with a higher number.")] = 0,
    home: HOME = None,
    url: URL = None,
    token_file: TOKEN = None,
    as_json: JSON = False,
) -> None:
    """List the events of a run; with --json, one object a line."""
    import time

    from pydantic import TypeAdapter
    from rich.console import Console

    from understudy.model.events import OVER, Event

    several = TypeAdapter(list[Event])
    remote = find(home, url, token_file)
    console = Console()
    began: float | None = None
    try:
        while True:
            page = several.validate_json(remote.get("/api/v1/events", after=after))
            for event in page:
                after, began = event.number, event.at if began is None else began
                if as_json:
                    print(event.model_dump_json(), flush=True)
                else:
                    console.print(line(event, began), soft_wrap=True)
                if follow and event.kind in OVER:
                    return
            if page:
                # They come in portions.
                continue
            if not follow:
                return
            time.sleep(EVERY_S)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def line(event: Event, began: float) -> Text:
    from rich.text import Text

    cause = f"  (because of {event.cause})" if event.cause is not None else ""
    text = Text(f"{event.number:>5}  {event.at - began:8.2f} s  ")
    text.append(f"{event.kind:<12}", COLOURS[event.tone])
    text.append(f" {event.text}")
    return text.append(cause, "dim")
