"""Sequences of events by their definition: every match is looked for among all events, with no state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from tests.oracles.rows import Epochs, Row
from tests.oracles.windows import late, watermarks

Condition = Callable[..., bool]
"""Whether the last of these events can follow the others."""


def matches(
    events: Sequence[tuple[Any, int, Row]], conditions: Sequence[tuple[int, Condition]], within: Any
) -> list[tuple[Row, ...]]:
    """Every match among events, which are (time, stream, row).

    `conditions` are (stream, condition) for every step. Events of one time are taken in the order in which they stand.
    """
    ordered = sorted(events, key=lambda event: event[0])
    found = []
    for first in ordered:
        chain = [first] if first[1] == conditions[0][0] and conditions[0][1](first[2]) else []
        while chain and len(chain) < len(conditions):
            stream, condition = conditions[len(chain)]
            rows = [row for _, _, row in chain]
            fitting = (
                event
                for event in ordered
                if event[1] == stream
                and chain[-1][0] < event[0]
                and event[0] - first[0] <= within
                and condition(*rows, event[2])
            )
            following = next(fitting, None)
            chain = [*chain, following] if following is not None else []
        if chain:
            found.append(tuple(row for _, _, row in chain))
    return found


def emitted(
    streams: Sequence[Epochs], conditions: Sequence[tuple[int, Condition]], within: timedelta, delay: timedelta
) -> list[list[tuple[Row, ...]]]:
    """The matches of every epoch: each when the watermark has passed its last event."""
    marks = watermarks(*((epochs, delay) for epochs in streams))
    events = [
        (row["at"], stream, row)
        for stream, epochs in enumerate(streams)
        for epoch, rows in enumerate(epochs)
        for row in rows
        if row["at"] > late(marks, epoch)
    ]
    found: list[list[tuple[Row, ...]]] = [[] for _ in marks]
    for match in matches(events, conditions, within):
        epoch = next((epoch for epoch, mark in enumerate(marks) if mark >= match[-1]["at"]), None)
        if epoch is not None:
            found[epoch].append(match)
    return found
