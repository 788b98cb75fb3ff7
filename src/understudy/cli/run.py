"""`understudy run`: a topology on this machine, with progress, faults and a report."""

from __future__ import annotations

import secrets
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from understudy.cli.options import SETTINGS, settings
from understudy.errors import InvalidInput
from understudy.model.faults import Fault
from understudy.model.recovery import Reaction, Scheme, member
from understudy.model.run import Detectors, RunSpec
from understudy.model.topology import Topology, seconds

if TYPE_CHECKING:
    from understudy.runtime.launcher import Launcher


def run(
    app: Annotated[Path, typer.Argument(help="The Python file with the topology.", show_default=False)],
    nodes: Annotated[int, typer.Option(min=1, help="How many nodes to start.")] = 3,
    master: Annotated[str, typer.Option(help="Spark master of every node.")] = "local[1]",
    epochs: Annotated[int | None, typer.Option(min=1, help="Process exactly so many epochs, drain, stop.")] = None,
    for_: Annotated[str | None, typer.Option("--for", help="Run for so long, like 60s, then drain and stop.")] = None,
    fast: Annotated[bool, typer.Option("--fast", help="Do not wait for the clock between epochs.")] = False,
    home: Annotated[Path | None, typer.Option(help="Where state lives; default: a new one under .understudy/.")] = None,
    port: Annotated[int, typer.Option(help="The manager's port; 0 picks a free one.")] = 8787,
    resume: Annotated[bool, typer.Option("--resume", help="Go on in a home directory that is there.")] = False,
    fault: Annotated[
        list[str] | None,
        typer.Option(help="Cause a fault, like kill:node-2@epoch12 or freeze:node-2/jvm@8s+3s; repeatable."),
    ] = None,
    set_: SETTINGS = None,
    replace: Annotated[bool, typer.Option("--replace", help="Start a new node for every one that is lost.")] = False,
    allow_faults: Annotated[
        bool, typer.Option("--allow-faults", help="Let 'understudy kill' and the dashboard cause faults.")
    ] = False,
    report: Annotated[Path | None, typer.Option(help="Write the report to this JSON file.")] = None,
    scheme: Annotated[str | None, typer.Option(help="Protect every operator by this scheme.")] = None,
    reaction: Annotated[
        str | None, typer.Option(help="Answer slow nodes for every operator: conservative or speculative.")
    ] = None,
    heartbeat: Annotated[str, typer.Option(help="Time between two heartbeats of a node.")] = "100ms",
    misses: Annotated[int, typer.Option(min=1, help="Missed heartbeats until a silent node counts as dead.")] = 30,
    wake_misses: Annotated[int, typer.Option(min=1, help="Missed heartbeats until a speculative secondary wakes.")] = 1,
    detector: Annotated[
        str, typer.Option(help="Who is slow: heartbeat, or benchmark, which also times a known piece of work.")
    ] = "heartbeat",
    domains: Annotated[int, typer.Option(min=0, help="Spread the nodes over so many failure domains.")] = 0,
    profile: Annotated[str, typer.Option(help="JVM settings: quick starts sooner, full processes more.")] = "quick",
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Run a topology and keep it running; exits with 0 if the output is exact, 1 if not, 2 on an error."""
    from understudy.cli.progress import Progress, show_report
    from understudy.runtime.application import load
    from understudy.runtime.home import Home
    from understudy.runtime.launcher import Launcher, check, prepare, reopen

    faults = [Fault.parse(spec) for spec in fault or []]
    values = settings(set_)
    topology = load(app, values)
    place = Home((home or _default_home(topology, resume)).resolve())
    check(nodes, replace, port, faults)
    changes: dict[str, Any] = {"nodes": nodes, "master": master, "epochs": epochs, "replace": replace, "fast": fast}
    changes |= {"for_s": None if for_ is None else seconds(for_), "app": str(app.resolve()), "settings": values}
    changes |= {"profile": profile, "backlog": 8 if fast else 100, "domains": domains, "allow_faults": allow_faults}
    changes |= {"reaction": None if reaction is None else member(Reaction, reaction, "reaction")}
    changes |= {"heartbeat_s": _heartbeat(heartbeat), "misses": misses, "wake_misses": wake_misses}
    changes |= {"detector": member(Detectors, detector, "detector")}
    changes |= {"scheme": None if scheme is None else member(Scheme, scheme, "scheme")}
    if not resume and place.exists():
        raise _used(place.path)
    place.path.mkdir(parents=True, exist_ok=True)
    lock = place.lock()
    spec = reopen(place, changes) if resume else RunSpec(id=secrets.token_hex(8), **changes)
    if not resume:
        prepare(place, spec)
    console = Console(stderr=True, quiet=quiet)
    with lock, Launcher(place, spec, port, faults) as launcher, Progress(console, place.path) as progress:
        launcher.watch, launcher.tell = progress.show, progress.tell
        _listen(launcher)
        progress.show_page(launcher.url, place.token() if allow_faults else None)
        try:
            result = launcher.run()
        except KeyboardInterrupt:
            launcher.stop()
            console.print(f"stopped; go on with [bold]understudy run {app} --home {place.path} --resume[/]")
            raise typer.Exit(130) from None
    if report is not None:
        report.write_text(result.model_dump_json(indent=2) + "\n")
    if as_json:
        print(result.model_dump_json(indent=2))
    elif not quiet:
        show_report(Console(), result)
    raise typer.Exit(0 if result.verdict == "exact" else 1)


def _listen(launcher: Launcher) -> None:
    """The first Ctrl-C ends the run in order, the second at once."""

    def hear(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        launcher.interrupt()

    signal.signal(signal.SIGINT, hear)


def _heartbeat(text: str) -> float:
    found = seconds(text)
    if not 0.01 <= found <= 60:
        raise InvalidInput(
            f"--heartbeat {text}",
            why="nodes are heard of between every 10 ms and once a minute",
            fix="give a time like 100ms",
        )
    return found


def _default_home(topology: Topology, resume: bool) -> Path:
    parent = Path(".understudy") / topology.name
    if not resume:
        return parent / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    homes = sorted(path.parent for path in parent.glob("*/manager.db"))
    if not homes:
        raise InvalidInput(
            f"there is no run of '{topology.name}' to resume here",
            why=f"{parent} holds none",
            fix="start one without --resume, or name its --home",
        )
    return homes[-1]


def _used(path: Path) -> InvalidInput:
    return InvalidInput(
        f"{path} holds a run already",
        why="starting anew would mix two runs",
        fix="go on with --resume, or give another --home",
    )
