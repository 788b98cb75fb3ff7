"""A machine that is only slow (Zhang et al. 2010, §V-B): how late a stream gets, and what it costs to react.

One run for every method, with the same faults: the node of the primary is frozen, then starved (it gets a fifth of the
CPU), for 5 s and for 10 s. *Late* is by how much the worst epoch came later than epochs usually do, *gap* the longest
pause in the output, *head* the time from the end of the fault until the primary is where the stream is. *Messages* are
the bytes moved by all slices: received, pulled, shipped and published. Digests are compared with a run without faults.

    python benchmarks/transient.py [--keys 10000] [--json FILE] [--plot FILE]
    python benchmarks/transient.py --alarms 10       false alarms of both detectors in ten minutes at 60 % CPU
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

import psutil
from scratch import scratch

from understudy.coordination.sqlite import SqliteStore
from understudy.model.events import RolledBack, StandingIn
from understudy.model.report import Report
from understudy.model.view import RunState
from understudy.runtime.launcher import Launcher
from understudy.testing.cluster import run

APP = Path(__file__).with_name("keyed.py")
# So long a silence is never taken for a death: who has no protection can only wait.
FOREVER = 100_000
METHODS: dict[str, dict[str, Any]] = {
    "none": {"scheme": "none", "misses": FOREVER},
    "passive": {"scheme": "passive_standby_cold"},
    "passive, 1 s": {"scheme": "passive_standby_cold", "misses": 10},
    "passive replication, 1 s": {"scheme": "passive_replication", "misses": 10},
    "active": {"scheme": "active_replication"},
    "speculative": {"scheme": "passive_standby_cold", "reaction": "speculative"},
    "speculative, hot": {"scheme": "passive_standby_hot", "reaction": "speculative"},
}
FAULTS = (("freeze", 5.0), ("freeze", 10.0), ("starve", 5.0), ("starve", 10.0))
FIRST, REST = 20, 14
EPOCHS = FIRST + sum(int(length) + REST for _, length in FAULTS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=10_000, help="rows an epoch")
    parser.add_argument("--methods", default="|".join(METHODS), help="separated by |")
    parser.add_argument("--alarms", type=float, help="minutes at 60 %% CPU for each detector")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--plot", type=Path, help="draw lateness by method here")
    arguments = parser.parse_args()
    settings = {"keys": str(arguments.keys), "rows": str(arguments.rows)}
    if arguments.alarms:
        false_alarms(arguments.alarms, settings)
        return
    with scratch() as home:
        print("without faults …", file=sys.stderr, flush=True)
        digest = run(APP, home, nodes=1, epochs=EPOCHS, settings=settings).sinks["out"].digest
    found = []
    for name in arguments.methods.split("|"):
        print(f"{name} …", file=sys.stderr, flush=True)
        found.append(measure(name, settings, digest))
        print(f"  {found[-1]}", file=sys.stderr, flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(found, indent=2) + "\n")
    show(found)
    if arguments.plot:
        plot(found, arguments.plot)
    if not all(one["same_digest"] for one in found):
        raise SystemExit("a digest differs from that of the run without faults")


class Tormentor:
    """Slows the primary's node down whenever the slice is well protected again, and watches it come back."""

    def __init__(self, scheme: str) -> None:
        self.scheme, self.left = scheme, list(FAULTS)
        self.at: list[float] = []
        self.heads: list[float | None] = []
        self._next = FIRST
        self._ends: float | None = None

    def __call__(self, state: RunState, launcher: Launcher) -> None:
        totals = next((one for one in state.slices if one.slice == "totals[0]"), None)
        if totals is None:
            return
        now = time.time()
        if self._ends is not None and now > self._ends and totals.state == "running" and totals.lag <= 1:
            self.heads[-1] = now - self._ends
            self._ends = None
        ready = sum(node.ready and node.connected for node in state.nodes) >= 4
        if self._ends is None and self.left and state.epoch >= self._next and totals.lag <= 1 and ready:
            if totals.protection != self.scheme:
                return
            kind, length = self.left.pop(0)
            launcher.inject(f"{kind}:{totals.primary}", length)
            self.at.append(now)
            self.heads.append(None)
            self._ends = now + length
            self._next = state.epoch + int(length) + REST - 2


