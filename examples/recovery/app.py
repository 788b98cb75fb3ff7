"""The synthetic topology of Su and Zhou 2016, Figure 6, for two cores: four sources, then operators 4-2-1 in a tree.

    understudy run examples/recovery/app.py --nodes 4 --domains 2 --epochs 60 --fault kill:domain-1@epoch20
    understudy run examples/recovery/app.py --set window=30 --set replicas=0

Every operator keeps a sliding window of --set window=10 seconds that moves on by a second, and emits half as many rows
as it reads. --set replicas=6 of the eleven slices have working secondaries; when a slice without one has been away for
--set tentative_after="1 s", the sink gets what the others make. `benchmarks/correlated.py` measures with it.
"""

from __future__ import annotations

from functools import partial, reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from recovery_rows import SCHEMA, keys_of, rows_of

import understudy as us

SOURCES = 4
EPOCH_S = us.setting("epoch", 1.0)
WINDOW = f"{us.setting('window', 10)} seconds"
RATE, SEED = us.setting("rate", 96.0), us.setting("seed", 0)
# Slices that the plan leaves out; --set scheme=passive_replication: nothing but checkpoints, as in the paper.
RECOVERY = us.Recovery(scheme=us.setting("scheme", "deployed"), ship_every=us.setting("ship_every", 5))

app = us.Topology(
    "recovery",
    epoch=EPOCH_S,
    tentative_after=us.setting("tentative_after", "1 s"),
    replicas=us.setting("replicas", 6),
)


def make(source: int, epoch: int, _slice: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return rows_of(source, epoch, rows, EPOCH_S, keys_of(RATE), rng)


def smooth(*inputs: DataFrame) -> DataFrame:
    """The sum of every pair of keys over the window, each second, when the window is over.

    The watermark is that of all inputs together: it goes on when one of them is missing.
    """
    rows = reduce(DataFrame.unionByName, inputs).withWatermark("at", "0 seconds")
    windows = rows.groupBy(F.window("at", WINDOW, "1 second"), F.expr("key div 2").alias("key"))
    sums = windows.agg(F.sum("value").alias("value"))
    return sums.select("key", (F.col("window.end") - F.expr("interval 1 second")).alias("at"), "value")


def one(rows: DataFrame) -> DataFrame:
    return smooth(rows)


def two(left: DataFrame, right: DataFrame) -> DataFrame:
    return smooth(left, right)


sources = [
    app.source(f"s{i}", us.sources.Generator(partial(make, i), SCHEMA, rate=RATE, seed=SOURCES * SEED + i))
    for i in range(SOURCES)
]
leaves = [app.operator(source, name=f"leaf{i}", recovery=RECOVERY)(one) for i, source in enumerate(sources)]
mids = [app.operator(*leaves[i : i + 2], name=f"mid{i // 2}", recovery=RECOVERY)(two) for i in range(0, SOURCES, 2)]
root = app.operator(*mids, name="root", recovery=RECOVERY)(two)

app.sink("out", root, us.sinks.JsonLines("smoothed"))
