"""Chained (Martin 2015, §6.2.4): all secondaries of a host are on the next one, in a ring of all hosts.

Two hosts hold what one of them may lose, so the loss of two hosts stops a slice only if they are neighbours. The price
is that the neighbour of a dead host takes over all its work.
"""

from __future__ import annotations

import numpy as np

from understudy.control.placement.question import Question


def choose(question: Question) -> int:
    able = np.flatnonzero(question.able)
    after = able[able > question.home]
    return int(after[0] if after.size else able[0])
