"""What understudy costs: the same stateful query under plain Structured Streaming and under understudy, side by side.

Same rows, same epochs, same Spark settings, one node, no protection. The plain query does what one writes today: it
reads Parquet files, one per batch, with Spark's own file source, and writes each batch to Parquet in `foreachBatch`.
Every size is measured twice: as fast as it goes (throughput, from the completion of one epoch to that of the next) and
at a steady rhythm (latency, from the moment the rows are there to the moment the output file is). The two systems take
turns, each in a process of its own, so that a noisy neighbour hits both.

    python benchmarks/overhead.py [--sizes 10000,100000,1000000] [--epochs 40] [--rounds 3] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

APP = Path(__file__).with_name("stateful.py")
WARM_SHARE = 0.4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000,100000,1000000", help="rows an epoch")
    parser.add_argument("--epochs", type=int, default=40, help="epochs per measurement; the first are for warming up")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", default="full")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--plain", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.plain:
        print(json.dumps(plain(*arguments.plain)))
        return
    found = [measure(int(size), arguments) for size in arguments.sizes.split(",")]
    show(found)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2))


def measure(size: int, arguments: argparse.Namespace) -> dict[str, Any]:
    rounds: dict[str, list[dict[str, float]]] = {"plain": [], "understudy": []}
    for number in range(arguments.rounds):
        for name, run in (("plain", run_plain), ("understudy", run_understudy)):
            print(f"{size:,} rows, round {number + 1}: {name} …", file=sys.stderr, flush=True)
            rounds[name].append(run(size, arguments))
    medians = {
        name: {key: statistics.median(one[key] for one in found) for key in found[0]} for name, found in rounds.items()
    }
    return {"rows": size, **medians, "rounds": rounds}


def run_plain(size: int, arguments: argparse.Namespace) -> dict[str, float]:
    results: dict[str, float] = {}
    for mode in ("fast", "paced"):
        command = [sys.executable, __file__, "--plain", str(size), str(arguments.epochs), mode, arguments.profile]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        results |= json.loads(output.splitlines()[-1])
    return results


def run_understudy(size: int, arguments: argparse.Namespace) -> dict[str, float]:
    results: dict[str, float] = {}
    for mode in ("fast", "paced"):
        with scratch() as home:
            results |= under_understudy(size, arguments.epochs, mode, arguments.profile, home)
    return results


def under_understudy(size: int, epochs: int, mode: str, profile: str, home: Path) -> dict[str, float]:
    from understudy.coordination.sqlite import SqliteStore
    from understudy.model.run import Rhythm
    from understudy.testing.cluster import run

    epoch_s = rhythm(size)
    settings = {"rows": str(size), "epoch_s": str(epoch_s)}
    options: dict[str, Any] = {"nodes": 1, "master": "local[2]", "profile": profile, "fast": mode == "fast"}
    usage = ForkCounter(epochs)
    report = run(APP, home, epochs=epochs, settings=settings, watch=usage.see, **options)
    assert report.verdict == "exact", report.failure
    store = SqliteStore(home / "manager.db")
    done = [receipt.at for receipt in store.receipts("out")]
    if mode == "fast":
        return throughput(size, done) | {"forks": usage.per_epoch()}
    due = Rhythm(**store.fact("rhythm"))
    return latency([at - due.due(epoch) for epoch, at in enumerate(done)])


def plain(size_text: str, epochs_text: str, mode: str, profile: str) -> dict[str, float]:
    """One measurement of the plain query, in a fresh process."""
    import stateful

    from understudy.stream import session
    from understudy.stream.profile import PROFILES

    size, epochs = int(size_text), int(epochs_text)
    with scratch() as home:
        spark: Any = session.start("plain", "local[2]", PROFILES[profile], home / "spark")
        source, ready = home / "in", home / "ready"
        source.mkdir(parents=True)
        ready.mkdir()
        for epoch in range(epochs):
            rng = np.random.default_rng(np.random.SeedSequence([1, 0, epoch]))
            pq.write_table(stateful.make(epoch, 0, size, rng), ready / f"{epoch:06d}.parquet", compression="none")
        done: list[float] = []
        batches = threading.Event()

        def write(frame: Any, batch: int) -> None:
            frame.write.mode("overwrite").parquet(str(home / "out" / f"{batch:06d}"))
            done.append(time.time())
            if len(done) == epochs:
                batches.set()

        reader = spark.readStream.schema(stateful.SCHEMA).option("maxFilesPerTrigger", 1)
        query = stateful.sums(reader.parquet(str(source))).writeStream.outputMode("update")
        if mode == "fast":
            for path in sorted(ready.iterdir()):
                path.rename(source / path.name)
        running = query.option("checkpointLocation", str(home / "checkpoint")).foreachBatch(write).start()
        due: list[float] = []
        forks = ForkCounter(epochs)
        if mode == "paced":
            due = feed(sorted(ready.iterdir()), source, rhythm(size))
        while not batches.wait(0.05):
            forks.see_count(len(done))
            if running.exception() is not None:
                raise RuntimeError(str(running.exception()))
        running.stop()
        session.stop_jvm()
    if mode == "fast":
        return throughput(size, done) | {"forks": forks.per_epoch()}
    return latency([at - moment for at, moment in zip(done, due, strict=True)])


def feed(files: list[Path], source: Path, epoch_s: float) -> list[float]:
    """Lets one file appear after the other, in one step each, at a steady rhythm."""
    start = time.time()
    due = [start + number * epoch_s for number in range(len(files))]
    for path, moment in zip(files, due, strict=True):
        time.sleep(max(0.0, moment - time.time()))
        path.rename(source / path.name)
    return due


def rhythm(size: int) -> float:
    """Long enough that neither system falls behind, so that latency is not queueing."""
    return 1.0 if size < 500_000 else 2.0


def throughput(size: int, done: list[float]) -> dict[str, float]:
    steady = done[int(len(done) * WARM_SHARE) :]
    per_epoch = (steady[-1] - steady[0]) / (len(steady) - 1)
    return {"rows_per_s": size / per_epoch, "epoch_ms": per_epoch * 1000}


def latency(delays: list[float]) -> dict[str, float]:
    steady = delays[int(len(delays) * WARM_SHARE) :]
    return {"latency_ms": statistics.median(steady) * 1000, "latency_p95_ms": float(np.quantile(steady, 0.95)) * 1000}


class ForkCounter:
    """Processes started on this machine per epoch, in the second half of a run, from the kernel's own count.

    Threads count too, so a quiet system shows a few; a chmod or readlink per file would show dozens.
    """

    def __init__(self, epochs: int) -> None:
        self._half = epochs // 2
        self._epochs = epochs
        self._start: tuple[int, int] | None = None
        self._last = (0, 0)

    def see(self, state: Any) -> None:
        self.see_count(state.epoch)

    def see_count(self, epoch: int) -> None:
        if epoch >= self._half and epoch < self._epochs:
            self._last = (epoch, started_processes())
            self._start = self._start or self._last

    def per_epoch(self) -> float:
        if self._start is None or self._last[0] == self._start[0]:
            return float("nan")
        return (self._last[1] - self._start[1]) / (self._last[0] - self._start[0])


def started_processes() -> int:
    line = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("processes"))
    return int(line.split()[1])


@contextmanager
def scratch() -> Iterator[Path]:
    root = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    path = Path(tempfile.mkdtemp(prefix="overhead-", dir=root))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def show(found: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("rows an epoch", "", "plain", "understudy", "ratio", "target", box=None)
    lines: list[tuple[str, str, Callable[[float], str], str]] = [
        ("rows_per_s", "throughput, rows/s", "{:,.0f}".format, ">= 0.85"),
        ("epoch_ms", "time per epoch, ms", "{:,.0f}".format, ""),
        ("latency_ms", "latency, ms", "{:,.0f}".format, "<= 1.30"),
        ("latency_p95_ms", "latency 95 %, ms", "{:,.0f}".format, ""),
        ("forks", "processes and threads started per epoch", "{:,.1f}".format, ""),
    ]
    for size in found:
        for key, label, form, target in lines:
            left, right = size["plain"][key], size["understudy"][key]
            ratio = f"{right / left:.2f}" if left else ""
            table.add_row(f"{size['rows']:,}", label, form(left), form(right), ratio, target)
        table.add_section()
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
