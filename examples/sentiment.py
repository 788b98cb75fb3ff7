"""How people feel about a few things: short messages that name them, scored by a lexicon, in sliding windows.

    understudy run examples/sentiment.py --nodes 3 --epochs 60
    understudy run examples/sentiment.py --set shape=spikes --set rate=5000

The first application of the seeds: one operator keeps the messages with certain keywords, the next scores each of them
and summarises ten seconds of them, every two seconds. The median needs all scores of a window, so the state follows the
load, which is what makes recovery times change.

Settings: --set rate=1000 (messages a second), --set shape=constant (or diurnal, spikes, steps, messages),
--set keywords=stage,music,film, --set seed=0, --set objective=5 (seconds; 0 or more lets the controller choose).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

import understudy as us

EPOCH_S = 1.0
app = us.Topology("sentiment", epoch=EPOCH_S)

RATE = us.sources.shapes.named(us.setting("shape", "constant"), float(us.setting("rate", 1000)))
KEYWORDS = tuple(word for word in us.setting("keywords", "stage,music,film").split(",") if word)
OBJECTIVE = us.setting("objective", -1.0)
RECOVERY = us.Recovery(objective=OBJECTIVE) if OBJECTIVE >= 0 else us.Recovery()

LEXICON = {
    "wonderful": 3, "brilliant": 3, "moving": 2, "great": 2, "lovely": 2, "good": 1, "fine": 1, "funny": 1,
    "slow": -1, "loud": -1, "odd": -1, "bad": -2, "dull": -2, "boring": -2, "awful": -3, "dreadful": -3,
}  # fmt: skip
TOPICS = ("stage", "music", "film", "food", "weather", "traffic", "football", "work")
PLAIN = ("the", "a", "this", "was", "is", "so", "and", "but", "again", "tonight", "really", "today", "not", "very")
WORDS = np.array([*LEXICON, *PLAIN])
WORDS_A_MESSAGE = 6


def messages(epoch: int, _slice: int, rows: int, rng: np.random.Generator) -> pa.Table:
    """A topic and some words, of which about half mean something. Times follow from the epoch, never from a clock."""
    topics = np.array(TOPICS)[rng.integers(0, len(TOPICS), rows)]
    words = WORDS[rng.integers(0, len(WORDS), (rows, WORDS_A_MESSAGE))]
    at = int(epoch * EPOCH_S * 1e6) + np.arange(rows) * int(EPOCH_S * 1e6) // max(rows, 1)
    text = [f"{topic} {' '.join(line)}" for topic, line in zip(topics, words, strict=True)]
    return pa.table({"text": text, "at": pa.array(at, pa.timestamp("us", tz="UTC"))})


posts = app.source(
    "posts", us.sources.Generator(messages, "text string, at timestamp", rate=RATE, seed=us.setting("seed", 0))
)


@app.operator(posts, recovery=RECOVERY)
def mentions(posts: DataFrame) -> DataFrame:
    """The messages that name one of the keywords, one row for every keyword they name."""
    words = F.array_distinct(F.split("text", " "))
    named = F.array_intersect(words, F.array(*[F.lit(word) for word in KEYWORDS]))
    return posts.select(F.explode(named).alias("topic"), "text", "at")


def score(text: str) -> Column:
    """The sum of the lexicon's values of the words of a message; words it does not know are worth nothing."""
    values = F.create_map(*[F.lit(part) for pair in LEXICON.items() for part in pair])
    known = F.transform(F.split(text, " "), lambda word: F.coalesce(values[word], F.lit(0)))
    return F.aggregate(known, F.lit(0), lambda total, value: total + value)


@app.operator(mentions, key="topic", slices=2, recovery=RECOVERY)
def moods(mentions: DataFrame) -> DataFrame:
    scored = mentions.select("topic", "at", score("text").alias("score"))
    window = F.window("at", "10 seconds", "2 seconds")
    scores = F.sort_array(F.collect_list("score"))
    summed = scored.withWatermark("at", "1 second").groupBy(window, "topic")
    summary = summed.agg(F.avg("score").alias("mean"), scores.alias("scores"))
    return summary.select(
        F.col("window.start").alias("start"),
        "topic",
        F.size("scores").alias("messages"),
        F.round("mean", 6).alias("mean"),
        F.element_at("scores", (F.size("scores") / 2).cast("int") + 1).alias("median"),
    )


app.sink("out", moods, us.sinks.JsonLines("moods"))
