"""What the replica of a source or of a sink does next. Both go from epoch to epoch and differ in what they wait for."""

from __future__ import annotations

from dataclasses import dataclass

from understudy.control.replica.actions import AwaitInput, Wait

GOAL_S = 0.05
ROOM_S = 0.01
INPUT_S = 0.2


@dataclass(frozen=True)
class Make:
    """Cut an epoch of a source and publish it."""

    epoch: int


@dataclass(frozen=True)
class MakeEmpty:
    """The source has ended and others go on: publish an epoch without rows."""

    epoch: int


@dataclass(frozen=True)
class SourceView:
    """`due_s`: seconds until the epoch is due. `ended_at`: the first epoch after the end of the source.

    `goal`: the number of epochs of the run, if that is known.
    """

    epoch: int
    due_s: float
    has_room: bool
    goal: int | None = None
    ended_at: int | None = None


def next_of_source(view: SourceView) -> Make | MakeEmpty | Wait:
    if view.goal is not None and view.epoch >= view.goal:
        return Wait(GOAL_S)
    if view.due_s > 0:
        return Wait(view.due_s)
    if not view.has_room:
        return Wait(ROOM_S)
    if view.ended_at is None:
        return Make(view.epoch)
    # Past its end a source publishes nothing until it is known how long the others go on.
    return Wait(GOAL_S) if view.goal is None else MakeEmpty(view.epoch)


def first_of_source(missing: int, rewind: int | None) -> int:
    """Where a source begins: at the first epoch that is missing and that a reader still needs, or at the damaged epoch
    that must be made again."""
    return missing if rewind is None else min(missing, rewind)


@dataclass(frozen=True)
class Write:
    """Deliver an epoch to the outside."""

    epoch: int


@dataclass(frozen=True)
class Skip:
    """A predecessor has delivered everything before this epoch."""

    epoch: int


@dataclass(frozen=True)
class SinkView:
    """`delivered`: the newest epoch that is known to be delivered, whoever did it."""

    epoch: int
    goal: int | None
    input_there: bool
    delivered: int = -1


def next_of_sink(view: SinkView) -> Write | Skip | AwaitInput | Wait:
    if view.goal is not None and view.epoch >= view.goal:
        return Wait(GOAL_S)
    if view.input_there:
        return Write(view.epoch)
    if view.delivered >= view.epoch:
        # It was given up and went on; bags it has acknowledged may be gone.
        return Skip(view.delivered + 1)
    return AwaitInput(view.epoch, INPUT_S)
