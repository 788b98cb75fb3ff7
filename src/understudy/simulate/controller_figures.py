"""Figures 7.4, 7.5, 7.6, 7.8 and 7.12 of Martin 2015, from simulated runs of our controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from understudy.control.schemes.decisions import words
from understudy.errors import Unavailable
from understudy.model.capabilities import LADDER
from understudy.simulate.controller_result import Result

# From the cheapest, pale, to the dearest, dark; readable without colours too.
COLOURS = ("#f0e8c8", "#cfe3b0", "#93ccb0", "#4ea5b8", "#2f6ea5", "#1d3a6b")
LINES = {"cpu": "-", "memory": "--", "network": ":", "nodes": "-."}
LABELS = {"cpu": "CPU", "memory": "memory", "network": "network", "nodes": "nodes"}
NOTE = "simulated: the controller's own decisions on a synthetic trace, step times partly measured on Spark"


def _figure(width: float, height: float) -> Any:
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise Unavailable(
            "cannot draw a figure", why="matplotlib is not installed", fix="pip install 'understudy[plot]'"
        ) from None
    mpl.rcParams["svg.hashsalt"] = "understudy"
    return Figure(figsize=(width, height), layout="constrained")


def _save(figure: Any, path: Path, origin: str) -> None:
    figure.text(0.005, 0.002, f"{NOTE}; {origin}", fontsize=6, color="#555555")
    figure.get_layout_engine().set(rect=(0, 0.03, 1, 0.97))
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def draw_evolution(result: Result, path: Path) -> None:
    """Figure 7.4: load, state and scheme of one slice."""
    figure = _figure(7.2, 5.2)
    top, middle, bottom = figure.subplots(3, sharex=True)
    rows, state, scheme = result.timeline
    seconds = np.arange(len(rows))
    top.plot(seconds, rows / 1000, color=COLOURS[-1], lw=0.9)
    top.set_ylabel("thousand rows/s")
    middle.plot(seconds, state / 1e6, color=COLOURS[-2], lw=0.9)
    middle.set_ylabel("state (MB)")
    bottom.step(seconds, scheme, where="post", color="#c8553d", lw=1.2)
    bottom.set_yticks(range(len(LADDER)), [words(one) for one in LADDER], fontsize=7)
    bottom.set_xlabel("seconds")
    top.set_title(f"one slice with an objective of {result.study.objective_s:g} s", fontsize=10)
    for axes in (top, middle, bottom):
        axes.grid(alpha=0.25)
    _save(figure, path, result.origin)


def draw_costs(panels: Mapping[str, Sequence[Result]], path: Path) -> None:
    """Figures 7.5 and 7.6: what protection costs against always-active, by objective."""
    figure = _figure(4.2 * len(panels), 3.6)
    for axes, (title, results) in zip(
        np.atleast_1d(figure.subplots(1, len(panels), sharey=True)), panels.items(), strict=True
    ):
        objectives = [result.study.objective_s for result in results]
        for name, line in LINES.items():
            axes.plot(objectives, [100 * r.costs[name] for r in results], line, color=COLOURS[-1], label=LABELS[name])
        axes.axhline(50, color="#c8553d", lw=0.6)
        axes.set(title=title, xlabel="objective (s)", ylim=(0, 110))
        axes.grid(alpha=0.25)
        axes.legend(fontsize=8, frameon=False)
    figure.axes[0].set_ylabel("cost of protection, % of always-active")
    _save(figure, path, _origin(panels))


def draw_shares(panels: Mapping[str, Sequence[Result]], path: Path) -> None:
    """Figures 7.8 and 7.12: the share of time in each scheme, by objective."""
    figure = _figure(4.2 * len(panels), 3.9)
    for axes, (title, results) in zip(
        np.atleast_1d(figure.subplots(1, len(panels), sharey=True)), panels.items(), strict=True
    ):
        places = np.arange(len(results))
        bottom = np.zeros(len(results))
        for colour, scheme in zip(COLOURS, LADDER, strict=True):
            shares = np.array([100 * result.shares[scheme] for result in results])
            axes.bar(places, shares, 0.85, bottom, color=colour, edgecolor="white", lw=0.3, label=words(scheme))
            bottom += shares
        axes.set_xticks(places, [f"{result.study.objective_s:g}" for result in results], fontsize=7)
        axes.set(title=title, xlabel="objective (s)", ylim=(0, 100))
    figure.axes[0].set_ylabel("time in each scheme (%)")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside upper center", ncols=3, fontsize=8, frameon=False)
    _save(figure, path, _origin(panels))


def _origin(panels: Mapping[str, Sequence[Result]]) -> str:
    first = next(iter(panels.values()))[0]
    return f"{first.slices} slices, {first.seconds:g} s, {first.origin}"