def measure(name: str, settings: dict[str, str], digest: str) -> dict[str, Any]:
    options = METHODS[name]
    tormentor = Tormentor(options["scheme"])
    with scratch() as home:
        report = run(
            APP,
            home,
            nodes=4,
            epochs=EPOCHS,
            replace=True,
            fast=False,
            backlog=100,
            settings=settings,
            drive=tormentor,
            **options,
        )
        delays = deliveries(home, report)
    if report.verdict != "exact":
        raise SystemExit(f"{name}: {report.verdict}: {report.failure}")
    costs = report.costs
    kinds = ("received", "pulled", "shipped", "published")
    moved = {kind: getattr(costs, f"bytes_{kind}") for kind in kinds}
    return {
        "name": name,
        "faults": effects(delays, tormentor),
        "messages": sum(moved.values()),
        "moved": moved,
        "cpu_s": round(sum(costs.cpu_s.values()), 1),
        "reactions": report.reactions.model_dump(),
        "same_digest": report.sinks["out"].digest == digest,
    }


def deliveries(home: Path, report: Report) -> list[tuple[float, float]]:
    """When every epoch was delivered, and how long after it was due."""
    receipts = SqliteStore(home / "manager.db").receipts("out")
    events = [json.loads(line) for line in (home / "events.jsonl").read_text().splitlines()]
    began = next(event["at"] for event in events if event["kind"] == "running")
    return [(r.at, r.at - began - r.epoch * report.epoch_s) for r in receipts]


def effects(delays: Sequence[tuple[float, float]], tormentor: Tormentor) -> list[dict[str, Any]]:
    usual = statistics.median([delay for at, delay in delays if at < tormentor.at[0]][-10:])
    found = []
    for number, (kind, length) in enumerate(FAULTS):
        at = tormentor.at[number]
        until = tormentor.at[number + 1] if number + 1 < len(FAULTS) else float("inf")
        moments = [when for when, _ in delays if at - 1.5 <= when < until]
        head = tormentor.heads[number]
        found.append(
            {
                "fault": f"{kind} {length:.0f} s",
                "late_s": round(max(delay - usual for when, delay in delays if at <= when < until), 2),
                "gap_s": round(max(b - a for a, b in pairwise(moments)), 2),
                "head_s": None if head is None else round(head, 2),
            }
        )
    return found


# -- false alarms


def burn(share: Synchronized[float]) -> None:
    """Keeps one core busy for so much of the time, in turns shorter than a heartbeat."""
    while True:
        until = time.monotonic() + 0.05 * share.value
        while time.monotonic() < until:
            pass
        time.sleep(0.05 * (1 - share.value))


class Load:
    """Keeps the whole machine at about a share of its CPU: what our own nodes use is part of it."""

    def __init__(self, goal: float) -> None:
        self._goal = goal
        self._share: Synchronized[float] = multiprocessing.Value("d", 0.0)
        self._burners = [
            multiprocessing.Process(target=burn, args=(self._share,), daemon=True)
            for _ in range(psutil.cpu_count() or 1)
        ]
        self._seen: list[float] = []
        self._next = 0.0

    def start(self) -> None:
        psutil.cpu_percent()
        self._next = time.monotonic() + 5
        for burner in self._burners:
            burner.start()

    def adjust(self) -> None:
        """Every five seconds: burns more or less, by half of what is missing."""
        if time.monotonic() > self._next:
            self._next = time.monotonic() + 5
            self._seen.append(psutil.cpu_percent() / 100)
            self._share.value = min(0.95, max(0.0, self._share.value + (self._goal - self._seen[-1]) / 2))

    def stop(self) -> float:
        """Returns the mean share, without the first half minute in which it was adjusted."""
        for burner in self._burners:
            burner.kill()
            burner.join()
        return statistics.fmean(self._seen[6:])


