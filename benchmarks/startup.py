"""How fast a node starts, and what a micro-batch forks: plain PySpark against ours, in one run.

Every start is a new Python process and a new JVM. Plain is PySpark as installed with one setting,
spark.sql.shuffle.partitions=1: with its default of 200 the comparison would be about that.
Forks are counted by strace as execve calls of the JVM and its children over some steady batches.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

MODES = ("plain", "quick", "full")
# Hadoop's and Spark's own choices, to put back the default file system under an otherwise equal session.
DEFAULT_FILES = {
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.LocalFs",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
    ),
}


def open_session(mode: str, folder: Path, files: str, rocksdb: bool) -> SparkSession:
    if mode == "plain":
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "1")
        return builder.getOrCreate()
    from understudy.stream import session
    from understudy.stream.profile import FULL, QUICK

    profile = replace(QUICK if mode == "quick" else FULL, rocksdb=rocksdb)
    extra = DEFAULT_FILES if files == "default" else {}
    return session.start("startup", "local[2]", profile, folder, extra)


def wait(batches: list[float], count: int, query: Any) -> None:
    while len(batches) < count:
        if not query.isActive:
            raise SystemExit(f"the query ended: {query.exception()}")
        time.sleep(0.005)


def child(options: argparse.Namespace) -> dict[str, Any]:
    began = time.perf_counter()
    folder = Path(tempfile.mkdtemp(prefix="startup-"))
    spark = open_session(options.child, folder, options.files, options.rocksdb)
    ready = time.perf_counter()
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1000).option("numPartitions", 1)
    counts = rows.load().selectExpr("value % 100 AS key").groupBy("key").count()
    batches: list[float] = []

    def sink(frame: DataFrame, _: int) -> None:
        frame.toArrow()
        batches.append(time.perf_counter())

    writer = counts.writeStream.foreachBatch(sink).outputMode("update")
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    wait(batches, 1, query)
    found: dict[str, Any] = {
        "session": ready - began,
        "first": batches[0] - ready,
        "total": batches[0] - began,
    }
    if options.trace:
        wait(batches, 30, query)
        found["batch"] = statistics.median(b - a for a, b in pairwise(batches[15:]))
        found["execs"] = trace(spark, batches, query, options.trace)
    query.stop()
    spark.stop()
    shutil.rmtree(folder, ignore_errors=True)
    return found


def trace(spark: SparkSession, batches: list[float], query: Any, count: int) -> dict[str, float]:
    """Programs executed per batch by the JVM and whatever it starts, over `count` batches."""
    jvm: Any = spark._jvm
    pid = jvm.java.lang.ProcessHandle.current().pid()
    with tempfile.NamedTemporaryFile("r", prefix="execs-") as log:
        command = ["strace", "-f", "-qq", "-e", "trace=execve", "-o", log.name, "-p", str(pid)]
        tracer = subprocess.Popen(command)
        # The first batch under the tracer may have begun before it: begin with a whole one.
        wait(batches, len(batches) + 2, query)
        first, start = len(batches), len(Path(log.name).read_text())
        wait(batches, first + count, query)
        text, last = Path(log.name).read_text()[start:], len(batches)
        # Killed, not asked: detaching politely from a JVM of many threads takes minutes on a busy machine.
        tracer.kill()
        tracer.wait()
    programs = Counter(successful(text))
    return {program: round(number / (last - first), 2) for program, number in programs.most_common()}


def successful(log: str) -> Iterator[str]:
    """The programs that did start: a name is tried in every folder of the PATH, and all but one try fail."""
    tried: dict[str, str] = {}
    for line in log.splitlines():
        pid = line.split(maxsplit=1)[0]
        if name := re.search(r'execve\("([^"]+)"', line):
            tried[pid] = Path(name[1]).name
        if "execve" in line and line.rstrip().endswith("= 0"):
            yield tried[pid]


def run(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=300, check=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    sys.stderr.write(f"{' '.join(arguments)}: {json.dumps(answer)}\n")
    return answer


def starts(repeats: int) -> dict[str, dict[str, float]]:
    """Medians; the modes take turns, so that a slow minute of the machine hits all of them."""
    runs: dict[str, list[dict[str, float]]] = {mode: [] for mode in MODES}
    for _ in range(repeats):
        for mode in MODES:
            runs[mode].append(run("--child", mode))
    return {
        mode: {key: statistics.median(one[key] for one in found) for key in ("session", "first", "total")}
        for mode, found in runs.items()
    }


def forks(batches: int) -> list[dict[str, Any]]:
    found = []
    for store in ("hdfs-backed", "rocksdb"):
        for files in ("default", "ours"):
            rocksdb = ["--rocksdb"] if store == "rocksdb" else []
            one = run("--child", "quick", "--files", files, "--trace", str(batches), *rocksdb)
            found.append({"store": store, "files": files, "batch": one["batch"], "execs": one["execs"]})
    return found


def show(medians: dict[str, dict[str, float]], traced: list[dict[str, Any]]) -> None:
    sys.stdout.write("start              session   first batch   together   against plain\n")
    for mode, times in medians.items():
        ratio = medians["plain"]["total"] / times["total"]
        row = f"{mode:<16} {times['session']:7.2f} s {times['first']:11.2f} s {times['total']:8.2f} s"
        sys.stdout.write(f"{row} {ratio:12.1f} x\n")
    for one in traced:
        execs = ", ".join(f"{name} {number}" for name, number in one["execs"].items()) or "none"
        where = f"{one['store']}, {one['files']} file system"
        sys.stdout.write(f"{where:<36} {one['batch'] * 1000:5.0f} ms a batch; programs run per batch: {execs}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--batches", type=int, default=20, help="batches under strace; 0 for none")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", choices=MODES, help=argparse.SUPPRESS)
    parser.add_argument("--files", choices=("default", "ours"), default="ours", help=argparse.SUPPRESS)
    parser.add_argument("--rocksdb", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--trace", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        sys.stdout.write(json.dumps(child(options)) + "\n")
        return
    medians = starts(options.repeats)
    traceable = options.batches and shutil.which("strace")
    traced = forks(options.batches) if traceable else []
    if options.json:
        sys.stdout.write(json.dumps({"starts": medians, "forks": traced}) + "\n")
    else:
        show(medians, traced)
        if not traceable:
            sys.stdout.write("forks were not counted: no strace here, or --batches 0\n")


if __name__ == "__main__":
    main()
