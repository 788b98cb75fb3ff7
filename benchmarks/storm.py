"""Too many slices for the machine, a speculative reaction, and a kill: wake-ups, absence and output.

    python benchmarks/storm.py [--seconds 120] [--epoch 500ms] [--json FILE]

Ten operator slices with hot standbys on three nodes (`tests/apps/ten.py`) get an epoch every half second, which two
cores cannot bear; sources run at most twenty epochs ahead. One node is killed in the middle. After two minutes the
sources end, and what they have cut is delivered. The same epochs are processed once more by one node without protection
and without faults, to compare the digests.

*Wake-ups* are secondaries that began to stand in for a primary whose node seemed slow; *false* ones made nothing
new. *Away* is the time a slice needed to be back after the kill.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from scratch import scratch

from understudy.model.report import Report
from understudy.testing.cluster import run

APP = Path(__file__).parents[1] / "tests" / "apps" / "ten.py"
BACKLOG = 20
MOST_WAKE_UPS = 5.0
LONGEST_AWAY_S = 10.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--epoch", default="500ms", help="an epoch every so often")
    parser.add_argument("--kill", default="kill:node-2@60s", help="the fault in the middle")
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    figures, digests = measure(arguments.seconds, arguments.epoch, arguments.kill)
    print(f"then {figures['epochs']} epochs undisturbed …", file=sys.stderr, flush=True)
    figures["same digest"] = digests == undisturbed(figures["epochs"], arguments.epoch)
    for name, value in figures.items():
        print(f"{name:24} {value}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
    calm = figures["wake-ups a minute"] < MOST_WAKE_UPS and figures["longest away, s"] <= LONGEST_AWAY_S
    sys.exit(0 if calm and figures["same digest"] and figures["verdict"] == "exact" else 1)


def measure(seconds: float, epoch: str, kill: str) -> tuple[dict[str, Any], dict[str, str]]:
    with scratch() as home:
        report = run(
            APP,
            home,
            nodes=3,
            for_s=seconds,
            fast=False,
            backlog=BACKLOG,
            scheme="passive_standby_hot",
            reaction="speculative",
            settings={"epoch": epoch},
            faults=[kill],
        )
        events = [json.loads(line) for line in (home / "events.jsonl").read_text().splitlines()]
    return figures_of(report, events), _digests(report)


def undisturbed(epochs: int, epoch: str) -> dict[str, str]:
    with scratch() as home:
        return _digests(run(APP, home, nodes=1, epochs=epochs, settings={"epoch": epoch}))


def figures_of(report: Report, events: list[dict[str, Any]]) -> dict[str, Any]:
    kinds = [event["kind"] for event in events]
    began = next(event["at"] for event in events if event["kind"] == "running")
    minutes = (events[-1]["at"] - began) / 60
    away = [one.away_s for fault in report.faults for one in fault.recoveries]
    return {
        "verdict": report.verdict,
        "minutes": round(minutes, 2),
        "epochs": report.epochs,
        "wake-ups": report.reactions.standing_in,
        "wake-ups a minute": round(report.reactions.standing_in / minutes, 2),
        "false alarms": report.reactions.false_alarms,
        "nodes given up": kinds.count("node_lost"),
        "throttled events": kinds.count("throttled"),
        "recoveries": len(away),
        "longest away, s": round(max(away, default=0.0), 2),
        "latest epoch late, s": max(sink.max_late_s for sink in report.sinks.values()),
    }


def _digests(report: Report) -> dict[str, str]:
    return {name: sink.digest for name, sink in report.sinks.items()}


if __name__ == "__main__":
    main()
