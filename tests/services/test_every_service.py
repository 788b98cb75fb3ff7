"""What holds for every service."""

from __future__ import annotations

import psutil
import pytest

from understudy.testing.services import SERVICES, Service, ZooKeeper
from understudy.testing.services.fixtures import require
from understudy.testing.services.ports import is_open


def _port(service: Service) -> int:
    return int(service.address.split("/")[2 if "//" in service.address else 0].rsplit(":", 1)[1])


@pytest.fixture(params=list(SERVICES))
def service(request: pytest.FixtureRequest) -> Service:
    found: Service = request.getfixturevalue(request.param)
    return found


def test_a_frozen_service_runs_no_further_until_it_is_thawed(service: Service) -> None:
    service.freeze()
    try:
        assert {process.status() for process in service.processes} == {psutil.STATUS_STOPPED}
        assert service.alive
    finally:
        service.thaw()
    assert psutil.STATUS_STOPPED not in {process.status() for process in service.processes}


def test_it_stops_without_leftovers_and_comes_back_on_its_port(service: Service) -> None:
    address, before = service.address, service.processes
    service.stop()
    assert not service.alive
    assert not any(_runs(process) for process in before)
    assert not is_open(_port(service))
    assert service.restart() == address
    assert service.alive
    assert is_open(_port(service))


def test_as_a_context_manager_it_leaves_nothing_behind() -> None:
    require(ZooKeeper)
    with ZooKeeper() as service:
        processes, directory = service.processes, service.directory
        assert len(processes) == 1
        assert directory.exists()
    assert not any(_runs(process) for process in processes)
    assert not is_open(_port(service))
    assert not directory.exists()


def _runs(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
