"""Who gives away input: only the primary, and only what it is done with."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.builders import COUNTS

from understudy.log.disk import Disk
from understudy.log.file_log import FileLog
from understudy.model.messages import Deploy
from understudy.model.names import SliceId
from understudy.stream.shipper import Shipper

LINES = SliceId.parse("lines[0]")


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
    deploy = Deploy(slice=str(COUNTS), generation=2, lead=False, ship_every=ship_every)
    assert acknowledged_by(tmp_path, deploy) == -1


def test_a_primary_that_ships_waits_until_it_has(tmp_path: Path) -> None:
    assert acknowledged_by(tmp_path, Deploy(slice=str(COUNTS), generation=1, ship_every=1)) == -1
