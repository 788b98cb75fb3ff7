"""Tentative output in the report: what was written without which slices, how soon, how right, and when corrected."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from understudy.model.events import BranchChanged, Corrected, TentativeDelivered
from understudy.model.report import BranchReport, TentativeEpoch, TentativeReport
from understudy.reporting.chronicle import Chronicle, Told

KINDS = frozenset({BranchChanged.kind, TentativeDelivered.kind, Corrected.kind})


@dataclass(frozen=True)
class _Line:
    """The events of one branch."""

    opened: Told[BranchChanged]
    changes: tuple[Told[BranchChanged], ...]

    @property
    def failed_at(self) -> float:
        return self.opened.at - (self.opened.what.away_s or 0.0)

    def at(self, moment: float) -> BranchChanged:
        """What held at a moment."""
        before = [told.what for told in self.changes if told.at <= moment]
        return before[-1] if before else self.opened.what


def tentative_report(story: Chronicle, began_at: float) -> TentativeReport:
    """Every branch and every tentative epoch, as far as their events are kept."""
    lines = {line.opened.what.branch: line for line in _lines(story.of(BranchChanged))}
    corrected = {(told.what.sink, told.what.epoch): told.what for told in story.of(Corrected)}
    epochs = tuple(
        _epoch(told.what, lines.get(told.what.branch), corrected.get((told.what.sink, told.what.epoch)), began_at)
        for told in story.of(TentativeDelivered)
    )
    first = {one.what.branch: one.what.at for one in reversed(story.of(TentativeDelivered))}
    return TentativeReport(
        branches=tuple(_branch(line, first.get(number), began_at) for number, line in lines.items()),
        epochs=epochs,
    )


def _lines(changes: Iterable[Told[BranchChanged]]) -> Iterable[_Line]:
    found: dict[int, list[Told[BranchChanged]]] = {}
    for told in changes:
        found.setdefault(told.what.branch, []).append(told)
    return [_Line(line[0], tuple(line)) for line in found.values()]


def _branch(line: _Line, first: float | None, began_at: float) -> BranchReport:
    last = line.changes[-1]
    return BranchReport(
        number=line.opened.what.branch,
        opened_at_s=round(line.opened.at - began_at, 3),
        dropped_at_s=round(last.at - began_at, 3) if last.what.dropped else None,
        missing=tuple(sorted({str(one) for told in line.changes for one in told.what.missing})),
        first_output_s=None if first is None else round(first - line.failed_at, 3),
    )


def _epoch(
    told: TentativeDelivered, line: _Line | None, corrected: Corrected | None, began_at: float
) -> TentativeEpoch:
    held = line.at(told.at) if line else None
    return TentativeEpoch(
        branch=told.branch,
        sink=told.sink,
        epoch=told.epoch,
        at_s=round(told.at - began_at, 3),
        after_failure_s=round(told.at - line.failed_at, 3) if line else None,
        missing=told.missing,
        rows=told.rows,
        fidelity=held.fidelity if held else None,
        completeness=held.completeness if held else None,
        corrected_after_s=round(corrected.at - told.at, 3) if corrected else None,
        had=_share(corrected.had, corrected.rows) if corrected else None,
        right=_share(corrected.had, corrected.tentative_rows) if corrected else None,
    )


def _share(part: int, whole: int) -> float:
    """Of nothing everything is there."""
    return round(part / whole, 6) if whole else 1.0
