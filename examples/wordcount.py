"""The ten most frequent words of every five seconds, in text that is made up as it goes.

    understudy run examples/wordcount.py --nodes 3 --epochs 30

Settings: --set rate=1000 (lines a second), --set window="5 seconds", --set seed=0.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import understudy as us

app = us.Topology("wordcount", epoch="1 second")

WINDOW = us.setting("window", "5 seconds")
WORDS = """the and to of a in was he that it his her you as had with for she not but at on is him said out be all
stage light curtain actor lead line cue prompt part role scene act play voice mask crowd night house box placed door
bell trap rope flag drum horn song step turn bow exit enter wait watch listen learn repeat forget remember recover
stand ready known heart whole always once again before after while moment silence applause""".split()  # noqa: SIM905
CHANCES = 1 / np.arange(1, len(WORDS) + 1)  # Zipf: the second word is half as frequent as the first
CHANCES /= CHANCES.sum()
WORDS_A_LINE = 8


def lines(epoch: int, _slice: int, rows: int, rng: np.random.Generator) -> pa.Table:
    """Lines of random words. Their times follow from the epoch: a clock would say something else in a replay."""
    words = np.array(WORDS)[rng.choice(len(WORDS), (rows, WORDS_A_LINE), p=CHANCES)]
    at = epoch * 1_000_000 + np.arange(rows) * 1_000_000 // max(rows, 1)
    return pa.table({"text": [" ".join(line) for line in words], "at": pa.array(at, pa.timestamp("us", tz="UTC"))})


text = app.source(
    "text",
    us.sources.Generator(lines, "text string, at timestamp", rate=us.setting("rate", 1000), seed=us.setting("seed", 0)),
)


@app.operator(text)
def words(lines: DataFrame) -> DataFrame:
    return lines.select(F.explode(F.split("text", " ")).alias("word"), "at")


@app.operator(words, key="word", slices=2)
def counts(words: DataFrame) -> DataFrame:
    counted = words.withWatermark("at", "1 second").groupBy(F.window("at", WINDOW), "word").count()
    return counted.select(F.window_time("window").alias("at"), "word", "count")


@app.operator(counts)
def top(counts: DataFrame) -> DataFrame:
    """A window is ranked when a count of a later one arrives: then both slices have sent all of theirs."""
    ranked = F.slice(F.sort_array(F.collect_list(F.struct("count", "word")), asc=False), 1, 10)
    windows = counts.withWatermark("at", "0 seconds").groupBy(F.window("at", WINDOW)).agg(ranked.alias("top"))
    return windows.select(
        F.col("window.start").alias("start"),
        F.col("top.word").alias("words"),
        F.col("top.count").alias("counts"),
    )


app.sink("out", top, us.sinks.JsonLines("top"))
