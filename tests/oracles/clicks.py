"""What `examples/clicks` must deliver: visits as lists of views, cut where a user was away for too long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import chain

from tests.oracles.lines import Lines, iso
from tests.oracles.rows import Epochs, Row
from tests.oracles.windows import late, watermarks

GAP, DELAY = timedelta(minutes=3), timedelta(minutes=1)
FUNNEL = ("visit", "product", "cart", "checkout", "paid")


def reached(pages: list[str]) -> int:
    """How many stages are passed, each after the one before."""
    left = list(FUNNEL[1:])
    for page in pages:
        if left and page == left[0]:
            left.pop(0)
    return len(FUNNEL) - 1 - len(left)


def visits(views: list[Row]) -> list[list[Row]]:
    """The views of one user, divided where more than the gap lies between two."""
    found: list[list[Row]] = []
    for view in sorted(views, key=lambda view: (view["at"], view["page"])):
        if found and view["at"] - found[-1][-1]["at"] <= GAP:
            found[-1].append(view)
        else:
            found.append([view])
    return found


def line(visit: list[Row]) -> Row:
    return {
        "user": visit[0]["user"],
        "start": iso(visit[0]["at"]),
        "end": iso(visit[-1]["at"] + GAP),
        "views": len(visit),
        "reached": reached([view["page"] for view in visit]),
    }


def sessions(epochs: Epochs) -> Lines:
    """The visits that end in each epoch, of one slice: whose time the watermark of its own views has passed."""
    marks = watermarks((epochs, DELAY))
    open_views: dict[int, list[Row]] = {}
    found: Lines = []
    for epoch, views in enumerate(epochs):
        for view in views:
            if view["at"] + GAP > late(marks, epoch):
                open_views.setdefault(view["user"], []).append(view)
        over: list[Row] = []
        for user, seen in open_views.items():
            whole = visits(seen)
            ended = [visit for visit in whole if visit[-1]["at"] + GAP <= marks[epoch]]
            over += [line(visit) for visit in ended]
            open_views[user] = [view for visit in whole if visit not in ended for view in visit]
        found.append(over)
    return found


def funnel(sessions: Lines) -> Lines:
    """The counters of all stages that a visit of an epoch has passed."""
    count: Counter[int] = Counter()
    found: Lines = []
    for visits in sessions:
        touched = {step for visit in visits for step in range(visit["reached"] + 1)}
        count.update(step for visit in visits for step in range(visit["reached"] + 1))
        found.append([{"step": step, "stage": FUNNEL[step], "visits": count[step]} for step in touched])
    return found


def expected(epochs: Epochs, slice_of: Callable[[int], int], slices: int) -> dict[str, Lines]:
    """`slice_of` says which slice has a user: each slice ends its visits by its own newest view."""
    parts = [[[view for view in views if slice_of(view["user"]) == n] for views in epochs] for n in range(slices)]
    ended = [list(chain(*together)) for together in zip(*map(sessions, parts), strict=True)]
    return {"sessions": ended, "funnel": funnel(ended)}
