"""`understudy status`: how a run stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.remote import HOME, JSON, TOKEN, URL, find

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.text import Text

    from understudy.model.page import NodeLook, View

EVERY_S = 1.0
PIPED_WIDTH = 200


def status(
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Look again every second until Ctrl-C.")] = False,
    home: HOME = None,
    url: URL = None,
    token_file: TOKEN = None,
    as_json: JSON = False,
) -> None:
    """Show the slices and nodes of a run that goes on."""
    import time

    from rich.console import Console
    from rich.live import Live

    from understudy.model.page import View

    remote = find(home, url, token_file)

    def look() -> View:
        return View.model_validate_json(remote.get("/api/v1/view"))

    console = Console()
    if not console.is_terminal:
        # Lines of a file or a pipe are not broken where a terminal would end.
        console = Console(width=PIPED_WIDTH)
    if not watch:
        view = look()
        print(view.model_dump_json(indent=2)) if as_json else console.print(drawn(view))
        return
    try:
        if as_json or not console.is_terminal:
            while True:
                print(look().model_dump_json() if as_json else in_words(look()), flush=True)
                time.sleep(EVERY_S)
        with Live(drawn(look()), console=console, auto_refresh=False, screen=True) as live:
            while True:
                time.sleep(EVERY_S)
                live.update(drawn(look()), refresh=True)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def in_words(view: View) -> str:
    """One line, for logs."""
    unwell = [f"{s.slice} {s.health.replace('_', ' ')}" for s in view.slices if s.health != "healthy"]
    goal = f" of {view.goal}" if view.goal is not None else ""
    latency = f", latency {view.latency_s:.2f} s" if view.latency_s is not None else ""
    return (
        f"{view.app} {view.phase}: epoch {view.epoch}{goal}, {view.rows_per_s:,.0f} rows/s{latency}, "
        f"{len(view.slices)} slices" + (f" ({', '.join(unwell)})" if unwell else ", all healthy" if view.slices else "")
    )


def drawn(view: View) -> Group:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    slices = Table("slice", "health", "scheme", "primary", "secondary", "epoch", "lag", box=None, header_style="bold")
    for entry in view.slices:
        word = Text(entry.health.replace("_", " "), COLOURS[entry.health])
        has = f"throttled, has {entry.protection}" if entry.throttled else f"has {entry.protection}"
        scheme = entry.scheme if entry.scheme == entry.protection else f"{entry.scheme} ({has})"
        numbers = (str(max(entry.epoch, 0)) if entry.epoch >= 0 else "-", str(entry.lag))
        # Text, because "[0]" would be taken for markup.
        primary = f"{entry.primary} → {entry.moving}" if entry.moving else entry.primary or "-"
        slices.add_row(Text(entry.slice), word, scheme or "-", primary, entry.secondary or "-", *numbers)
    nodes = Table("node", "domain", "state", "hosts", "CPU", "memory", "heartbeat", box=None, header_style="bold")
    for node in view.nodes:
        primaries = sum(replica.primary for replica in node.replicas)
        hosts = f"{primaries} primary, {len(node.replicas) - primaries} secondary"
        memory = f"{node.memory_bytes / 2**20:,.0f} MB"
        nodes.add_row(
            node.name, node.domain or "-", _state_of(node), hosts, f"{node.cores:.2f}", memory, f"{node.silent_s:.1f} s"
        )
    for name in view.lost:
        nodes.add_row(name, "-", Text("lost", "bold red"), "-", "-", "-", "-")
    parts: list[RenderableType] = [Text(in_words(view), "bold"), Text(), slices, Text(), nodes]
    if view.balancing:
        parts.insert(1, Text(f"the load is being balanced: at most {view.balancing} more to move", "yellow"))
    if view.branch is not None:
        parts.insert(1, Text(str(view.branch), COLOURS["tentative"]))
    if view.failure is not None:
        parts += [Text(), Text(str(view.failure), "red")]
    return Group(*parts)


def _state_of(node: NodeLook) -> Text:
    from rich.text import Text

    if not node.connected:
        return Text("disconnected", "bold red")
    if node.drained or node.draining:
        return Text("drained" if node.drained else "draining", "yellow")
    return Text("ready", "green") if node.ready else Text("starting", "cyan")


COLOURS = {
    "healthy": "green",
    "starting": "cyan",
    "degraded": "yellow",
    "catching_up": "yellow",
    "tentative": "magenta",
    "down": "bold red",
}
