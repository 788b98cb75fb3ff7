"""Least loaded: the host that carries least, whoever it stands by for.

It keeps the cluster level while nothing fails. Hosts that fill up in turns become pairs, though, and then all work of a
dead host falls on its partner.
"""

from __future__ import annotations

from understudy.control.placement.question import Question, first, least


def choose(question: Question) -> int:
    return first(least(question.able, question.load))
