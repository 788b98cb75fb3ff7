"""Something that happened."""

from __future__ import annotations

from typing import Any

from understudy.model.run import Frozen


class Event(Frozen):
    """In words and in fields; `cause` is the number of the event that led to it."""

    number: int
    at: float
    kind: str
    text: str
    fields: dict[str, Any]
    cause: int | None = None
