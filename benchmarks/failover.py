"""How long a stream is late after `kill -9`: a plain Structured Streaming query that is restarted from its checkpoint,
as one does today, and understudy with each of its schemes, in one run on one machine.

The same rows in the same rhythm, one epoch a second. The plain query reads one Parquet file per batch and is started
again the moment it is killed, with a RocksDB state store and two shuffle partitions, which is kind to it. Kills come at
seeded moments inside an epoch, each when the scheme is fully established again. *Lateness* is by how much the worst
epoch after a kill comes later than epochs usually do; *back* is the time to the first new bag or batch.

    python benchmarks/failover.py [--keys 10000,1000000] [--kills 5] [--schemes all] [--json FILE] [--plot FILE]
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from scratch import scratch

from understudy.coordination.sqlite import SqliteStore
from understudy.model.capabilities import LADDER
from understudy.model.view import RunState, SliceState
from understudy.runtime.launcher import Launcher
from understudy.testing.cluster import run

APP = Path(__file__).with_name("keyed.py")
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SETTLED = 16
# After the first epochs, which bring all keys, RocksDB sorts them for a while.
SETTLED_LARGE, LARGE = 60, 100_000
STEADY = 10
TARGETS = {
    "active_standby": 1 / 30,
    "passive_standby_hot": 1 / 20,
    "passive_standby_cold": 1 / 15,
    "deployed": 1 / 7,
    "passive_replication": 1 / 2,
}
# So large a state is given more.
HUGE, HOT_WHEN_HUGE = 5_000_000, 1 / 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", default="10000,1000000")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--rows", type=int, default=10_000, help="rows an epoch")
    parser.add_argument("--schemes", default=",".join(reversed(LADDER)))
    parser.add_argument("--plain", action=argparse.BooleanOptionalAction, default=True, help="measure a plain restart")
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--plot", type=Path, help="draw recovery time against cost here")
    parser.add_argument("--plain-worker", nargs=2, type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.plain_worker:
        work_plainly(*arguments.plain_worker)
        return
    found: list[dict[str, Any]] = []
    for keys in (int(text) for text in arguments.keys.split(",")):
        for name in (*(["plain"] if arguments.plain else []), *arguments.schemes.split(",")):
            one = measure_plain(keys, arguments) if name == "plain" else measure_scheme(keys, name, arguments)
            found.append(one)
            print(f"  late {one['late_s']}, back {one['back_s']}", file=sys.stderr, flush=True)
            if arguments.json:
                # After each of them: a long series that is cut off has not been in vain.
                arguments.json.write_text(json.dumps(found, indent=2) + "\n")
        if arguments.plain:
            show([one for one in found if one["keys"] == keys])
    if arguments.plot:
        plot(found, arguments.plot)


# -- understudy


class Killer:
    """Waits until the scheme is established, kills the primary's node, and so on."""

    def __init__(self, scheme: str, kills: int, rng: random.Random, keys: int) -> None:
        self.scheme, self.left, self.rng = scheme, kills, rng
        self.settled = SETTLED_LARGE if keys > LARGE else SETTLED
        self.ready_at: float | None = None
        self.before: dict[str, float] | None = None
        self.steady: dict[str, float] = {}
        self.killed: str | None = None

    def __call__(self, state: RunState, launcher: Launcher) -> None:
        totals = next((one for one in state.slices if one.slice == "totals[0]"), None)
        if totals is None or not self._established(state, totals):
            self.ready_at = None
            return
        if self.ready_at is None:
            self.ready_at = time.monotonic() + self._wait(state)
        if time.monotonic() < self.ready_at:
            return
        if not self.steady:
            self._measure(state, totals)
        self.ready_at = None
        if self.left == 0:
            launcher.finish()
            return
        self.left -= 1
        self.killed = totals.primary
        launcher.inject(f"kill:{totals.primary}")

    def _established(self, state: RunState, totals: SliceState) -> bool:
        ready = sum(node.ready and node.connected for node in state.nodes)
        if self.killed is not None and any(node.name == self.killed for node in state.nodes):
            return False
        well = totals.protection == self.scheme and totals.state == "running" and totals.lag <= 1
        return well and ready >= 3 and state.epoch >= self.settled

    def _wait(self, state: RunState) -> float:
        """Before the first kill long enough to see what the secondary costs; then some epochs, and a bit of one."""
        if self.before is None:
            self.before = used(state)
            return STEADY + self.rng.random()
        return 3 + self.rng.random()

    def _measure(self, state: RunState, totals: SliceState) -> None:
        """CPU by the query's own tasks and threads, and of whole nodes, in cores."""
        before, now = self.before or {}, used(state)
        passed = now["at"] - before["at"]
        spent = {name: round((now[name] - before.get(name, 0.0)) / passed, 4) for name in now if name != "at"}
        self.steady = {"primary": spent["primary"], "secondary": spent.get("follow", 0.0)}
        self.steady |= {"primary_node": spent[totals.primary]}
        if totals.secondary:
            self.steady["secondary_node"] = spent[totals.secondary]


