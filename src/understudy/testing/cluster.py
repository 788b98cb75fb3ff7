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

from understudy.control.report import Report
from understudy.model.faults import Fault
from understudy.model.run import RunSpec
from understudy.model.view import RunState
from understudy.runtime.home import Home
from understudy.runtime.launcher import Launcher, prepare, reopen


def run(
    app: Path | str,
    home: Path,
    *,
    epochs: int | None = None,
    nodes: int = 3,
    faults: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    resume: bool = False,
    watch: Callable[[RunState], None] | None = None,
    drive: Callable[[RunState, Launcher], None] | None = None,
    **options: Any,
) -> Report:
    """Runs without waiting for the clock, unless `fast=False`; `options` are the other fields of `RunSpec`.

    `watch` sees how things stand, some twenty times a second; `drive` may do something about it as well: `inject` a
    fault or a switch, or `finish` the run.
    """
    place = Home(home.resolve())
    changes: dict[str, Any] = {"app": str(Path(app).resolve()), "nodes": nodes, "epochs": epochs, "fast": True}
    changes |= {"settings": dict(settings or {}), "backlog": 8, **options}
    place.path.mkdir(parents=True, exist_ok=True)
    with place.lock():
        if resume:
            spec = reopen(place, changes)
        else:
            spec = RunSpec(id=secrets.token_hex(8), **changes)
            prepare(place, spec)
        with Launcher(place, spec, 0, [Fault.parse(fault) for fault in faults]) as launcher:
            if watch is not None:
                launcher.watch = watch
            if drive is not None:
                launcher.watch = lambda state: drive(state, launcher)
            return launcher.run()
