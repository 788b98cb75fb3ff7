"""A node that starts beside working ones lets them go first: a JVM's start would take a core for seconds."""

from __future__ import annotations

import os
import resource

BEHIND = 19


def step_back() -> None:
    """For this process and all it starts, if it will be allowed to step up again."""
    if os.geteuid() == 0 or resource.getrlimit(resource.RLIMIT_NICE)[0] >= 20:
        os.setpriority(os.PRIO_PGRP, 0, BEHIND)


def step_up() -> None:
    """Ready to work like everybody else, with all threads of all processes of this node."""
    if os.getpriority(os.PRIO_PROCESS, 0) == BEHIND:
        os.setpriority(os.PRIO_PGRP, 0, 0)
