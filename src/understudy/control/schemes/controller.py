"""For every slice the cheapest scheme that keeps its objective (Martin 2015, chapter 7).

`decide_schemes` is one step: histories, usages and what was decided before go in, decisions and what to remember come
out. All slices are weighed at once, in arrays, so that ten thousand of them fit into one tick of the manager.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from understudy.control.schemes.candidates import Board, Numbers
from understudy.control.schemes.decisions import Decision, Figures, Why
from understudy.control.schemes.estimates import ACTIVE, Floats
from understudy.control.schemes.history import Error
from understudy.control.schemes.margin import NO_PENALTY, after_recovery
from understudy.control.schemes.objectives import Held, Memory, Outcome, Settings, Watched
from understudy.model.capabilities import LADDER


def decide_schemes(watched: Sequence[Watched], memory: Memory, settings: Settings, now: float) -> Outcome:
    """One step. Slices that are new start on the safe side; slices that are gone are forgotten."""
    if not watched:
        return Outcome((), Memory(), None)
    held = [memory.held.get(one.history.slice) for one in watched]
    board = Board(watched, held, settings, now)
    chosen, reasons = board.choose()
    return _outcome(board, chosen, reasons)


def remember_recovery(memory: Memory, slice_: str, error: Error, settings: Settings, now: float) -> Memory:
    """A failure is over: a broken promise widens the margin of its slice."""
    before = memory.held.get(slice_)
    if before is None:
        return memory
    penalty = after_recovery(before.penalty, error, now, settings.caution)
    if penalty is before.penalty:
        return memory
    return Memory(MappingProxyType({**memory.held, slice_: replace(before, penalty=penalty)}))


def _outcome(board: Board, chosen: Numbers, reasons: list[Why]) -> Outcome:
    figures = _figures(board, chosen)
    choices = [(LADDER[scheme], interval) for scheme, interval in board.pairs]
    decisions: list[Decision] = []
    memory: dict[str, Held] = {}
    columns = zip(board.watched, board.held, chosen.tolist(), reasons, strict=True)
    for row, (one, held, number, why) in enumerate(columns):
        scheme, interval = choices[number]
        interval = one.ship_every or interval
        changed = held is None or held.scheme is not scheme or held.ship_every != interval
        name = one.history.slice
        decisions.append(Decision(name, scheme, interval, why, changed, row, figures))
        if changed or held is None:
            held = Held(scheme, interval, board.now, NO_PENALTY if held is None else held.penalty)
        memory[name] = held
    return Outcome(tuple(decisions), Memory(MappingProxyType(memory)), figures)


def _figures(board: Board, chosen: Numbers) -> Figures:
    resource = board.settings.costs.heaviest
    share: Floats = getattr(board.prices, resource)
    active = share[:, ACTIVE]
    return Figures(
        totals=_shown(board, board.totals, chosen),
        needed=_shown(board, board.needed, chosen),
        costs=_shown(board, board.costs, chosen),
        objectives=board.objective,
        saved=1.0 - share[board.rows, board.schemes[chosen]] / np.where(active > 0, active, 1.0),
        resource=resource,
    )


def _shown(board: Board, values: Floats, chosen: Numbers) -> Floats:
    """One value for each scheme: at its usual interval, and at the chosen one for the scheme that was chosen."""
    shown: Floats = values[:, board.usual].copy()
    shown[board.rows, board.schemes[chosen]] = values[board.rows, chosen]
    return shown
