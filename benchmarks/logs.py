"""What a log costs between two processes: from publishing a bag to reading it elsewhere, and bags in a row.

    python benchmarks/logs.py [--sizes 1 100 4000] [--bags 40] [--rounds 3] [--run-epochs 0] [--brokers 1]

Starts Kafka on this machine (docs/services.md). Rounds of the logs alternate. Sizes are kilobytes of a bag. `seen` is
the time from the call of `publish` until another process has fetched the bag; `publish` is how long the call took.
With --run-epochs N a topology of one stateful operator is run for N epochs on two nodes, as fast as it can be.
"""

from __future__ import annotations

import argparse
import multiprocessing
import secrets
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pyarrow as pa

from understudy.log import bag
from understudy.log.disk import Disk
from understudy.log.interface import Log
from understudy.log.place import LogPlace
from understudy.log.registry import open_log
from understudy.model.config import LogSection
from understudy.model.names import SliceId
from understudy.testing import services
from understudy.testing.cluster import run

SLICE, READER = SliceId("words", 0), SliceId("counts", 0)
APP = Path(__file__).parents[1] / "tests" / "apps" / "sums.py"
TRIM_EVERY = 5


def a_bag(epoch: int, size: int) -> bag.Bag:
    rng = np.random.default_rng(epoch)
    return bag.make(SLICE, epoch, pa.table({"n": rng.integers(0, 1 << 60, max(1, size // 8))}), ())


def follow(place: LogPlace, epochs: int, pipe: Connection) -> None:
    """Fetches every epoch and says when, by the clock that all processes of a machine share."""
    log = open_log(place)
    pipe.send(0.0)
    for epoch in range(epochs):
        if not log.await_bags([SLICE], epoch, 60.0) or log.fetch(SLICE, epoch) is None:
            raise RuntimeError(f"epoch {epoch} did not come")
        pipe.send(time.monotonic())
        log.acknowledge(READER, SLICE, epoch)
    pipe.recv()
    log.close()


@contextmanager
def two_processes(url: str, directory: Path, epochs: int) -> Iterator[tuple[Log, Connection]]:
    """A log here, and one in a process that follows it."""
    name = secrets.token_hex(4)
    home = directory / name
    settings, slices = LogSection(url=url), (SLICE, READER)
    here, there = (LogPlace(settings, home, home / side, name, slices, Disk()) for side in ("here", "there"))
    context = multiprocessing.get_context("spawn")
    pipe, other = context.Pipe()
    child = context.Process(target=follow, args=(there, epochs, other))
    child.start()
    pipe.recv()
    log = open_log(here)
    yield log, pipe
    pipe.send(None)
    child.join()
    log.close()


def one_by_one(log: Log, pipe: Connection, bags: Sequence[bag.Bag]) -> tuple[list[float], list[float]]:
    """Milliseconds until every bag was seen, and of the calls."""
    seen, called = [], []
    for made in bags:
        began = time.monotonic()
        log.publish(made, durable=False)
        called.append((time.monotonic() - began) * 1000)
        seen.append((pipe.recv() - began) * 1000)
        if made.header.epoch % TRIM_EVERY == 0:
            log.trim(SLICE, [READER])
    return seen, called


def in_a_row(log: Log, pipe: Connection, bags: Sequence[bag.Bag]) -> float:
    """Bags a second until the last was seen."""
    began = time.monotonic()
    for made in bags:
        log.publish(made, durable=False)
        if made.header.epoch % TRIM_EVERY == 0:
            log.trim(SLICE, [READER])
    last = [pipe.recv() for _ in bags][-1]
    return len(bags) / float(last - began)


def compare(urls: dict[str, str], directory: Path, size: int, count: int, rounds: int) -> None:
    bags = [a_bag(epoch, size) for epoch in range(2 * count)]
    found: dict[str, list[list[float]]] = defaultdict(lambda: [[], [], []])
    for _ in range(rounds):
        for name, url in urls.items():
            with two_processes(url, directory, 2 * count) as (log, pipe):
                seen, called = one_by_one(log, pipe, bags[:count])
                found[name][0] += seen
                found[name][1] += called
                found[name][2].append(in_a_row(log, pipe, bags[count:]))
    for name, (seen, called, rates) in found.items():
        late = statistics.quantiles(seen, n=20)[-1]
        print(
            f"{name:6s} {size // 1000:6d} KB  seen {statistics.median(seen):7.2f} ms (95 %: {late:7.2f})  "
            f"publish {statistics.median(called):7.2f} ms  in a row {statistics.median(rates):7.1f} bags/s",
            flush=True,
        )


def runs(urls: dict[str, str], directory: Path, epochs: int, rounds: int) -> None:
    for number in range(rounds):
        for name, url in urls.items():
            home = directory / f"run-{name}-{number}"
            report = run(APP, home, epochs=epochs, nodes=2, config={"log": {"url": url}})
            rate = epochs / report.elapsed_s
            print(f"{name:6s} {epochs} epochs: {report.verdict}, {rate:.2f} epochs/s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 100, 4000])
    parser.add_argument("--bags", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--run-epochs", type=int, default=0)
    parser.add_argument("--brokers", type=int, default=1, choices=(1, 3))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, services.Kafka(arguments.brokers) as kafka:
        urls = {"file": "file:", "kafka": f"kafka://{kafka.address}/benchmark"}
        for size in arguments.sizes:
            compare(urls, Path(place), size * 1000, arguments.bags, arguments.rounds)
        if arguments.run_epochs:
            runs(urls, Path(place), arguments.run_epochs, arguments.rounds)


if __name__ == "__main__":
    main()
