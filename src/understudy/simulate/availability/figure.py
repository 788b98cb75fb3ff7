"""Figures 4 and 5 of Grüneberger et al. 2013 from our numbers, with the values their text gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from understudy.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from understudy.simulate.availability.summary import Point

# (crash, percent) from the paper's text, for lines it names: heuristic and spare in percent of the load.
PAPER = {
    ("product", 50.0): [(0.02, 99.2)],
    ("out-degree", 50.0): [(0.02, 98.8)],
    ("low-utilisation", 50.0): [(0.02, 98.8)],
    ("random", 50.0): [(0.02, 97.1)],
}
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#999999")
MARKS = "os^Dv<>P"


def draw(points: Sequence[Point], load: float, path: Path, title: str = "") -> None:
    """Format by the file's suffix; the same numbers give the same bytes."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise Unavailable(
            "cannot draw a figure", why="matplotlib is not installed", fix="pip install 'understudy[plot]'"
        ) from None
    mpl.rcParams["svg.hashsalt"] = "understudy"
    figure: Any = Figure(figsize=(7.2, 4.6), layout="constrained")
    axes = figure.subplots()
    for number, (label, line) in enumerate(_lines(points, load).items()):
        _draw_line(axes, number, label, line, load)
    axes.set_xlabel("host crash probability (%)")
    axes.set_ylabel("running queries (%)")
    axes.grid(alpha=0.3)
    axes.set_title(title)
    axes.plot([], [], "x", color="black", label="value in the paper's text")
    axes.legend(fontsize=8, loc="lower left")
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, metadata=metadata)


def _lines(points: Sequence[Point], load: float) -> dict[str, list[Point]]:
    placements = {point.placement for point in points}
    lines: dict[str, list[Point]] = {}
    for point in points:
        label = f"{point.heuristic} ({100 * point.spare / load:g} %)"
        if len(placements) > 1:
            label += f", {point.placement}"
        lines.setdefault(label, []).append(point)
    ordered = sorted(lines, key=lambda label: -lines[label][-1].running)
    return {label: sorted(lines[label], key=lambda p: p.crash) for label in ordered}


def _draw_line(axes: Any, number: int, label: str, line: Sequence[Point], load: float) -> None:
    colour = COLOURS[number % len(COLOURS)]
    x = [100 * point.crash for point in line]
    y = [point.running for point in line]
    errors = [[p.running - p.low for p in line], [p.high - p.running for p in line]]
    axes.errorbar(
        x,
        y,
        yerr=errors,
        color=colour,
        marker=MARKS[number % len(MARKS)],
        ms=4,
        lw=1.2,
        capsize=2,
        label=label,
    )
    stated = PAPER.get((line[0].heuristic, 100 * line[0].spare / load), [])
    axes.plot([100 * crash for crash, _ in stated], [value for _, value in stated], "x", color=colour, ms=9)
