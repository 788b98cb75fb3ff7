"""A page that stays open: does it stay quick and small, with fifty slices and ten events a second?

A real manager process with fifty slices and five simulated nodes, four of which fail every now and then; events are
added until there are ten a second. Chromium shows the page and goes from view to view. Memory is what is left after a
collection; an answer is the time from a click to the drawn view.

python benchmarks/dashboard_page.py --minutes 10
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import threading
import time
from typing import Any

from playwright.sync_api import CDPSession, Page, sync_playwright
from stage import Stage, playing

VIEWS = ("Topology", "Nodes", "Recovery", "Cost", "Timeline", "Try it")
SAMPLE_S = 5.0
# From the click until the browser has painted what it led to.
CLICK = """name => new Promise(done => {
  const link = [...document.querySelectorAll("nav a")].find(one => one.textContent === name);
  const began = performance.now();
  link.click();
  setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began))));
})"""
WATCH_TASKS = """() => {
  window.longest = 0;
  const note = one => { window.longest = Math.max(window.longest, one.duration); };
  new PerformanceObserver(list => list.getEntries().forEach(note)).observe({ type: "longtask", buffered: true });
}"""


def feed(stage: Stage, rate: float, stop: threading.Event) -> None:
    """Adds events until there are `rate` a second, whatever the nodes' failures give."""
    began, added, first = time.monotonic(), 0, _events(stage)
    while not stop.wait(0.1):
        wanted = rate * (time.monotonic() - began)
        for _ in range(max(0, int(wanted) - (_events(stage) - first))):
            added += 1
            stage.note(added)


def _events(stage: Stage) -> int:
    metrics = stage.metrics()
    return int(sum(value for name, value in metrics.items() if name.startswith("understudy_events_total")))


def measure(page: Page, session: CDPSession, view: str) -> dict[str, float]:
    answer_ms = float(page.evaluate(CLICK, view))
    session.send("HeapProfiler.collectGarbage")
    metrics = {entry["name"]: entry["value"] for entry in session.send("Performance.getMetrics")["metrics"]}
    kept = page.evaluate("({events: understudy.model.events.length, samples: understudy.model.samples.length})")
    longest = float(page.evaluate("() => { const value = window.longest; window.longest = 0; return value; }"))
    return {
        "answer_ms": answer_ms,
        "longest_task_ms": longest,
        "heap_mb": metrics["JSHeapUsedSize"] / 1e6,
        "dom_nodes": metrics["Nodes"],
        "listeners": metrics["JSEventListeners"],
        "events": kept["events"],
        "samples": kept["samples"],
    }


def watch(stage: Stage, minutes: float) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    with sync_playwright() as playwright:
        path = os.environ.get("UNDERSTUDY_BROWSER") or shutil.which("chromium")
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 1366, "height": 768})
        page.goto(f"{stage.url}/#token={stage.token}")
        page.wait_for_selector("[data-slice]")
        page.evaluate(WATCH_TASKS)
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        began = time.monotonic()
        while (elapsed := time.monotonic() - began) < 60 * minutes:
            view = VIEWS[len(found) % len(VIEWS)]
            found.append({"at_s": round(elapsed, 1), "view": view, **measure(page, session, view)})
            page.wait_for_timeout(1000 * SAMPLE_S)
        chromium.close()
    return found


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Growth is the last quarter against the second, by when every buffer but the samples is full."""
    quarter = max(1, len(found) // 4)
    early, late = found[quarter : 2 * quarter], found[-quarter:]

    def median(rows: list[dict[str, Any]], name: str) -> float:
        return round(float(statistics.median(row[name] for row in rows)), 2)

    answers = sorted(row["answer_ms"] for row in found)
    return {
        "samples": len(found),
        "heap_mb": {"second_quarter": median(early, "heap_mb"), "last_quarter": median(late, "heap_mb")},
        "dom_nodes": {"second_quarter": median(early, "dom_nodes"), "last_quarter": median(late, "dom_nodes")},
        "listeners": {"second_quarter": median(early, "listeners"), "last_quarter": median(late, "listeners")},
        "answer_ms": {"median": round(statistics.median(answers), 1), "longest": round(answers[-1], 1)},
        "answer_ms_late": median(late, "answer_ms"),
        "longest_task_ms": round(max(row["longest_task_ms"] for row in found), 1),
        "kept": {"events": found[-1]["events"], "samples": found[-1]["samples"]},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--events", type=float, default=10.0, help="a second")
    parser.add_argument("--rows", action="store_true", help="print every sample too")
    given = parser.parse_args()
    stop = threading.Event()
    with playing(drop_every_s=20.0) as stage:
        before, began = _events(stage), time.monotonic()
        feeder = threading.Thread(target=feed, args=(stage, given.events, stop), daemon=True)
        feeder.start()
        found = watch(stage, given.minutes)
        rate = (_events(stage) - before) / (time.monotonic() - began)
        stop.set()
        feeder.join()
    if given.rows:
        for row in found:
            print(json.dumps(row))
    print(json.dumps({"minutes": given.minutes, "events_per_s": round(rate, 1), **summary(found)}, indent=2))


if __name__ == "__main__":
    main()