def used(state: RunState) -> dict[str, float]:
    replicas = [r for node in state.nodes for r in node.replicas if str(r.slice) == "totals[0]"]
    found = {node.name: node.cpu_s for node in state.nodes}
    return found | {"primary" if r.primary else "follow": r.cpu_s for r in replicas} | {"at": time.monotonic()}


def measure_scheme(keys: int, scheme: str, arguments: argparse.Namespace) -> dict[str, Any]:
    print(f"{keys:,} keys: {scheme} …", file=sys.stderr, flush=True)
    killer = Killer(scheme, arguments.kills, random.Random(arguments.seed), keys)
    with scratch() as home:
        report = run(
            APP,
            home,
            nodes=3,
            replace=True,
            fast=False,
            backlog=100,
            scheme=scheme,
            profile=arguments.profile,
            settings={"keys": str(keys), "rows": str(arguments.rows)},
            drive=killer,
        )
        receipts = SqliteStore(home / "manager.db").receipts("out")
        events = [json.loads(line) for line in (home / "events.jsonl").read_text().splitlines()]
    if report.verdict != "exact":
        raise SystemExit(f"{scheme}: {report.verdict}: {report.failure}")
    began = next(event["at"] for event in events if event["kind"] == "running")
    delays = [(r.at, r.at - began - r.epoch * report.epoch_s) for r in receipts]
    kills = [event["fields"]["at"] for event in events if event["kind"] == "fault"]
    recoveries = [r for fault in report.faults for r in fault.recoveries if r.slice == "totals[0]"]
    steps = {name: statistics.median(r.steps[name] for r in recoveries) for name in recoveries[0].steps}
    return {
        "keys": keys,
        "name": scheme,
        "late_s": late(delays, kills),
        "back_s": [r.actual_s for r in recoveries],
        "predicted_s": [sum(r.predicted_s.values()) if r.predicted_s else None for r in recoveries],
        "steps": {name: round(seconds, 3) for name, seconds in steps.items()},
        "replayed": [r.epochs_replayed for r in recoveries],
        "cpu_share": round(killer.steady["secondary"] / killer.steady["primary"], 3),
        "steady": killer.steady,
        "costs": report.costs.schemes[scheme].model_dump() if scheme in report.costs.schemes else {},
    }


def late(delays: Sequence[tuple[float, float]], kills: Sequence[float]) -> list[float]:
    """For every kill, by how much the worst epoch until the next one came later than epochs usually do.

    Usual is the median of the last epochs before the first kill and, where a stream was settled again before the next
    one, of those too: the largest states take a while until they are quiet.
    """
    usual = min(statistics.median([delay for at, delay in delays if at < kill][-10:]) for kill in kills)
    found = []
    for kill, following in itertools.pairwise([*kills, float("inf")]):
        affected = [delay - usual for at, delay in delays if kill <= at < following]
        found.append(round(max(affected, default=0.0), 3))
    return found


# -- plain


def measure_plain(keys: int, arguments: argparse.Namespace) -> dict[str, Any]:
    print(f"{keys:,} keys: plain …", file=sys.stderr, flush=True)
    rng = random.Random(arguments.seed)
    with scratch() as home, Dropper(home, keys, arguments.rows) as dropper:
        kills: list[float] = []
        worker = start_worker(home)
        try:
            await_batches(home, SETTLED)
            dropper.hold()
            await_batches(home, dropper.dropped)
            dropper.go_on()
            await_batches(home, dropper.dropped + 10)
            for _ in range(arguments.kills):
                time.sleep(3 + rng.random())
                done = len(batches(home))
                kills.append(time.time())
                os.killpg(worker.pid, signal.SIGKILL)
                worker.wait()
                worker = start_worker(home)
                await_batches(home, done + 3)
                # The worst is over; it may work off what came in meanwhile before the next kill.
                dropper.hold()
                await_batches(home, dropper.dropped)
                dropper.go_on()
                await_batches(home, dropper.dropped + 3)
        finally:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
        times = batches(home)
        delays = [(at, at - dropper.due(number)) for number, at in sorted(times.items())]
    back = [min(at for at in times.values() if at > kill) - kill for kill in kills]
    return {"keys": keys, "name": "plain", "late_s": late(delays, kills), "back_s": [round(b, 3) for b in back]}


