"""Who gives away input: only the primary, and only what it is done with."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.builders import COUNTS
from tests.checkpoints import FakeQuery
from tests.simulated.cluster import Cluster
from tests.snapshots import replica

from understudy.checkpoints.file_store import Store
from understudy.checkpoints.interface import Checkpoint, Shipped, Watermarks
from understudy.checkpoints.spark_files import committed
from understudy.control.replica.shipping import Stage, acknowledges_at_once, after, first_stage, is_due
from understudy.errors import UnderstudyError
from understudy.log.disk import Disk
from understudy.log.file_log import FileLog
from understudy.model.config import DEFAULTS, ShippingSection
from understudy.model.messages import Deploy
from understudy.model.names import SliceId
from understudy.model.page import Health
from understudy.model.view import NodeState, SliceState
from understudy.reporting.health import judge
from understudy.stream.failures import describe
from understudy.stream.live_status import LiveStatus
from understudy.stream.shipper import Shipment, Shipper

LINES = SliceId.parse("lines[0]")


class FakeGated:
    """A query that commits a batch to its directory some time before its gate knows of it."""

    def __init__(self, directory: Path) -> None:
        self.directory, self._asked = directory, 0

    def await_committed(self, epoch: int, millis: int) -> bool:
        self._asked += 1
        return epoch <= 3 or self._asked > 2

    def checkpoint(self) -> Checkpoint | None:
        return committed(self.directory)

    def watermarks(self, epoch: int) -> Watermarks:
        assert self.await_committed(epoch, 0), "nobody knows them yet"
        return (epoch * 1000, None)


def a_replica(
    tmp_path: Path,
    deploy: Deploy,
    query: Any = None,
    now: Callable[[], float] = lambda: 0.0,
    limits: ShippingSection = DEFAULTS.shipping,
) -> Any:
    """As much of a replica as a shipper needs."""
    log = FileLog(tmp_path / "log", Disk())
    layout = SimpleNamespace(readers=lambda _: ())
    context = SimpleNamespace(
        log=log,
        layout=layout,
        clock=now,
        released=lambda _: -1,
        edge=SimpleNamespace(signal=threading.Event),
        shipping=limits,
    )
    return SimpleNamespace(
        slice=COUNTS,
        store=Store(tmp_path / "shipped", COUNTS, Disk()),
        deploy=deploy,
        context=context,
        vertex=SimpleNamespace(stateful=True),
        queries=SimpleNamespace(current=query, shipped=Shipped()),
        outbox=SimpleNamespace(fenced=False),
        inputs=SimpleNamespace(upstream=(LINES,)),
        live=LiveStatus(deploy, -1, now, now),
        changed=lambda: None,
    )


def acknowledged_by(tmp_path: Path, deploy: Deploy) -> int:
    """The input a replica has given away after it published epoch 7."""
    replica = a_replica(tmp_path, deploy)
    shipper = Shipper(replica)
    shipper._wanted = True
    shipper.published(7, first=True)
    return int(replica.context.log.acknowledged(COUNTS, LINES))


def test_a_primary_that_keeps_nothing_gives_its_input_away_at_once(tmp_path: Path) -> None:
    assert acknowledged_by(tmp_path, Deploy(slice=COUNTS, generation=1, ship_every=0)) == 7


@pytest.mark.parametrize("ship_every", [0, 1])
def test_a_secondary_never_does(ship_every: int, tmp_path: Path) -> None:
    """Also not when it no longer stands in and finishes what it had begun: its primary may still be reading it."""
    deploy = Deploy(slice=COUNTS, generation=2, primary=False, ship_every=ship_every)
    assert acknowledged_by(tmp_path, deploy) == -1


def test_a_primary_that_ships_waits_until_it_has(tmp_path: Path) -> None:
    assert acknowledged_by(tmp_path, Deploy(slice=COUNTS, generation=1, ship_every=1)) == -1


@pytest.mark.parametrize(("primary", "ship_every", "at_once"), [(True, 0, True), (True, 1, False), (False, 0, False)])
def test_only_a_primary_that_keeps_nothing_may_acknowledge_at_once(
    primary: bool, ship_every: int, at_once: bool
) -> None:
    asked = Deploy(slice=COUNTS, generation=1, primary=primary, ship_every=ship_every)
    assert acknowledges_at_once(asked) is at_once


# -- when a shipment is due, and in which order it goes


@pytest.mark.parametrize(
    ("deploy", "first", "due"),
    [
        (Deploy(slice=COUNTS, generation=1, ship_every=5), False, True),
        (Deploy(slice=COUNTS, generation=1, ship_every=4), True, False),
        (Deploy(slice=COUNTS, generation=1, ship_every=0), True, True),
        (Deploy(slice=COUNTS, generation=2, primary=False, ship_every=1), True, True),
        (Deploy(slice=COUNTS, generation=2, primary=False, ship_every=1), False, False),
        (Deploy(slice=COUNTS, generation=2, primary=False, ship_every=0), True, False),
    ],
)
def test_when_a_shipment_is_due(deploy: Deploy, first: bool, due: bool) -> None:
    assert is_due(9, deploy, first=first) is due


def stages(**seen: Any) -> list[Stage]:
    """What a shipment of epoch 5 goes through."""
    usual: dict[str, Any] = {"ships": True, "epoch": 5, "fenced": False, "newest_shipped": 4}
    view: Any = SimpleNamespace(**(usual | seen))
    found: list[Stage] = []
    stage: Stage | None = first_stage(view)
    while stage is not None:
        found.append(stage)
        stage = after(stage, view)
    return found


def test_the_order_of_a_shipment() -> None:
    assert stages() == list(Stage)
    assert stages(ships=False) == [Stage.TRIM]
    assert stages(fenced=True) == [Stage.COMMIT, Stage.TRIM], "a newer replica has taken over"
    without = [stage for stage in Stage if stage is not Stage.SHIP]
    assert stages(newest_shipped=5) == without, "another replica has shipped this already"


# -- shipping that fails


class Failing:
    """A shipper whose shipments fail while `broken`; time is a number."""

    def __init__(self, tmp_path: Path, shipped_to: int = 4, limits: ShippingSection = DEFAULTS.shipping) -> None:
        self.now, self.broken = 0.0, True
        self.given_up: list[UnderstudyError] = []
        deploy = Deploy(slice=COUNTS, generation=1, ship_every=5)
        self.replica = a_replica(tmp_path, deploy, now=lambda: self.now, limits=limits)
        self.replica.live.update(shipped_to=shipped_to)
        self.replica.give_up = self.given_up.append
        self.shipper = Shipper(self.replica)
        self.shipper._pass = self._pass  # type: ignore[method-assign]

    def _pass(self, shipment: Shipment, stage: Stage) -> bool:
        if self.broken:
            raise PermissionError("checkpoints is read-only")
        return True

    def try_for(self, seconds: float, every_s: float = 5.0) -> None:
        for _ in range(round(seconds / every_s)):
            self.shipper._shipment = Shipment(self.replica, 9)
            while self.shipper._shipment is not None:
                self.shipper._attempt(self.shipper._shipment)
            self.now += every_s

    def told(self) -> tuple[int, str | None]:
        status = self.replica.live.picture()
        return status.ship_failures, status.ship_error


def test_failed_shipments_are_counted_until_one_works(tmp_path: Path) -> None:
    failing = Failing(tmp_path)
    failing.try_for(15.0)
    assert failing.told() == (3, "PermissionError: checkpoints is read-only")
    failing.broken = False
    failing.try_for(5.0)
    assert failing.told() == (0, None)
    assert failing.given_up == []


@pytest.mark.parametrize(("shipped_to", "final"), [(4, False), (-1, True)])
def test_a_replica_that_cannot_ship_for_a_minute_fails_with_the_reason(
    tmp_path: Path, shipped_to: int, final: bool
) -> None:
    failing = Failing(tmp_path, shipped_to)
    failing.try_for(60.0)
    assert failing.given_up == []
    failing.try_for(5.0)
    (error,) = failing.given_up
    found = describe(error, COUNTS)
    assert found.final is final, "a replica that never could would fail again"
    assert "could not be shipped, 13 times in 60 s" in found.what
    assert "read-only" in found.why


def test_how_long_it_may_fail_is_configured(tmp_path: Path) -> None:
    failing = Failing(tmp_path, limits=ShippingSection(max_failures=2, failing_s=5.0))
    failing.try_for(10.0)
    assert len(failing.given_up) == 1


def test_many_quick_failures_are_not_enough(tmp_path: Path) -> None:
    failing = Failing(tmp_path)
    failing.try_for(10.0, every_s=0.1)
    assert failing.given_up == []


def test_few_failures_are_not_enough_however_long_they_take(tmp_path: Path) -> None:
    failing = Failing(tmp_path)
    failing.try_for(160.0, every_s=40.0)
    assert failing.given_up == []


def test_the_manager_notes_once_that_shipping_fails_and_that_it_works_again(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.until(lambda: cluster.delivered > 2)
    hosted = next(node.replicas[COUNTS] for node in cluster.nodes.values() if COUNTS in node.replicas)
    hosted.live.update(ship_failures=1, ship_error="no")
    cluster.steps(1.0)
    hosted.live.update(ship_failures=0, ship_error=None, shipped_to=9)
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
    deploy = Deploy(slice=COUNTS, generation=1, ship_every=1)
    replica = a_replica(tmp_path, deploy, FakeGated(tmp_path / "local"))
    shipper, shipment = Shipper(replica), Shipment(replica, 3)
    while not shipper._pass(shipment, Stage.COMMIT):
        pass
    shipper._pass(shipment, Stage.SHIP)
    (marker,) = replica.store.markers()
    assert (marker.epoch, marker.watermarks) == (4, (4000, None))
