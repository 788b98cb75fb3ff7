"""Interleaved (Martin 2015, §6.2.4): a dead host's work falls on all the others in equal parts.

The host that would take over least from this home receives next. So the largest and the smallest share differ by at
most one slice, in whatever order the slices come. Among equals the host with the least load wins, which keeps the whole
cluster level.
"""

from __future__ import annotations

from understudy.control.placement.question import Question, first, least


def choose(question: Question) -> int:
    level = least(question.able, question.share)
    return first(least(level, question.load))