class Dropper:
    """Puts the file of an epoch into the input directory at its time."""

    def __init__(self, home: Path, keys: int, rows: int) -> None:
        from understudy.runtime.application import load

        self._reader = load(APP, {"keys": str(keys), "rows": str(rows)}).sources[0].source.open(0, 1, 1.0)
        self._home, self._stop = home, threading.Event()
        self._going = threading.Event()
        self._going.set()
        self._next_due, self._due = time.time() + 1, dict[int, float]()
        (home / "in").mkdir()
        self._thread = threading.Thread(target=self._drop, daemon=True)

    def due(self, epoch: int) -> float:
        return self._due[epoch]

    @property
    def dropped(self) -> int:
        return len(self._due)

    def hold(self) -> None:
        self._going.clear()

    def go_on(self) -> None:
        """In a rhythm that begins now."""
        self._next_due = time.time() + 1
        self._going.set()

    def __enter__(self) -> Dropper:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._going.set()
        self._thread.join()

    def _drop(self) -> None:
        for epoch in itertools.count():
            name = f"{epoch:06d}.parquet"
            pq.write_table(self._reader.read(epoch, None, None), self._home / name)
            self._going.wait()
            if self._stop.wait(max(0.0, self._next_due - time.time())):
                return
            (self._home / name).rename(self._home / "in" / name)
            self._due[epoch] = self._next_due
            self._next_due += 1


def start_worker(home: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, "--plain-worker", str(home / "in"), str(home)]
    log = (home / "worker.log").open("ab")
    return subprocess.Popen(command, start_new_session=True, stdout=log, stderr=log)


def batches(home: Path) -> dict[int, float]:
    """When each batch was first done."""
    path = home / "batches"
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    found: dict[int, float] = {}
    for number, at in lines:
        found.setdefault(int(number), float(at))
    return found


def await_batches(home: Path, count: int) -> None:
    deadline = time.monotonic() + 180
    while len(batches(home)) < count:
        if time.monotonic() > deadline:
            raise SystemExit((home / "worker.log").read_text()[-2000:])
        time.sleep(0.02)


def work_plainly(source: Path, home: Path) -> None:
    """What one writes today: Spark as it comes, a RocksDB store because the state is large."""
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import functions as F

    streaming = "spark.sql.streaming.stateStore"
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", "2")
        .config(
            f"{streaming}.providerClass", "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        )
        .config(f"{streaming}.rocksdb.changelogCheckpointing.enabled", "true")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )

    def done(rows: DataFrame, batch: int) -> None:
        pq.write_table(rows.toArrow(), home / "out.parquet")
        with (home / "batches").open("a") as file:
            file.write(f"{batch} {time.time()}\n")

    rows = spark.readStream.schema("key long, value long").option("maxFilesPerTrigger", 1).parquet(str(source))
    sums = rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("sum"))
    writer = sums.writeStream.outputMode("update").foreachBatch(done)
    writer.option("checkpointLocation", str(home / "checkpoint")).start().awaitTermination()


# -- showing


def target_of(scheme: str, keys: int) -> float | None:
    return HOT_WHEN_HUGE if scheme == "passive_standby_hot" and keys >= HUGE else TARGETS.get(scheme)


def show(found: Sequence[dict[str, Any]]) -> None:
    plain = next(one for one in found if one["name"] == "plain")
    base = statistics.median(plain["late_s"])
    print(f"\n{plain['keys']:,} keys: a plain restart is late by {base:.1f} s, back after "
          f"{statistics.median(plain['back_s']):.1f} s")  # fmt: skip
    head = f"{'scheme':22} {'late s':>7} {'worst':>7} {'ratio':>8} {'target':>7} {'back s':>7} {'CPU':>6}  steps"
    print(head)
    for one in (o for o in found if o["name"] != "plain"):
        usual, worst = statistics.median(one["late_s"]), max(one["late_s"])
        target = target_of(one["name"], one["keys"])
        goal = f"1/{1 / target:.0f}" if target else "1 epoch"
        ratio = f"1/{base / usual:.0f}" if usual > 0 else "-"
        steps = ", ".join(f"{name} {seconds:.2f}" for name, seconds in one["steps"].items() if seconds >= 0.005)
        cpu = "-" if one["cpu_share"] is None else f"{one['cpu_share']:.2f}"
        back = statistics.median(one["back_s"])
        print(f"{one['name']:22} {usual:7.2f} {worst:7.2f} {ratio:>8} {goal:>7} {back:7.2f} {cpu:>6}  {steps}")


def plot(found: Sequence[dict[str, Any]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2))
    for keys, marker in zip(sorted({one["keys"] for one in found}), "osD^", strict=False):
        ours = [one for one in found if one["keys"] == keys and one["name"] != "plain"]
        plain = statistics.median(next(o["late_s"] for o in found if o["keys"] == keys and o["name"] == "plain"))
        xs = [one["cpu_share"] or 0.0 for one in ours]
        ys = [max(0.01, statistics.median(one["late_s"])) for one in ours]
        (line,) = axes.plot(xs, ys, marker, label=f"{keys:,} keys")
        axes.axhline(plain, color=line.get_color(), linestyle=":", label=f"plain restart, {keys:,} keys")
        for one, x, y in zip(ours, xs, ys, strict=True):
            axes.annotate(one["name"].replace("_", " "), (x, y), fontsize=7, xytext=(4, 3), textcoords="offset points")
    axes.set(
        yscale="log", xlabel="CPU of the secondary, as a share of the primary's", ylabel="late after a kill, seconds"
    )
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