class Quiet:
    """Lets a run go on for some minutes under load, and does nothing to it."""

    def __init__(self, minutes: float) -> None:
        self._seconds = 60 * minutes
        self._until: float | None = None
        self._load = Load(0.6)
        self.cpu = 0.0

    def __call__(self, state: RunState, launcher: Launcher) -> None:
        totals = next((one for one in state.slices if one.slice == "totals[0]"), None)
        if self._until is None:
            if totals is None or state.epoch < FIRST or totals.protection != totals.scheme:
                return
            self._load.start()
            self._until = time.monotonic() + self._seconds
            self.began = time.time()
        elif time.monotonic() > self._until:
            self.cpu = self._load.stop()
            self._until = float("inf")
            self.ended = time.time()
            launcher.finish()
        elif self._until < float("inf"):
            self._load.adjust()


def false_alarms(minutes: float, settings: dict[str, str]) -> None:
    """Nothing fails: every secondary that stands in does so in vain."""
    detectors: dict[str, dict[str, Any]] = {
        "heartbeat, 1 miss": {},
        "heartbeat, 3 misses": {"wake_misses": 3},
        "benchmark": {"detector": "benchmark", "wake_misses": 30},
    }
    for name, options in detectors.items():
        quiet = Quiet(minutes)
        with scratch() as home:
            more: dict[str, Any] = {"scheme": "passive_standby_hot", "reaction": "speculative", **options}
            report = run(APP, home, nodes=3, fast=False, backlog=100, settings=settings, drive=quiet, **more)
            events = SqliteStore(home / "manager.db").events()
        woken = [e for e in events if e.kind == StandingIn.kind and quiet.began <= e.at <= quiet.ended]
        back = [e for e in events if e.kind == RolledBack.kind and e.at >= quiet.began]
        hours = (quiet.ended - quiet.began) / 3600
        standing_in = sum(e.fields.get("stood_in_s", 0.0) for e in back)
        print(
            f"{name}: {len(woken)} alarms in {60 * hours:.1f} minutes at {quiet.cpu:.0%} CPU, "
            f"{len(woken) / hours:.0f} an hour; standing in for {standing_in:.1f} s; {report.verdict}"
        )


# -- showing


def show(found: Sequence[dict[str, Any]]) -> None:
    base = next((one["messages"] for one in found if one["name"] == "passive"), None)
    names = [fault["fault"] for fault in found[0]["faults"]]
    print(f"{'method':26} " + " ".join(f"{name:>22}" for name in names) + f" {'messages':>9} {'woken':>5} digest")
    for one in found:
        cells = " ".join(
            f"{f['late_s']:8.2f}{f['gap_s']:7.2f}{'-' if f['head_s'] is None else format(f['head_s'], '.1f'):>7}"
            for f in one["faults"]
        )
        ratio = f"{one['messages'] / base:9.2f}" if base else f"{one['messages'] / 1e6:7.0f}MB"
        same = "same" if one["same_digest"] else "DIFFERS"
        print(f"{one['name']:26} {cells} {ratio} {one['reactions']['standing_in']:5} {same}")
    print("for every fault: late, gap, head, in seconds")


def plot(found: Sequence[dict[str, Any]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.5, 3.8))
    width = 0.8 / len(found)
    names = [fault["fault"] for fault in found[0]["faults"]]
    for number, one in enumerate(found):
        places = [index + number * width for index in range(len(names))]
        axes.bar(places, [max(0.01, fault["late_s"]) for fault in one["faults"]], width, label=one["name"])
    axes.set_xticks([index + 0.4 - width / 2 for index in range(len(names))], names)
    axes.set(ylabel="worst epoch late, seconds", yscale="log")
    axes.legend(fontsize=7, ncols=2)
    axes.grid(alpha=0.3, axis="y")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
