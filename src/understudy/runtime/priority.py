"""A node that starts beside working ones lets them go first: a JVM's start would take a core for seconds."""

from __future__ import annotations

import contextlib
import os
import resource
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

BEHIND = 19
LONGEST_S = 60.0
"""On a machine that is always full whoever stands behind would never come up."""
AUTOGROUP = Path("/proc/self/autogroup")


def step_back(longest_s: float = LONGEST_S) -> Callable[[], None]:
    """For this process and all it starts; answers how to step up again, which happens by itself after a while."""
    step_up = partial(_stand, nice=os.getpriority(os.PRIO_PROCESS, 0), session=0)
    _stand(nice=BEHIND, session=BEHIND)
    patience = threading.Timer(longest_s, step_up)
    patience.daemon = True
    patience.start()

    def ready() -> None:
        patience.cancel()
        step_up()

    return ready


def _stand(*, nice: int, session: int) -> None:
    """Linux shares the CPU among sessions first, where it groups by them, and by niceness only within one.

    Anybody may change the share of a session; a niceness that was raised is lowered again by the privileged only.
    """
    if os.geteuid() == 0 or resource.getrlimit(resource.RLIMIT_NICE)[0] >= 20:
        os.setpriority(os.PRIO_PGRP, 0, nice)
    if os.getsid(0) == os.getpid():
        # Not the session of a shell this was started from by hand.
        with contextlib.suppress(OSError):
            AUTOGROUP.write_text(str(session))
