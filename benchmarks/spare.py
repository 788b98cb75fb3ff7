"""Spare capacity (Martin 2015, chapter 6): two nodes, two actively replicated slices, too much load for both replicas.

Every half minute the load jumps for some seconds to more than primaries and secondaries together can process. In one
run secondaries are throttled until primaries have caught up, in the other both share the machine alike. *Late* is by
how much the worst epoch came later than epochs usually do. The digest must be the same.

    python benchmarks/spare.py [--peak 400000] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from scratch import scratch

from understudy.coordination.sqlite import SqliteStore
from understudy.testing.cluster import run

APP = Path(__file__).with_name("peaks.py")
EPOCHS = 100
WARM = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peak", type=int, default=400_000, help="rows a second and slice at the peak")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    found: dict[str, list[dict[str, Any]]] = {"primaries first": [], "alike": []}
    for _ in range(arguments.rounds):
        for name, figures in found.items():
            print(f"{name} …", file=sys.stderr, flush=True)
            figures.append(measure(arguments.peak, primaries_first=name == "primaries first"))
            print(f"  {figures[-1]}", file=sys.stderr, flush=True)
    digests = {one["digest"] for figures in found.values() for one in figures}
    for name, figures in found.items():
        late = statistics.mean(one["late_s"] for one in figures)
        mean = statistics.mean(one["mean_late_s"] for one in figures)
        slept = statistics.mean(one["read_back"] for one in figures)
        print(f"{name:16} worst epoch {late:5.2f} s late, on average {mean:5.2f} s; {slept:.0f} epochs taken as state")
    print("the same digest" if len(digests) == 1 else f"DIFFERENT digests: {digests}")
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")
    sys.exit(0 if len(digests) == 1 else 1)


def measure(peak: int, *, primaries_first: bool) -> dict[str, Any]:
    with scratch() as home:
        report = run(
            APP,
            home,
            nodes=2,
            epochs=EPOCHS,
            fast=False,
            backlog=100,
            scheme="active_replication",
            settings={"peak": str(peak)},
            primaries_first=primaries_first,
        )
        receipts = SqliteStore(home / "manager.db").receipts("out")
        events = [json.loads(line) for line in (home / "events.jsonl").read_text().splitlines()]
    began = next(event["at"] for event in events if event["kind"] == "running")
    delays = [r.at - began - r.epoch * report.epoch_s for r in receipts if r.epoch >= WARM]
    usual = statistics.median(delays)
    return {
        "late_s": round(max(delays) - usual, 2),
        "mean_late_s": round(statistics.mean(max(0.0, delay - usual) for delay in delays), 3),
        "read_back": report.reactions.read_back,
        "digest": report.sinks["out"].digest,
    }


if __name__ == "__main__":
    main()
