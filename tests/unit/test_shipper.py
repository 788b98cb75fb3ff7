"""Who gives away input: only the primary, and only what it is done with."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.builders import COUNTS
from tests.checkpoints import FakeQuery
from tests.sim import Cluster
from tests.snapshots import replica

from understudy.checkpoints.file_store import Shipped, Store
from understudy.checkpoints.spark_files import Watermarks
from understudy.errors import UnderstudyError
from understudy.log.disk import Disk
from understudy.log.file_log import FileLog
from understudy.model.config import DEFAULTS, ShippingSection
from understudy.model.messages import Deploy
from understudy.model.names import SliceId
from understudy.model.page import Health
from understudy.model.view import NodeState, SliceState
from understudy.reporting.health import judge
from understudy.stream.replica import describe
from understudy.stream.shipper import Shipper

LINES = SliceId.parse("lines[0]")


class FakeGated:
    """A query that commits a batch to its directory some time before its gate knows of it."""

    def __init__(self, directory: Path) -> None:
        self.directory, self._asked = directory, 0

    def await_committed(self, epoch: int, millis: int) -> bool:
        self._asked += 1
        return epoch <= 3 or self._asked > 2

    def watermarks(self, epoch: int) -> Watermarks:
        assert self.await_committed(epoch, 0), "nobody knows them yet"
        return (epoch * 1000, None)


def acknowledged_by(tmp_path: Path, deploy: Deploy) -> int:
    """The input a replica has given away after it published epoch 7."""
    log = FileLog(tmp_path / "log", Disk())
    replica: Any = SimpleNamespace(
        slice=COUNTS,
        store=None,
        deploy=deploy,
        channels=[SimpleNamespace(upstream=LINES)],
        site=SimpleNamespace(log=log),
    )
    Shipper(replica).published(7)
    return log.acknowledged(COUNTS, LINES)


def test_a_primary_that_keeps_nothing_gives_its_input_away_at_once(tmp_path: Path) -> None:
    assert acknowledged_by(tmp_path, Deploy(slice=str(COUNTS), generation=1, ship_every=0)) == 7


@pytest.mark.parametrize("ship_every", [0, 1])
def test_a_secondary_never_does(ship_every: int, tmp_path: Path) -> None:
    """Also not when it was told to sleep again and finishes what it had begun: its primary may still be reading it."""
    deploy = Deploy(slice=str(COUNTS), generation=2, primary=False, ship_every=ship_every)
    assert acknowledged_by(tmp_path, deploy) == -1


def test_a_primary_that_ships_waits_until_it_has(tmp_path: Path) -> None:
    assert acknowledged_by(tmp_path, Deploy(slice=str(COUNTS), generation=1, ship_every=1)) == -1


# -- shipping that fails


class Failing:
    """A shipper whose shipments fail while `broken`; time is a number."""

    def __init__(self, limits: ShippingSection = DEFAULTS.shipping) -> None:
        self.now, self.broken = 0.0, True
        self.given_up: list[UnderstudyError] = []
        self.status = replica(COUNTS, shipped_to=4)
        made: Any = SimpleNamespace(
            store=None,
            deploy=Deploy(slice=str(COUNTS), generation=1, ship_every=5),
            status=lambda: self.status,
            update=self._update,
            give_up=self.given_up.append,
        )
        self.shipper = Shipper(made, lambda: self.now, limits)
        self.shipper._ship = self._ship  # type: ignore[method-assign]
        self.shipper._trim = lambda: None  # type: ignore[method-assign]

    def _update(self, **changes: Any) -> None:
        self.status = self.status.model_copy(update=changes)

    def _ship(self, epoch: int) -> None:
        if self.broken:
            raise PermissionError("checkpoints is read-only")

    def try_for(self, seconds: float, every_s: float = 5.0) -> None:
        for _ in range(round(seconds / every_s)):
            self.shipper._attempt(9)
            self.now += every_s


def test_failed_shipments_are_counted_until_one_works() -> None:
    failing = Failing()
    failing.try_for(15.0)
    assert (failing.status.ship_failures, failing.status.ship_error) == (3, "PermissionError: checkpoints is read-only")
    failing.broken = False
    failing.try_for(5.0)
    assert (failing.status.ship_failures, failing.status.ship_error) == (0, None)
    assert failing.given_up == []


@pytest.mark.parametrize(("shipped_to", "final"), [(4, False), (-1, True)])
def test_a_replica_that_cannot_ship_for_a_minute_fails_with_the_reason(shipped_to: int, final: bool) -> None:
    failing = Failing()
    failing.status = replica(COUNTS, shipped_to=shipped_to)
    failing.try_for(60.0)
    assert failing.given_up == []
    failing.try_for(5.0)
    (error,) = failing.given_up
    found = describe(error, COUNTS)
    assert found.final is final, "a replica that never could would fail again"
    assert "could not be shipped, 13 times in 60 s" in found.what
    assert "read-only" in found.why


def test_how_long_it_may_fail_is_configured() -> None:
    failing = Failing(ShippingSection(max_failures=2, failing_s=5.0))
    failing.try_for(10.0)
    assert len(failing.given_up) == 1


def test_many_quick_failures_are_not_enough() -> None:
    failing = Failing()
    failing.try_for(10.0, every_s=0.1)
    assert failing.given_up == []


def test_few_failures_are_not_enough_however_long_they_take() -> None:
    failing = Failing()
    failing.try_for(160.0, every_s=40.0)
    assert failing.given_up == []


def test_the_manager_notes_once_that_shipping_fails_and_that_it_works_again(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.until(lambda: cluster.delivered > 2)
    hosted = next(node.replicas[COUNTS] for node in cluster.nodes.values() if COUNTS in node.replicas)
    hosted.change(ship_failures=1, ship_error="no")
    cluster.steps(1.0)
    hosted.change(ship_failures=0, ship_error=None, shipped_to=9)
    cluster.steps(1.0)
    kinds = [event.kind for event in cluster.manager.events() if event.kind.startswith("ship")]
    assert kinds == ["ship_failed", "shipped_again"]


def test_the_slice_is_not_shown_as_healthy() -> None:
    scheme = "passive_replication"
    entry = SliceState(slice=str(COUNTS), kind="operator", scheme=scheme, protection=scheme, primary="node-1")
    own: dict[str, Any] = {"connected": True, "ready": True, "domain": "", "cpu_s": 0.0, "memory_bytes": 0}
    view = NodeState(name="node-1", pid=1, replicas=(), **own)
    health, why = judge(entry, replica(COUNTS, ship_failures=3, ship_error="no space"), view, True)
    assert (health, why) == (
        Health.DEGRADED,
        "works, but its checkpoint could not be shipped, 3 times in a row: no space",
    )


def test_the_watermarks_shipped_are_those_of_the_epoch_shipped(tmp_path: Path) -> None:
    """Epoch 3 is due; Spark has committed epoch 4 meanwhile, and that is what the checkpoint then holds."""
    FakeQuery(tmp_path / "local").run(5)
    store = Store(tmp_path / "shipped", COUNTS, Disk())
    replica: Any = SimpleNamespace(
        slice=COUNTS,
        store=store,
        query=FakeGated(tmp_path / "local"),
        vertex=SimpleNamespace(stateful=True),
        fenced=False,
        deploy=Deploy(slice=str(COUNTS), generation=1, ship_every=1),
        shipped=Shipped(),
        channels=[],
        site=SimpleNamespace(log=FileLog(tmp_path / "log", Disk()), released=lambda _: -1),
        status=lambda: SimpleNamespace(bytes_shipped=0),
        update=lambda **_: None,
    )
    Shipper(replica)._ship(3)
    (marker,) = store.markers()
    assert (marker.epoch, marker.watermarks) == (4, (4000, None))
