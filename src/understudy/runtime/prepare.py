"""What happens to a home directory before a run starts or goes on, and what is refused before anything is written."""

from __future__ import annotations

import importlib.metadata
import shutil
import socket
from collections.abc import Sequence
from functools import cache
from typing import Any

from understudy.checkpoints import file_store
from understudy.checkpoints import registry as stores
from understudy.checkpoints.place import URL as CHECKPOINTS
from understudy.control import scaling
from understudy.control.placement import named
from understudy.coordination.sqlite import SqliteStore
from understudy.errors import InvalidInput, Unavailable
from understudy.log import file_log, registry
from understudy.log.disk import sweep
from understudy.log.place import URL
from understudy.model import address, fingerprint
from understudy.model.faults import MANAGER, Fault, FaultKind, domain_name
from understudy.model.recovery import ACTIVE
from understudy.model.run import RunSpec
from understudy.model.topology import Topology
from understudy.runtime.home import Home
from understudy.stream.settings import FIXED


def versions() -> dict[str, str]:
    """Of the programs that write state and bags."""
    return {"Spark": _version("pyspark"), "understudy": _version("understudy")}


@cache
def _version(package: str) -> str:
    """Read once: it is looked for in every directory of the path, and the package's whole description is parsed."""
    return importlib.metadata.version(package)


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
    _check_plan(spec, topology)
    registry.check(spec.config.log.url)
    stores.check(spec.config.checkpoints.url)
    check_switches(faults, [f"{op.name}[{index}]" for op in topology.operators for index in range(op.slices)])


def _check_config(spec: RunSpec) -> None:
    """What no value says by itself; each was checked where it was given."""
    named(spec.config.cluster.placement)
    scaling.check(spec.config.scaling)
    overload = spec.config.overload
    if overload.caught_up_epochs >= overload.behind_epochs:
        raise InvalidInput(
            f"overload.caught_up_epochs = {overload.caught_up_epochs} with behind_epochs = {overload.behind_epochs}",
            why="secondaries would stop and go on at the same lag of their primaries, without end",
            fix="make caught_up_epochs the smaller one",
        )
    if spec.config.plan.scheme not in ACTIVE:
        raise InvalidInput(
            f"plan.scheme = {spec.config.plan.scheme}",
            why="a planned slice has a secondary that works",
            fix=f"give one of {', '.join(sorted(ACTIVE))}",
        )
    fixed = sorted(FIXED & spec.config.jvm.spark.keys())
    if fixed:
        raise InvalidInput(
            f"jvm.spark sets {', '.join(fixed)}",
            why="understudy sets it itself: exact replays and shipped checkpoints depend on it",
            fix="leave it out; docs/configuration.md tells what can be configured",
        )


def _check_targets(spec: RunSpec, faults: Sequence[Fault]) -> None:
    known = {MANAGER, *(f"node-{number + 1}" for number in range(spec.config.cluster.all_nodes))}
    known |= {domain_name(number) for number in range(spec.domains)}
    for fault in faults:
        node = fault.node or fault.target
        if fault.kind is not FaultKind.SWITCH and node not in known and not spec.replace:
            raise InvalidInput(
                f"--fault {fault.spec}: there is no {node}",
                why=f"this run has {', '.join(sorted(known))}",
                fix="name one of them",
            )


def _check_plan(spec: RunSpec, topology: Topology) -> None:
    """A plan names slices of the topology, and not more of them than its budget."""
    if spec.plan is None:
        return
    tasks = [f"{entry.name}[{index}]" for entry in topology.streams.values() for index in range(entry.slices)]
    unknown = [name for name in spec.plan if name not in tasks]
    if unknown:
        raise InvalidInput(
            f"the plan names {', '.join(unknown)}",
            why="that is no slice of a source or an operator of this topology",
            fix=f"name some of {', '.join(tasks)}",
        )
    budget = spec.config.plan.budget
    if budget is not None and len(spec.plan) > budget:
        raise InvalidInput(
            f"--budget {budget} with a plan that names {len(spec.plan)} slices",
            why="both say how many slices have working secondaries",
            fix="give one of the two",
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
        _check_all_same(store, spec, topology)
        home.create()
        shutil.rmtree(home.nodes, ignore_errors=True)
        shutil.rmtree(home.path / "branches", ignore_errors=True)
        where = address.parse(spec.config.log.url, URL)
        if where.scheme == "file":
            sweep(file_log.root_of(where, home.log, spec.id))
        kept = address.parse(spec.config.checkpoints.url, CHECKPOINTS)
        if kept.scheme == "file":
            sweep(file_store.root_of(kept, home.path / "checkpoints", spec.id))
        facts: dict[str, Any] = {
            "phase": "gathering",
            "goal": spec.epochs,
            "failure": None,
            "replacements": 0,
            "lost": {},
            "lost_together": {},
            "replica_plan": _kept_plan(store, spec),
            "branch": None,
            "rebalance": None,
            "grown": 0,
            "retiring": [],
            "scaled_at": None,
        }
        store.keep({"run": spec.model_dump(), **facts})
        for assignment in store.assignments():
            # No node carries this name, so every slice is placed anew, under a higher generation.
            store.assign(assignment.rested())
    finally:
        store.close()


def check_same(home: Home, spec: RunSpec, topology: Topology) -> None:
    """Raises where `reopen` would, and changes nothing."""
    store = SqliteStore(home.database)
    try:
        _check_all_same(store, spec, topology)
    finally:
        store.close()


def _check_all_same(store: SqliteStore, spec: RunSpec, topology: Topology) -> None:
    _check_same(store, topology)
    _check_same_log(store, spec)
    _check_same_checkpoints(store, spec)


def _kept_plan(store: SqliteStore, spec: RunSpec) -> dict[str, Any] | None:
    """The plan in force, unless the run goes on with another budget, scheme or list of slices."""
    plan, before = store.fact("replica_plan"), store.fact("run")
    if plan is None or before is None:
        return None
    asked = RunSpec(**before)
    same = (asked.plan, asked.config.plan) == (spec.plan, spec.config.plan)
    return {**plan, "age_s": 0.0} if same else None


def _check_same_log(store: SqliteStore, spec: RunSpec) -> None:
    """Brokers and options may change; what was published stays where it is."""
    before = address.parse(RunSpec(**store.fact("run")).config.log.url, URL)
    now = address.parse(spec.config.log.url, URL)
    if (before.scheme, before.name) != (now.scheme, now.name):
        raise InvalidInput(
            f"{URL} is '{now}', and the run began with '{before}'",
            why="what it published is there, and the run goes on from it",
            fix=f"leave {URL} out, or start a new run in another --home",
        )


def _check_same_checkpoints(store: SqliteStore, spec: RunSpec) -> None:
    """Options may change; what was shipped stays where it is."""
    before = address.parse(RunSpec(**store.fact("run")).config.checkpoints.url, CHECKPOINTS)
    now = address.parse(spec.config.checkpoints.url, CHECKPOINTS)
    if (before.scheme, before.hosts, before.name) != (now.scheme, now.hosts, now.name):
        raise InvalidInput(
            f"{CHECKPOINTS} is '{now}', and the run began with '{before}'",
            why="what it shipped is there, and the run goes on from it",
            fix=f"leave {CHECKPOINTS} out, or start a new run in another --home",
        )


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
