"""Every pair of schemes, switched under load in one run: how long a transition takes, and how late it makes an epoch.

A walk visits all thirty ordered pairs. Each switch begins when the one before has ended and some epochs have
passed. *Late* is by how much the worst epoch between two capabilities came later than epochs usually do. The digest is
compared with that of a run without capabilities.

    python benchmarks/transitions.py [--keys 10000] [--rows 10000] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from scratch import scratch

from understudy.coordination.sqlite import SqliteStore
from understudy.model.capabilities import LADDER
from understudy.model.recovery import Scheme
from understudy.model.report import Report
from understudy.model.view import RunState
from understudy.runtime.launcher import Launcher
from understudy.testing.cluster import run

APP = Path(__file__).with_name("keyed.py")
SETTLED = 16
REST_S = 2.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=10_000, help="rows an epoch")
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    walk = list(every_pair(LADDER))
    settings = {"keys": str(arguments.keys), "rows": str(arguments.rows)}
    with scratch() as home:
        options: dict[str, Any] = {"settings": settings, "profile": arguments.profile}
        switcher = Switcher(walk)
        report = run(APP, home / "busy", nodes=3, fast=False, backlog=100, drive=switcher, **options)
        found = figures(report, home / "busy", switcher.began)
        calm = run(APP, home / "calm", nodes=1, epochs=report.epochs, **options)
    same = report.sinks["out"].digest == calm.sinks["out"].digest
    show(found, report.epoch_s, same)
    if arguments.json:
        arguments.json.write_text(json.dumps({"transitions": found, "digest_unchanged": same}, indent=2) + "\n")
    sys.exit(0 if same and report.verdict == "exact" else 1)


def every_pair(schemes: Sequence[Scheme]) -> Iterator[Scheme]:
    """A walk over all ordered pairs, by Hierholzer's algorithm; it begins and ends at the first scheme."""
    left = {scheme: [other for other in schemes if other != scheme] for scheme in schemes}
    stack, walk = [schemes[0]], []
    while stack:
        if left[stack[-1]]:
            stack.append(left[stack[-1]].pop())
        else:
            walk.append(stack.pop())
    yield from reversed(walk)


class Switcher:
    def __init__(self, walk: Sequence[Scheme]) -> None:
        self.walk = list(walk)
        self.began: list[float] = []
        self._asked: Scheme | None = None
        self._rested_at: float | None = None

    def __call__(self, state: RunState, launcher: Launcher) -> None:
        totals = next((one for one in state.slices if one.slice == "totals[0]"), None)
        if totals is None or state.epoch < SETTLED or totals.protection != (self._asked or totals.scheme):
            self._rested_at = None
            return
        now = time.monotonic()
        self._rested_at = self._rested_at or now + REST_S
        if now < self._rested_at:
            return
        self._rested_at = None
        self.walk = self.walk[1:]
        if not self.walk:
            launcher.finish()
            return
        self._asked = self.walk[0]
        self.began.append(time.time())
        launcher.inject(f"switch:totals[0]={self._asked}")


def figures(report: Report, home: Path, began: Sequence[float]) -> list[dict[str, Any]]:
    receipts = SqliteStore(home / "manager.db").receipts("out")
    events = [json.loads(line) for line in (home / "events.jsonl").read_text().splitlines()]
    start = next(event["at"] for event in events if event["kind"] == "running")
    delays = [(r.at, r.at - start - r.epoch * report.epoch_s) for r in receipts]
    usual = statistics.median(delay for _, delay in delays)
    found = []
    for number, one in enumerate(report.transitions):
        until = began[number + 1] if number + 1 < len(began) else float("inf")
        worst = max((delay - usual for at, delay in delays if began[number] <= at < until), default=0.0)
        found.append({"before": one.before, "after": one.scheme, "seconds": one.seconds, "late_s": round(worst, 3)})
    return found


def show(found: Sequence[dict[str, Any]], epoch_s: float, same: bool) -> None:
    print(f"{'from':22} {'to':22} {'took s':>7} {'late s':>7}")
    for one in sorted(found, key=lambda o: (o["before"], o["after"])):
        took = "never" if one["seconds"] is None else f"{one['seconds']:.2f}"
        print(f"{one['before']:22} {one['after']:22} {took:>7} {one['late_s']:7.2f}")
    worst = max(one["late_s"] for one in found)
    late = [one for one in found if one["late_s"] > 2 * epoch_s]
    print(f"{len(found)} pairs, worst epoch {worst:.2f} s late, {len(late)} beyond two epoch lengths, "
          f"digest {'unchanged' if same else 'CHANGED'}")  # fmt: skip


if __name__ == "__main__":
    main()
