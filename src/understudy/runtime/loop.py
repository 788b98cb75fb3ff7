"""The manager's loop: one tick after the other, whatever happens in one of them."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from typing import Protocol

from understudy.model.messages import Failure
from understudy.runtime.clock import TICK_S
from understudy.runtime.manager import Manager

logger = logging.getLogger(__name__)


class TickMeter(Protocol):
    """Is told when a tick begins and when it ends."""

    def begin(self) -> None: ...

    def end(self) -> None: ...


async def tick_forever(manager: Manager, meter: TickMeter) -> None:
    """Ticks until it is cancelled. A disk that cannot be written ends the run; any other error ends only its tick."""
    while True:
        meter.begin()
        try:
            manager.tick()
        except (OSError, sqlite3.OperationalError) as error:
            logger.exception("the manager cannot write")
            manager.fail(
                Failure(
                    what="the manager cannot write to its home directory",
                    why=str(error),
                    fix="free some space or mend the disk, then continue with --resume; nothing published is lost",
                )
            )
        except Exception:
            logger.exception("a tick failed; the next one starts from what is there")
        meter.end()
        await asyncio.sleep(TICK_S)
