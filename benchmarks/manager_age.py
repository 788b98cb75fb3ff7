"""What age costs the manager: restart, memory and ticks with a million receipts and 100,000 events, against none.

A real manager process with fifty slices, and nodes that only talk. Its store is aged through its own interface, then
the manager is started, killed and started again, as after a crash; meanwhile nodes fail at times, so that slices are
brought back. `back_s` is from the start of the process to its first view of the run, `back_cpu_s` the CPU time it used
for that, which other load on the machine changes little. A stall is the time that `/health/live` takes to answer: it
waits for whatever the loop does.

python benchmarks/manager_age.py --receipts 1000000 --events 100000

To measure other code, put its `src` on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
from scratch import scratch
from stage import HERE, NODES, Stage, start

from understudy.coordination.sqlite import SqliteStore
from understudy.model.messages import STEPS, Receipt
from understudy.model.run import RunSpec
from understudy.runtime.home import Home
from understudy.runtime.launcher import free_port
from understudy.runtime.processes import Child, spawn

BATCH = 10_000
PATIENCE_S = 120.0
TICK_S = 0.05
SLICES = [f"{name}[{i}]" for name, slices in (("users", 16), ("sessions", 16), ("totals", 8)) for i in range(slices)]


def age(home: Home, receipts: int, events: int) -> None:
    """Fills the store as a long run would have."""
    store = SqliteStore(home.database)
    store.keep({"run": RunSpec.of("age", str(HERE / "fifty.py"), nodes=NODES).model_dump()})
    began = time.time() - receipts
    for first in range(0, receipts, BATCH):
        epochs = range(first, min(receipts, first + BATCH))
        store.receive([Receipt(sink="out", epoch=e, rows=10, digest=f"{e:040x}", at=began + e) for e in epochs])
    step = receipts / max(1, events)
    lost: int | None = None
    assigned: int | None = None
    for number, (kind, fields) in zip(range(events), story(), strict=False):
        cause = {"assigned": lost, "recovered": assigned}.get(kind)
        added = store.note(began + number * step, kind, f"{kind} {number}", fields, cause)
        lost = added if kind == "node_lost" else lost
        assigned = added if kind == "assigned" else assigned
    store.close()


def story() -> Iterator[tuple[str, dict[str, Any]]]:
    """Nodes are lost and come back, and their slices with them."""
    steps: dict[str, Any] = dict.fromkeys(STEPS, 0.1) | {"replayed": 2, "done": True, "done_at": 0.0}
    generation = 1
    while True:
        generation += 1
        for number, name in enumerate(SLICES):
            node = f"node-{number % NODES + 1}"
            if number % 9 == 0:
                yield "node_lost", {"node": node}
            yield "assigned", {"slice": name, "node": node, "generation": generation}
            yield "protection", {"slice": name, "scheme": "passive_replication", "seconds": None}
            yield "recovered", {"slice": name, "generation": generation, "predicted": None, **steps}
            if number % 9 == 8:
                yield "node_joined", {"node": node, "pid": 1}


class Manager:
    def __init__(self, home: Home) -> None:
        self._home, self._port = home, free_port()
        self.stage = Stage(f"http://127.0.0.1:{self._port}", home.token())

    def start(self) -> tuple[Child, float]:
        """The process, and how long it took until it showed the run."""
        began = time.monotonic()
        arguments = [str(self._home.path), str(self._port)]
        child = spawn("manager", "understudy.runtime.serve", arguments, self._home.logs / "manager.log", {})
        while time.monotonic() < began + PATIENCE_S:
            try:
                if httpx.get(f"{self.stage.url}/api/v1/view", timeout=PATIENCE_S).is_success:
                    return child, time.monotonic() - began
            except httpx.HTTPError:
                time.sleep(0.02)
        raise SystemExit(f"the manager does not answer: {child.tail()}")

    def wait_for_slices(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if len(self.stage.view().slices) == 50:
                return
            time.sleep(0.1)
        raise SystemExit("the slices did not start")


def buckets(stage: Stage, name: str) -> dict[float, float]:
    text = httpx.get(f"{stage.url}/metrics", timeout=PATIENCE_S).text
    lines = [line for line in text.splitlines() if line.startswith(f"{name}_bucket")]
    return {float(line.split('le="')[1].split('"')[0]): float(line.rpartition(" ")[2]) for line in lines}


def cpu_s(pid: int) -> float:
    used = psutil.Process(pid).cpu_times()
    return float(used.user + used.system)


def ticks(stage: Stage, pid: int, seconds: float) -> dict[str, float]:
    """How long ticks took, by the manager's own metrics, and how long its loop kept others waiting.

    `cpu_ms_a_tick` is everything the process did, divided by its ticks: heartbeats, the page and our questions too.
    """
    name = "understudy_manager_tick_duration_seconds"
    before, sums = buckets(stage, name), stage.metrics()[f"{name}_sum"]
    used, stalls = cpu_s(pid), []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        asked = time.monotonic()
        httpx.get(f"{stage.url}/health/live", timeout=PATIENCE_S)
        stalls.append(time.monotonic() - asked)
        time.sleep(0.02)
    after, sums = buckets(stage, name), stage.metrics()[f"{name}_sum"] - sums
    used, count = cpu_s(pid) - used, after[float("inf")] - before[float("inf")]
    return {
        "ticks": count,
        "cpu_ms_a_tick": round(1000 * used / count, 2),
        "tick_ms": round(1000 * sums / count, 2),
        "ticks_above_50_ms": count - (after[TICK_S] - before[TICK_S]),
        "stall_ms_median": round(1000 * statistics.median(stalls), 1),
        "stall_ms_longest": round(1000 * max(stalls), 1),
    }


def peak_mb(pid: int) -> int:
    """The most memory that a process ever had, as Linux counts it."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return round(int(line.split()[1]) * 1024 / 1e6)


def measure(receipts: int, events: int, seconds: float) -> dict[str, Any]:
    with scratch() as folder:
        home = Home(Path(folder))
        home.create()
        age(home, receipts, events)
        manager = Manager(home)
        child, first = manager.start()
        options = ["--drop-every", "8", "--epoch", str(receipts)]
        # A token may begin with a hyphen.
        cast = start(["nodes", *options, "--", manager.stage.url, manager.stage.token, str(NODES)])
        try:
            manager.wait_for_slices()
            child.kill()
            child, back = manager.start()
            used = cpu_s(child.process.pid)
            manager.wait_for_slices()
            found = ticks(manager.stage, child.process.pid, seconds)
            asked = time.monotonic()
            report = httpx.get(f"{manager.stage.url}/api/v1/report", timeout=PATIENCE_S)
            report_s = time.monotonic() - asked
            return {
                "receipts": receipts,
                "events": events,
                "first_start_s": round(first, 2),
                "back_s": round(back, 2),
                "back_cpu_s": round(used, 2),
                **found,
                "report_s": round(report_s, 3),
                "delivered": report.json()["sinks"]["out"]["epochs"],
                "memory_peak_mb": peak_mb(child.process.pid),
                "database_mb": round(home.database.stat().st_size / 1e6),
            }
        finally:
            cast.kill()
            cast.wait()
            child.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--receipts", type=int, default=1_000_000)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=20.0, help="of watching ticks")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    young = measure(0, 0, given.seconds)
    old = measure(given.receipts, given.events, given.seconds)
    if given.json:
        print(json.dumps({"young": young, "old": old}, indent=2))
        return
    for name in old:
        print(f"{name:20} {young[name]!s:>12} {old[name]!s:>12}")


if __name__ == "__main__":
    main()
