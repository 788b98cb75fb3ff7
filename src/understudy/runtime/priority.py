"""A node that starts beside working ones lets them go first: a JVM's start would take a core for seconds."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

BEHIND = 19
LONGEST_S = 60.0
"""On a machine that is always full whoever stands behind would never come up."""
AUTOGROUP = Path("/proc/self/autogroup")


def step_back(longest_s: float = LONGEST_S) -> Callable[[], None]:
    """For this process and all it starts. Returns how to step up again, which happens by itself after a while."""
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    stand = partial(_stand, returns=_may_return_to(nice))
    step_up = partial(stand, nice=nice, session=0)
    stand(nice=BEHIND, session=BEHIND)
    patience = threading.Timer(longest_s, step_up)
    patience.daemon = True
    patience.start()

    def ready() -> None:
        patience.cancel()
        step_up()

    return ready


def _may_return_to(nice: int) -> bool:
    """A niceness that was raised is lowered again by the privileged only, and root in a container often is not.

    Only trying tells: a step ahead of where this process stands, and at once back.
    """
    try:
        os.setpriority(os.PRIO_PROCESS, 0, nice - 1)
    except OSError:
        return False
    os.setpriority(os.PRIO_PROCESS, 0, nice)
    return True


def _stand(*, nice: int, session: int, returns: bool) -> None:
    """Linux shares the CPU among sessions first, where it groups by them, and by niceness only within one.

    Anybody may change the share of a session. What this process shares with others, a script's process group or the
    session of the shell it was started from, stays as it is.
    """
    if returns and os.getpgrp() == os.getpid():
        os.setpriority(os.PRIO_PGRP, 0, nice)
    if os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError):
            AUTOGROUP.write_text(str(session))
