"""Runs an application with faults and answers its report: for tests of your own topologies too.

baseline = run("app.py", tmp / "a", epochs=20)
faulty = run("app.py", tmp / "b", epochs=20, faults=["kill:node-2@epoch8"])
assert faulty.sinks["out"].digest == baseline.sinks["out"].digest
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from understudy.model.faults import Fault
from understudy.model.run import RunSpec
from understudy.model.view import RunState
from understudy.reporting.report import Report
from understudy.runtime.application import load
from understudy.runtime.home import Home
from understudy.runtime.launcher import Launcher
from understudy.runtime.prepare import prepare, reopen


def run(
    app: Path | str,
    home: Path,
    *,
    epochs: int | None = None,
    nodes: int | None = None,
    faults: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    resume: bool = False,
    watch: Callable[[RunState], None] | None = None,
    drive: Callable[[RunState, Launcher], None] | None = None,
    **options: Any,
) -> Report:
    """Runs on three nodes without waiting for the clock, unless `nodes` and `fast=False` say otherwise.

    `options` are the other fields of `RunSpec`, or short names of configured values (`model.run.SHORT`). With `resume`
    a stored run goes on: its options hold where none are given.

    `watch` sees how things stand, some twenty times a second; `drive` may do something about it as well: `inject` a
    fault or a switch, or `finish` the run.
    """
    place = Home(home.resolve())
    wanted: dict[str, Any] = {"epochs": epochs, "nodes": nodes, "settings": settings}
    given = {name: value for name, value in wanted.items() if value is not None} | options
    given["app"] = str(Path(app).resolve())
    if resume:
        spec = place.stored().resumed(given)
    else:
        spec = RunSpec(id=secrets.token_hex(8), **({"nodes": 3, "fast": True, "backlog": 8} | given))
    place.path.mkdir(parents=True, exist_ok=True)
    with place.lock():
        reopen(place, spec, load(Path(app), spec.settings)) if resume else prepare(place, spec)
        with Launcher(place, spec, 0, [Fault.parse(fault) for fault in faults]) as launcher:
            if watch is not None:
                launcher.watch = watch
            if drive is not None:
                launcher.watch = lambda state: drive(state, launcher)
            return launcher.run()
