"""`understudy nexmark`: the queries of the Nexmark benchmark, one after the other, measured and judged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.options import configured
from understudy.cli.remote import JSON
from understudy.model.faults import Fault


def nexmark(
    queries: Annotated[str, typer.Option(help="Which queries, like q3,q5.")] = "all",
    rate: Annotated[float, typer.Option(help="Events a second.")] = 1000.0,
    epochs: Annotated[int, typer.Option(min=1, help="How many epochs of every query.")] = 30,
    epoch: Annotated[str, typer.Option(help="Length of an epoch.")] = "1 second",
    seed: Annotated[int, typer.Option(min=0, help="Other events for another seed.")] = 0,
    nodes: Annotated[str | None, configured("cluster.nodes")] = None,
    master: Annotated[str | None, configured("cluster.master")] = None,
    scheme: Annotated[str | None, configured("recovery.scheme")] = None,
    fault: Annotated[
        list[str] | None, typer.Option(help="Cause a fault in every query, like kill:node-2@epoch12; repeatable.")
    ] = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="Do not wait for the clock: how much is possible, instead of how late.")
    ] = False,
    against_spark: Annotated[
        bool, typer.Option("--against-spark", help="Run every query in plain Structured Streaming too, and compare.")
    ] = False,
    profile: Annotated[str | None, configured("jvm.profile")] = None,
    home: Annotated[Path | None, typer.Option(help="Keep every run in a folder here; default: keep none.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    as_json: JSON = False,
) -> None:
    """Run Nexmark queries and print throughput, latency, recovery and verdict; exits with 1 if one is not exact."""
    from rich.console import Console

    from understudy.cli.nexmark_run import Request, run_all
    from understudy.cli.nexmark_show import as_text, show
    from understudy.config import effective, from_environment, from_options
    from understudy.nexmark.catalogue import chosen

    options = {"--nodes": nodes, "--master": master, "--scheme": scheme, "--profile": profile}
    request = Request(
        queries=tuple(query.name for query in chosen(queries)),
        rate=rate,
        epochs=epochs,
        epoch=epoch,
        seed=seed,
        faults=tuple(Fault.parse(spec) for spec in fault or []),
        fast=fast,
        against_spark=against_spark,
        config=effective([*from_environment(os.environ), *from_options(options)]).config,
        home=home,
    )
    request.check()
    console = Console(stderr=True, quiet=quiet)
    found, interrupted = run_all(request, console)
    if as_json:
        print(as_text(request, found))
    else:
        show(Console(), request, found)
    if interrupted:
        raise typer.Exit(130)
    raise typer.Exit(0 if all(one.well for one in found) else 1)
