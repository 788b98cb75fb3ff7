"""`understudy run`: a topology on this machine, with progress, faults and a report."""

from __future__ import annotations

import os
import secrets
import shlex
import signal
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from understudy.cli.options import CONFIG, SETTINGS, configured, settings
from understudy.config import ambient, effective, existing, from_file, from_options
from understudy.errors import InvalidInput, Unavailable
from understudy.model.faults import Fault
from understudy.model.run import RunSpec
from understudy.model.topology import Topology, seconds

if TYPE_CHECKING:
    from understudy.model.report import Report
    from understudy.runtime.home import Home
    from understudy.runtime.launcher import Launcher


def run(
    app: Annotated[Path, typer.Argument(help="The Python file with the topology.", show_default=False)],
    nodes: Annotated[str | None, configured("cluster.nodes")] = None,
    master: Annotated[str | None, configured("cluster.master")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Process exactly so many epochs, drain, stop.")] = None,
    for_: Annotated[str | None, typer.Option("--for", help="Run for so long, like 60s, then drain and stop.")] = None,
    fast: Annotated[
        bool | None,
        typer.Option("--fast/--no-fast", help="Do not wait for the clock between epochs.", show_default="no-fast"),
    ] = None,
    home: Annotated[Path | None, typer.Option(help="Where state lives; default: a new one under .understudy/.")] = None,
    port: Annotated[str | None, configured("web.port")] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with the run in a home directory, with its options where none are given."),
    ] = False,
    check_only: Annotated[
        bool,
        typer.Option("--check", help="Check application, configuration and options, and start nothing."),
    ] = False,
    fault: Annotated[
        list[str] | None,
        typer.Option(
            help="Cause a fault, like kill:node-2@epoch12, kill:domain-1@20s or freeze:node-2/jvm@8s+3s; repeatable."
        ),
    ] = None,
    set_: SETTINGS = None,
    config: CONFIG = None,
    replace: Annotated[bool | None, configured("cluster.replace")] = None,
    allow_faults: Annotated[bool | None, configured("web.allow_faults")] = None,
    token_to_read: Annotated[bool | None, configured("web.token_to_read")] = None,
    report: Annotated[Path | None, typer.Option(help="Write the report to this JSON file.")] = None,
    scheme: Annotated[str | None, configured("recovery.scheme")] = None,
    reaction: Annotated[str | None, configured("recovery.reaction")] = None,
    heartbeat: Annotated[str | None, configured("detector.heartbeat_s")] = None,
    misses: Annotated[str | None, configured("detector.misses")] = None,
    wake_misses: Annotated[str | None, configured("detector.misses_to_stand_in")] = None,
    detector: Annotated[str | None, configured("detector.kind")] = None,
    domains: Annotated[str | None, configured("cluster.domains")] = None,
    standby_nodes: Annotated[str | None, configured("cluster.standby_nodes")] = None,
    placement: Annotated[str | None, configured("cluster.placement")] = None,
    scale: Annotated[str | None, configured("scaling.policy")] = None,
    min_nodes: Annotated[str | None, configured("scaling.min_nodes")] = None,
    max_nodes: Annotated[str | None, configured("scaling.max_nodes")] = None,
    rebalance: Annotated[bool | None, configured("cluster.rebalance")] = None,
    budget: Annotated[str | None, configured("plan.budget")] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            help="Slices with working secondaries, instead of --budget: what 'understudy plan --json' prints."
        ),
    ] = None,
    profile: Annotated[str | None, configured("jvm.profile")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Run a topology and keep it running; exits with 0 if the output is exact, 1 if not, 2 on an error."""
    from understudy.cli.progress import Progress
    from understudy.runtime.launcher import Launcher
    from understudy.runtime.prepare import check, check_port, prepare, reopen

    faults = [Fault.parse(spec) for spec in fault or []]
    fields: dict[str, Any] = {"app": str(app.resolve()), "settings": settings(set_)}
    asked = {"epochs": epochs, "for_s": None if for_ is None else seconds(for_), "fast": fast}
    fields |= {name: value for name, value in asked.items() if value is not None}
    fields |= _named(plan)
    options: dict[str, Any] = {"--standby-nodes": standby_nodes, "--placement": placement, "--budget": budget}
    options |= {
        "--nodes": nodes,
        "--master": master,
        "--domains": domains,
        "--replace": replace,
        "--rebalance": rebalance,
    }
    options |= {"--detector": detector, "--heartbeat": heartbeat, "--misses": misses, "--wake-misses": wake_misses}
    options |= {"--scheme": scheme, "--reaction": reaction, "--profile": profile}
    options |= {"--port": port, "--allow-faults": allow_faults, "--token-to-read": token_to_read}
    options |= {"--scale": scale, "--min-nodes": min_nodes, "--max-nodes": max_nodes}
    given = from_options(options)
    if report is not None:
        _check_report(report)
    if resume:
        # The file beside the application and the environment may have changed since the run began.
        named = [] if config is None else from_file(existing(config))
        anew = effective([*named, *given]).given()
        place, spec, topology = _stored_run(app, home, fields | {"config": anew})
    else:
        chosen = effective([*ambient(app.resolve().parent, config), *given]).config
        place, spec, topology = _new_run(app, home, fields | {"config": chosen})
    check(spec, topology, faults)
    if check_only:
        _only_check(app, place if resume else None, spec, topology)
        return
    if not resume:
        check_port(spec.port, spec.config.web.host)
    console = Console(stderr=True, quiet=quiet)
    with _lock(place):
        if resume:
            check_port(spec.port, spec.config.web.host)
            reopen(place, spec, topology)
        else:
            prepare(place, spec)
        with (
            Launcher(place, spec, spec.port, faults, spec.config.web.host) as launcher,
            Progress(console, place.path) as progress,
        ):
            launcher.watch, launcher.tell = progress.show, progress.tell
            _listen(launcher)
            progress.show_page(launcher.url, place.token() if spec.allow_faults or spec.token_to_read else None)
            try:
                result = launcher.run()
            except KeyboardInterrupt:
                launcher.stop()
                again = shlex.join(["understudy", "run", str(app), "--home", str(place.path), "--resume"])
                console.print("stopped; go on with", Text(again, "bold"), soft_wrap=True, highlight=False)
                raise typer.Exit(130) from None
    if report is not None:
        _write_report(report, result)
    raise typer.Exit(_finish(result, launcher.begun, as_json, quiet))


def _only_check(app: Path, resumed: Home | None, spec: RunSpec, topology: Topology) -> None:
    from understudy.runtime.prepare import check_same

    if resumed is not None:
        check_same(resumed, spec, topology)
    parts = len(topology.streams) + len(topology.sinks)
    print(f"{app}: {topology.name} has {parts} parts and would run on {spec.nodes} nodes; nothing was started")


def _finish(result: Report, begun: bool, as_json: bool, quiet: bool) -> int:
    """Shows how a run went and returns its exit code."""
    from understudy.cli.progress import show_report

    if as_json:
        print(result.model_dump_json(indent=2))
    elif not begun and result.failure is not None:
        raise InvalidInput(result.failure.what, why=result.failure.why, fix=result.failure.fix)
    elif not quiet:
        show_report(Console(), result)
    return _exit_code(result, begun)


def _named(plan: Path | None) -> dict[str, Any]:
    """The slices of a plan that a person made."""
    from understudy.planning.replication.files import load_plan

    return {} if plan is None else {"plan": load_plan(plan)}


def _exit_code(result: Report, begun: bool) -> int:
    if result.failure is not None and not begun:
        return InvalidInput.exit_code
    return 0 if result.verdict == "exact" else 1


def _new_run(app: Path, home: Path | None, fields: dict[str, Any]) -> tuple[Home, RunSpec, Topology]:
    from understudy.runtime.application import load
    from understudy.runtime.home import Home

    topology = load(app, fields["settings"])
    fresh = Path(".understudy") / topology.name / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    place = Home((home or fresh).resolve())
    if place.exists():
        raise InvalidInput(
            f"{place.path} holds a run already",
            why="starting anew would mix two runs",
            fix="go on with --resume, or give another --home",
        )
    return place, RunSpec(id=secrets.token_hex(8), **fields), topology


def _stored_run(app: Path, home: Path | None, given: dict[str, Any]) -> tuple[Home, RunSpec, Topology]:
    """The stored options decide about the topology too, so the file is read with them."""
    from understudy.runtime.application import load
    from understudy.runtime.home import Home

    place = Home((home or _newest_home(load(app, given.get("settings", {})))).resolve())
    spec = place.stored().resumed(given)
    return place, spec, load(app, spec.settings)


def _newest_home(topology: Topology) -> Path:
    from understudy.runtime.home import Home

    parent = Path(".understudy") / topology.name
    homes = sorted(path.parent for path in parent.glob("*/manager.db") if Home(path.parent).exists())
    if not homes:
        raise InvalidInput(
            f"there is no run of '{topology.name}' to resume here",
            why=f"{parent} holds none",
            fix="start one without --resume, or name its --home",
        )
    return homes[-1]


def _lock(place: Home) -> IO[str]:
    try:
        place.path.mkdir(parents=True, exist_ok=True)
        return place.lock()
    except OSError as error:
        raise InvalidInput(
            f"--home {place.path} cannot be used", why=str(error), fix="give a directory that you may write to"
        ) from error


def _check_report(path: Path) -> None:
    """Before the run: a report that cannot be written would be noticed when it is over."""
    target = path if path.exists() else path.parent
    if path.is_dir() or not path.parent.is_dir() or not os.access(target, os.W_OK):
        why = "it is a directory" if path.is_dir() else f"{path.parent} is not a directory that may be written to"
        raise InvalidInput(f"--report {path} cannot be written", why=why, fix="give a file in a directory that exists")


def _write_report(path: Path, result: Report) -> None:
    try:
        path.write_text(result.model_dump_json(indent=2) + "\n")
    except OSError as error:
        raise Unavailable(
            f"--report {path} cannot be written",
            why=str(error),
            fix="the run is over and kept in its home: 'understudy run … --resume --report FILE' writes it again",
        ) from error


def _listen(launcher: Launcher) -> None:
    """The first Ctrl-C ends the run in order, the second at once."""

    def hear(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        launcher.interrupt()

    signal.signal(signal.SIGINT, hear)
