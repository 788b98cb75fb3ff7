"""A manager that dies between two instructions of a decision: whoever comes after it finishes the work."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.simulated.cluster import Cluster

from understudy.control.cluster.instructions import Instruction
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme

COUNTS = SliceId("counts", 0)


class Died(Exception):
    """The manager's process ended here."""


def die_after(cluster: Cluster, instructions: int) -> None:
    """The manager carries out so many more instructions and dies before the next one."""
    left, enactor = instructions, cluster.manager._enactor
    enact = enactor.enact

    def interrupted(instruction: Instruction) -> None:
        nonlocal left
        if left == 0:
            raise Died
        left -= 1
        enact(instruction)

    enactor.enact = interrupted


def dies(cluster: Cluster, seconds: float = 3.0) -> bool:
    """Lets time pass until the manager dies; False if it had nothing left to do."""
    try:
        cluster.steps(seconds)
    except Died:
        cluster.restart_manager()
        return True
    return False


def scheme_of(cluster: Cluster) -> Scheme:
    return next(a.scheme for a in cluster.store.assignments() if a.slice == COUNTS)


@pytest.mark.parametrize("scheme", [Scheme.PASSIVE_REPLICATION, Scheme.ACTIVE_STANDBY])
def test_a_loss_that_is_interrupted_anywhere_is_recovered_from(tmp_path: Path, scheme: Scheme) -> None:
    for instructions in range(40):
        home = tmp_path / str(instructions)
        home.mkdir()
        cluster = Cluster(home, scheme=scheme)
        cluster.until(lambda c=cluster: c.delivered > 2 and c.settled())  # type: ignore[misc]
        cluster.kill("node-1")
        die_after(cluster, instructions)
        died = dies(cluster)
        cluster.until(cluster.settled)
        delivered = cluster.delivered
        cluster.until(lambda c=cluster, d=delivered: c.delivered > d + 3)  # type: ignore[misc]
        assert all(assignment.node != "node-1" for assignment in cluster.store.assignments())
        if not died:
            assert instructions > 3, "more was to do than that"
            return
    raise AssertionError("there was no end of instructions")


def test_a_switch_that_is_interrupted_anywhere_is_carried_out(tmp_path: Path) -> None:
    for instructions in range(10):
        home = tmp_path / str(instructions)
        home.mkdir()
        cluster = Cluster(home)
        cluster.until(lambda c=cluster: c.delivered > 2 and c.settled())  # type: ignore[misc]
        die_after(cluster, instructions)
        cluster.manager.switch(COUNTS, Scheme.ACTIVE_STANDBY)
        died = dies(cluster)
        cluster.until(lambda c=cluster: scheme_of(c) is Scheme.ACTIVE_STANDBY and c.settled())  # type: ignore[misc]
        assert not cluster.manager.memory.decisions.requests
        if not died:
            return
    raise AssertionError("there was no end of instructions")


def test_a_request_survives_the_manager_that_accepted_it(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.until(lambda: cluster.delivered > 2)
    cluster.manager.switch(COUNTS, Scheme.DEPLOYED)
    cluster.restart_manager()
    cluster.until(lambda: scheme_of(cluster) is Scheme.DEPLOYED)
