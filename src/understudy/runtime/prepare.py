"""What happens to a home directory before a run starts or goes on, and what is refused before anything is written."""

from __future__ import annotations

import importlib.metadata
import shutil
import socket
from collections.abc import Sequence
from typing import Any

from understudy.coordination.sqlite import SqliteStore
from understudy.errors import InvalidInput, Unavailable
from understudy.log.disk import sweep
from understudy.model import fingerprint
from understudy.model.faults import MANAGER, Fault, FaultKind
from understudy.model.run import RunSpec
from understudy.model.topology import Topology
from understudy.runtime.home import Home
from understudy.stream.settings import FIXED


def versions() -> dict[str, str]:
    """Of the programs that write state and bags."""
    return {"Spark": importlib.metadata.version("pyspark"), "understudy": importlib.metadata.version("understudy")}


def check(spec: RunSpec, topology: Topology, faults: Sequence[Fault]) -> None:
    """What can be known to go wrong from the options and the topology alone."""
    if spec.epochs is not None and spec.for_s is not None:
        raise InvalidInput(
            f"--epochs {spec.epochs} with --for {spec.for_s:g}s",
            why="both say when the run ends",
            fix="give one of the two",
        )
    if spec.domains > spec.nodes:
        raise InvalidInput(
            f"--domains {spec.domains} with --nodes {spec.nodes}",
            why="every failure domain needs a node",
            fix=f"give --domains {spec.nodes} or fewer, or more --nodes",
        )
    _check_config(spec)
    _check_targets(spec, faults)
    check_switches(faults, [f"{op.name}[{index}]" for op in topology.operators for index in range(op.slices)])


def _check_config(spec: RunSpec) -> None:
    """What no value says by itself; each was checked where it was given."""
    overload = spec.config.overload
    if overload.caught_up_epochs >= overload.behind_epochs:
        raise InvalidInput(
            f"overload.caught_up_epochs = {overload.caught_up_epochs} with behind_epochs = {overload.behind_epochs}",
            why="secondaries would stop and go on at the same lag of their primaries, without end",
            fix="make caught_up_epochs the smaller one",
        )
    fixed = sorted(FIXED & spec.config.jvm.spark.keys())
    if fixed:
        raise InvalidInput(
            f"jvm.spark sets {', '.join(fixed)}",
            why="understudy sets it itself: exact replays and shipped checkpoints depend on it",
            fix="leave it out; docs/configuration.md tells what can be configured",
        )


def _check_targets(spec: RunSpec, faults: Sequence[Fault]) -> None:
    known = {MANAGER, *(f"node-{number + 1}" for number in range(spec.nodes))}
    for fault in faults:
        if fault.kind is not FaultKind.SWITCH and fault.target not in known and not spec.replace:
            raise InvalidInput(
                f"--fault {fault.spec}: there is no {fault.target}",
                why=f"this run has {', '.join(sorted(known))}",
                fix="name one of them",
            )


def check_switches(faults: Sequence[Fault], slices: Sequence[str]) -> None:
    """Refuses a switch of something that is no slice of an operator."""
    for fault in faults:
        if fault.kind is FaultKind.SWITCH and fault.target not in slices:
            raise InvalidInput(
                f"--fault {fault.spec}: {fault.target} cannot be switched",
                why="only slices of operators that run by themselves have a scheme",
                fix=f"name one of {', '.join(slices) or 'none: this topology has no operators'}",
            )


def check_port(port: int, host: str = "127.0.0.1") -> None:
    """Refuses a port that cannot be listened at; 0 is any free one."""
    if not port:
        return
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise Unavailable(
                f"port {port} cannot be used", why=str(error), fix="give another --port, or 0 for any free one"
            ) from None


def prepare(home: Home, spec: RunSpec) -> None:
    """Writes down what a new run was asked to do."""
    home.create()
    store = SqliteStore(home.database)
    store.keep({"run": spec.model_dump(), "goal": spec.epochs})
    store.close()


def reopen(home: Home, spec: RunSpec, topology: Topology) -> None:
    """Makes a home ready to go on in: whatever hosted its slices is gone, everything published stays.

    Raises, before anything is changed, where the application is not the one the run began with.
    """
    store = SqliteStore(home.database)
    try:
        _check_same(store, topology)
        home.create()
        shutil.rmtree(home.nodes, ignore_errors=True)
        sweep(home.log)
        sweep(home.path / "checkpoints")
        facts: dict[str, Any] = {
            "phase": "gathering",
            "goal": spec.epochs,
            "failure": None,
            "replacements": 0,
            "lost": {},
        }
        store.keep({"run": spec.model_dump(), **facts})
        for assignment in store.assignments():
            # No node carries this name, so every slice is placed anew, under a higher generation.
            store.assign(assignment.rested())
    finally:
        store.close()


def _check_same(store: SqliteStore, topology: Topology) -> None:
    """A run whose data never flowed has no fingerprint, and may go on with any application."""
    before = store.fact("fingerprint")
    if before is None and store.fact("operators") is None:
        return
    if before is None:
        raise InvalidInput(
            "there is no record of the application this run began with",
            why="an older version of understudy began it",
            fix="go on with that version, or start a new run in another --home",
        )
    now = fingerprint.of_application(topology, versions())
    found = fingerprint.differences(before, now)
    if found:
        raise fingerprint.refuse(found)
