"""A run's report as one page that needs nothing else: verdict, tables, plots, timeline."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from understudy.model.events import Event
from understudy.model.report import Report

_PAGE = Path(__file__).parent / "page"
_VERDICTS = {
    "exact": ("healthy", "nothing was lost, and nothing came twice"),
    "at least once": ("degraded", "nothing was lost; a sink was interrupted and may have delivered epochs twice"),
    "diverged": ("degraded", "a replay came to another result than what was published"),
    "lossy": ("degraded", "epochs were lost"),
    "failed": ("down", "the run did not reach its end"),
}


def report_page(report: Report, events: Sequence[Event] = ()) -> str:
    tone, meaning = _VERDICTS[report.verdict]
    body = [
        f'<header><h1>{escape(report.app)}</h1><span class="health" data-health="{tone}" id="verdict">'
        f"{report.verdict}</span> <span>{meaning}</span></header><main>",
        f"<p>{report.epochs} epochs of {report.epoch_s:g} s in {report.elapsed_s:.1f} s on {len(report.nodes)} nodes; "
        f'run <code>{escape(report.run)}</code></p>{_failure(report)}<section class="card wide"><h2>Sinks</h2>',
        _table(
            ("sink", "epochs", "rows", "lost", "twice", "gaps", "longest pause, s", "latest, s", "digest"),
            [
                (
                    name,
                    s.epochs,
                    s.rows,
                    s.lost_epochs,
                    s.duplicate_epochs,
                    len(s.gaps),
                    s.max_gap_s,
                    s.max_late_s,
                    s.digest[:32],
                )
                for name, s in report.sinks.items()
            ],
        ),
        "</section>",
        _faults(report),
        _transitions(report),
        _moves(report),
        '<section class="card"><h2>Cost</h2><div class="chart low" id="nodes"></div>',
        f'<p class="quiet">{report.costs.bytes_published:,} bytes were published and {report.costs.bytes_shipped:,} '
        "shipped as checkpoints.</p></section>",
        '<section class="card wide"><h2>Slices</h2><div class="chart low" id="rows"></div>',
        _table(
            ("slice", "primary", "secondary", "scheme", "epoch", "rows in", "rows out", "state rows", "state bytes"),
            [
                (
                    name,
                    s.primary,
                    s.secondary or "–",
                    s.scheme,
                    s.epoch,
                    s.rows_in,
                    s.rows_out,
                    s.state_rows,
                    s.state_bytes,
                )
                for name, s in report.slices.items()
            ],
        ),
        "</section>",
        _events(events),
        "</main>",
    ]
    return _document(f"{report.app}: {report.verdict}", "".join(body), report.model_dump_json())


def _document(title: str, body: str, data: str) -> str:
    scripts = [(_PAGE / name).read_text() for name in ("vendor/echarts.common.min.js", "report.js")]
    # "</script>" inside a text would end the element it stands in.
    safe = data.replace("</", "<\\/").replace("<!--", "<\\!--")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{(_PAGE / 'style.css').read_text()}</style></head><body>{body}"
        f'<script type="application/json" id="report">{safe}</script>'
        + "".join(f"<script>{script}</script>" for script in scripts)
        + "</body></html>\n"
    )


def _failure(report: Report) -> str:
    if report.failure is None:
        return ""
    lines = "<br>".join(escape(line) for line in str(report.failure).splitlines())
    return f'<section class="card"><h2>Failure</h2><p id="failure">{lines}</p></section>'


def _faults(report: Report) -> str:
    if not report.faults:
        return '<section class="card"><h2>Faults</h2><p class="quiet" id="no-faults">None was injected.</p></section>'
    rows = [
        (
            fault.spec,
            f"{fault.at_s:.2f}",
            "not noticed" if fault.detected_after_s is None else f"{fault.detected_after_s:.2f}",
            len(fault.recoveries),
            f"{max((r.actual_s for r in fault.recoveries), default=0.0):.2f}",
            sum(r.epochs_replayed for r in fault.recoveries),
        )
        for fault in report.faults
    ]
    heads = ("fault", "at, s", "noticed after, s", "slices back", "slowest, s", "epochs replayed")
    height = 90 + 30 * sum(len(fault.recoveries) for fault in report.faults)
    return (
        f'<section class="card wide"><h2>Faults and what followed</h2>{_table(heads, rows)}'
        f'<div class="chart" id="timeline" style="height: {height}px"></div></section>'
    )


def _transitions(report: Report) -> str:
    if not report.transitions:
        return ""
    heads = ("slice", "from", "to", "at, s", "reached after, s")
    rows = [
        (t.slice, t.before, t.scheme, f"{t.at_s:.2f}", "never reached" if t.seconds is None else f"{t.seconds:.2f}")
        for t in report.transitions
    ]
    return f'<section class="card wide"><h2>Transitions</h2>{_table(heads, rows)}</section>'


def _moves(report: Report) -> str:
    if not report.moves:
        return ""
    heads = ("slice", "from", "to", "at, s", "took, s", "without output, s", "epochs replayed", "way")
    rows = [
        (
            m.slice,
            m.primary,
            m.node,
            f"{m.at_s:.2f}",
            f"{m.seconds:.2f}",
            f"{m.away_s:.2f}",
            m.replayed,
            "stopped, started" if m.legacy else "beside its primary",
        )
        for m in report.moves
    ]
    return f'<section class="card wide" id="moves"><h2>Moves</h2>{_table(heads, rows)}</section>'


def _events(events: Sequence[Event]) -> str:
    if not events:
        return ""
    began = events[0].at
    rows = [(e.number, f"{e.at - began:.2f}", e.kind, e.text, "" if e.cause is None else e.cause) for e in events]
    return (
        '<section class="card"><h2>Events</h2><div class="events" id="events">'
        f"{_table(('number', 'at, s', 'kind', 'what', 'cause'), rows)}</div></section>"
    )


def _table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    lines = "".join(f"<tr>{''.join(_cell(value) for value in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{lines}</table>"


def _cell(value: object) -> str:
    return f"<td>{value:,}</td>" if isinstance(value, int | float) else f"<td>{escape(str(value))}</td>"


def read_events(path: Path) -> list[Event]:
    """`events.jsonl` of a run's home, after the part before it if there is one; a line that was cut off is the last."""
    before = path.with_name(f"{path.name}.1")
    events = []
    for line in [*(before.read_text().splitlines() if before.exists() else ()), *path.read_text().splitlines()]:
        try:
            events.append(Event(**json.loads(line)))
        except ValueError:
            break
    return events
