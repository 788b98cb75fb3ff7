"""How every slice stands, from the assignments and what was last heard of the nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from understudy.model.layout import Kind, Layout, Vertex
from understudy.model.messages import ReplicaStatus, State
from understudy.model.names import SliceId
from understudy.model.page import Health, Prediction
from understudy.model.recovery import Scheme
from understudy.model.run import RunSpec
from understudy.model.snapshot import Assignment, NodeView
from understudy.model.view import SliceState
from understudy.reporting.health import may_lag

TENTATIVE = Health.TENTATIVE.value


@dataclass(frozen=True)
class Sight:
    """What is seen of a run at one moment.

    - `reached`: the scheme that protects a slice now.
    - `choices`: what the controller said last, by the slice's name.
    - `predicted`: how long each scheme would take to bring a slice back.
    """

    run: RunSpec
    epoch_s: float
    layout: Layout
    assignments: tuple[Assignment, ...]
    nodes: Mapping[str, NodeView]
    reached: Mapping[SliceId, Scheme]
    choices: Mapping[str, str]
    predicted: Callable[[SliceId, Vertex], dict[str, float | None]]
    forked: Collection[SliceId] = ()
    """Slices whose output is tentative now."""


def slice_states(sight: Sight) -> Iterator[SliceState]:
    newest = max((r.epoch for view in sight.nodes.values() for r in view.replicas), default=-1)
    for assignment in sight.assignments:
        yield _slice_state(assignment, sight, newest)


def _slice_state(assignment: Assignment, sight: Sight, newest: int) -> SliceState:
    vertex, view = sight.layout[assignment.slice.operator], sight.nodes.get(assignment.node)
    own = view.hosting(assignment.slice, assignment.generation) if view else None
    objective_s = vertex.recovery.objective_s
    return SliceState(
        slice=str(assignment.slice),
        kind=vertex.kind,
        scheme=assignment.scheme,
        protection=sight.reached.get(assignment.slice, assignment.scheme),
        primary=assignment.node,
        secondary=assignment.secondary.node if assignment.secondary else None,
        standing_in=assignment.standing_in,
        moving=assignment.moving.node if assignment.moving and assignment.moving.primary else None,
        throttled=assignment.throttle.on,
        epoch=own.epoch if own else -1,
        lag=newest - own.epoch if own else newest + 1,
        may_lag=None if sight.run.fast else may_lag(objective_s, sight.epoch_s, sight.run.backlog),
        objective_s=objective_s,
        predicted_s=sight.predicted(assignment.slice, vertex) if vertex.kind is Kind.OPERATOR else {},
        reason=sight.choices.get(str(assignment.slice)),
        state=TENTATIVE if assignment.slice in sight.forked else _state(own, view),
    )


def _state(own: ReplicaStatus | None, view: NodeView | None) -> str:
    if own is not None:
        return _in_words(own)
    return "lost" if view is None else "starting"


def _in_words(replica: ReplicaStatus) -> str:
    recovering = replica.state is State.RUNNING and not replica.is_back
    return "recovering" if recovering else replica.state


def predictions(slices: Iterable[SliceState]) -> tuple[Prediction, ...]:
    """What is predicted of every slice of which enough is known."""
    return tuple(
        Prediction(
            slice=one.slice,
            predicted={scheme: seconds for scheme, seconds in one.predicted_s.items() if seconds is not None},
            objective=one.objective_s,
            reason=one.reason or "",
        )
        for one in slices
        if one.predicted_s
    )
