"""Checkpoints in a real S3 server: the promises of every store, a server that is away for a while, and races."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.builders import everything_in
from tests.checkpoint_contract import EVERYTHING, CheckpointContract, Replica
from tests.object_shelves import ObjectShelves
from understudy.checkpoints import registry
from understudy.checkpoints.interface import Shipped
from understudy.checkpoints.object_open import ObjectCheckpoints
from understudy.checkpoints.object_store import ObjectStore, Patience
from understudy.checkpoints.place import CheckpointsPlace
from understudy.clients import object_address
from understudy.errors import Away
from understudy.log.disk import Disk
from understudy.model.names import SliceId
from understudy.testing.services import S3
from understudy.testing.services.fixtures import require

SECRET = "hunter2-and-more"
SUMS = SliceId("sums", 0)


def bucket_on(s3: S3) -> str:
    name = f"bucket-{secrets.token_hex(4)}"
    s3.create_bucket(name)
    return name


class TestObjectStore(CheckpointContract):
    @pytest.fixture
    def shelves(self, s3: S3) -> Iterator[ObjectShelves]:
        from obstore.store import S3Store

        made = ObjectShelves(S3Store(**s3.options(bucket_on(s3))), workers=16)
        yield made
        made.close()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[S3]:
    """A server with nothing to remember, so that a restart is quick."""
    require(S3)
    with S3() as server:
        yield server


def address_on(s3: S3, tmp_path: Path) -> str:
    file = tmp_path / "s3.properties"
    file.write_text(f"access_key_id=app\nsecret_access_key={SECRET}\n")
    return f"s3://{bucket_on(s3)}/runs?endpoint={s3.address}&properties={file}"


@pytest.fixture
def url(s3: S3, tmp_path: Path) -> str:
    return address_on(s3, tmp_path)


def opened(url: str, tmp_path: Path) -> ObjectCheckpoints:
    found = registry.open_checkpoints(CheckpointsPlace(url, tmp_path / "home", "run-1", Disk()))
    assert isinstance(found, ObjectCheckpoints)
    return found


def test_a_store_that_can_be_used_is_accepted_and_nothing_is_left_there(s3: S3, url: str, tmp_path: Path) -> None:
    registry.check(url)
    checkpoints = opened(url, tmp_path)
    assert list(checkpoints._folder.names("")) == []
    checkpoints.close()


def test_a_bucket_that_is_not_there_is_said_so(url: str) -> None:
    wrong = url.replace(url.split("/")[2], "no-such-bucket")
    with pytest.raises(Away, match="s3://no-such-bucket/runs is not there"):
        registry.check(wrong)


def test_the_store_is_away_for_a_while_and_shipping_catches_up(
    own: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(object_address, "RETRY_S", 0.5)
    checkpoints = opened(address_on(own, tmp_path), tmp_path)

    class Shelf:
        def open(self) -> ObjectStore:
            return checkpoints.of(SUMS)

    shelves: Any = Shelf()
    primary = Replica(shelves, tmp_path / "a")
    primary.advance(2)
    assert primary.store.newest() == 1
    own.kill()
    primary.query.run(2)
    with pytest.raises(Away) as away:
        primary.ship()
    assert SECRET not in str(away.value)
    assert primary.store.newest() == 1
    with pytest.raises(Away):
        checkpoints.of(SUMS).pull(tmp_path / "b", Shipped(), -1)
    with ThreadPoolExecutor(1) as pool:
        restored = pool.submit(checkpoints.of(SUMS).restore, tmp_path / "c", None)
        own.restart()
        marker, _ = restored.result(120)
    assert marker is not None
    assert marker.epoch == 1
    assert primary.ship() > 0
    assert primary.store.newest(fresh=True) == 3
    assert primary.store.acknowledged(EVERYTHING) == 1
    assert checkpoints.of(SUMS).restore(tmp_path / "d", None)[0] is not None
    assert everything_in(tmp_path / "d") == primary.query.needed()
    assert SECRET not in caplog.text
    checkpoints.close()


def test_of_writers_of_one_head_all_are_heard(s3: S3, url: str, tmp_path: Path) -> None:
    """Each change is built on the one before: none is lost, however many write at once."""
    checkpoints, writers, epochs = opened(url, tmp_path), 4, 5

    def ship(writer: int) -> None:
        store = checkpoints.of(SUMS)
        for epoch in range(epochs):
            store.ship(None, epoch, writer + 1, Shipped())

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(ship, range(writers)))
    store = ObjectStore(checkpoints._folder, SUMS, Disk(), checkpoints._pools, Patience())
    head = store._heads.fresh()
    assert {(ref.epoch, ref.generation) for ref in head.markers} == {
        (epoch, writer + 1) for epoch in range(epochs) for writer in range(writers)
    }
    assert head.number == writers * epochs
    checkpoints.close()
