"""How fast rows are hashed, digested and divided, on one core.

    python benchmarks/hashing.py [--rows 4000000] [--repeats 5]

Prints the best of the repeats, in million rows a second.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from understudy.model.hashing import digest, partition, row_hashes, spread


def best(work: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    rows: int = arguments.rows
    numbers = pa.table({"a": rng.integers(0, 1 << 40, rows), "b": rng.integers(0, 1 << 40, rows)})
    # Ten digits each, made in Arrow: the benchmark should not take longer to prepare than to run.
    texts = pa.table({"s": pa.array(rng.integers(10**9, 10**10, rows)).cast(pa.string())})
    cases: dict[str, Callable[[], object]] = {
        "digest, two int64 columns": lambda: digest(numbers),
        "digest, one 10-byte string column": lambda: digest(texts),
        "row_hashes, one int64 column": lambda: row_hashes(numbers, ["a"]),
        "partition into 4, two int64 columns": lambda: partition(numbers, ["a"], 4),
        "partition into 4, one string column": lambda: partition(texts, ["s"], 4),
        "spread over 4, two int64 columns": lambda: spread(numbers, 4),
    }
    for name, work in cases.items():
        print(f"{name:40s} {rows / best(work, arguments.repeats) / 1e6:8.1f} M rows/s")


if __name__ == "__main__":
    main()
