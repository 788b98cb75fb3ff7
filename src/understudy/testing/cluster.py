"""Runs an application with faults and returns its report: for fault tests of your own topologies."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from understudy.model.faults import Fault
from understudy.model.report import Report
from understudy.model.run import RunSpec
from understudy.model.view import RunState
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
    """Runs an application on nodes of this machine, injects faults, and returns the report when the run has ended.

    Parameters
    ----------
    app : Path or str
        The application file.
    home : Path
        Directory of the run: log, checkpoints, output (``home / "out"``), the processes' logs.
    epochs : int, optional
        Ends the run when every sink has delivered so many epochs. Without it the run ends with its sources.
    nodes : int, optional
        Number of nodes. Default: 3.
    faults : sequence of str, optional
        Faults as on the command line: ``"kill:node-2@epoch8"``, ``"freeze:node-1@8s+3s"``,
        ``"switch:counts[0]=active_standby@20s"``, ``"move:counts[0]=node-3@20s"``.
    settings : mapping, optional
        Values for ``us.setting``, as ``--set`` gives them.
    resume : bool, optional
        Goes on with the run stored in `home`, with its options where none are given here. Default: False.
    watch : callable, optional
        Called some twenty times a second as ``watch(state)``, with the state of the run as the manager knows it.
    drive : callable, optional
        Called as ``drive(state, launcher)`` in place of `watch`. It can act: ``launcher.inject`` causes a fault or a
        switch, ``launcher.finish`` ends the run.
    **options
        Other fields of ``understudy.model.run.RunSpec``, or short names of configured values
        (``understudy.model.run.SHORT``), such as ``scheme="active_standby"``. Epochs are cut as fast as they are
        processed unless ``fast=False`` is given.

    Returns
    -------
    Report
        What ``understudy run --report`` writes; ``docs/report.md`` describes every field.

    Raises
    ------
    UnderstudyError
        If the application, a fault or an option is wrong, or the run cannot start.

    Examples
    --------
    A run with a killed node delivers the same rows as one without. (The example needs Spark, so it is not run with the
    other examples.)

    >>> clean = run("app.py", tmp_path / "a", epochs=20)  # doctest: +SKIP
    >>> faulty = run("app.py", tmp_path / "b", epochs=20, faults=["kill:node-2@epoch8"])  # doctest: +SKIP
    >>> faulty.verdict, faulty.sinks["out"].digest == clean.sinks["out"].digest  # doctest: +SKIP
    ('exact', True)
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
