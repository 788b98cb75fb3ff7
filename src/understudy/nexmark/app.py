"""The application: the queries that `query` names, over one stream of events. `understudy nexmark` runs it.

    understudy run app.py --set query=q3,q5 --set rate=1000

Settings: query, rate (events a second), seed, epoch (its length), group (events arrive out of order within groups of so
many), start (event time of the first event).
"""

from __future__ import annotations

from datetime import datetime

import understudy as us
from understudy.model.durations import seconds
from understudy.nexmark.catalogue import chosen
from understudy.nexmark.events import SCHEMA, START, Events

EPOCH = us.setting("epoch", "1 second")
QUERIES = chosen(us.setting("query", "q0"))
RATE, SEED = us.setting("rate", 1000.0), us.setting("seed", 0)
GROUP, BEGIN = us.setting("group", 1), us.setting("start", START.isoformat())

app = us.Topology("nexmark-" + "-".join(query.name for query in QUERIES), epoch=EPOCH)
made = Events(RATE, seconds(EPOCH), SEED, GROUP, datetime.fromisoformat(BEGIN))
events = app.source("events", us.sources.Generator(made.make, SCHEMA, rate=RATE, seed=SEED))

for query in QUERIES:
    stream = events.name
    for stage in query.stages:
        stream = app.operator(stream, name=stage.name, output_mode=stage.output_mode)(stage.build).name
    app.sink(f"{query.name}-out", stream, us.sinks.Parquet(query.name))
