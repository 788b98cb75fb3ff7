"""Card fraud: every payment is judged by what its card did before, and shops that lose card numbers stand out.

    understudy run examples/cards/app.py --nodes 3 --epochs 60

Three rules with a state for every card, in transformWithState: velocity (more than three payments in five minutes),
distance (faster than an airliner from the last place) and spike (ten times the usual amount). An epoch of a second
stands for a minute of payments (--set speed=60), which are made up: --set rate=200 a second, --set cards=5000.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple
from typing import Any

import numpy as np
import pyarrow as pa
from cards_payments import SCHEMA, payments
from cards_rules import Card, Payment
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import understudy as us

EPOCH_S = 1.0
app = us.Topology("cards", epoch=EPOCH_S)

SPEED = us.setting("speed", 60.0)
CARDS = us.setting("cards", 5000)
RATE, SEED = us.setting("rate", 200.0), us.setting("seed", 0)


def make(epoch: int, _slice: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return payments(epoch, rows, SPEED * EPOCH_S, CARDS, rng)


paid = app.source("payments", us.sources.Generator(make, SCHEMA, rate=RATE, seed=SEED))


class Judge(StatefulProcessor):
    """The rules, for one card at a time."""

    STATE = "recent array<long>, at long, latitude double, longitude double, payments long, cents long"
    OUTPUT = "card long, payment long, merchant int, at long, cents long, rule string, value long"

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._card = handle.getValueState("card", self.STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        card = Card(*(self._card.get() or ()))
        # Spark promises no order of the rows in a batch, so payments are put in order of time and number.
        for payment in sorted(Payment(*(row[name] for name in Payment._fields)) for row in rows):
            for rule, value in card.pay(payment):
                at, number, merchant, cents, *_ = payment
                yield Row(card=key[0], payment=number, merchant=merchant, at=at, cents=cents, rule=rule, value=value)
        self._card.update(astuple(card))

    def close(self) -> None:
        pass


# Fraud is stopped while it happens or not at all: two copies judge every payment, and the second one publishes its
# alerts the moment the first is gone.
@app.operator(paid, key="card", slices=2, recovery=us.Recovery(scheme="active_standby"))
def alerts(payments: DataFrame) -> DataFrame:
    """A row for every rule that a payment breaks."""
    by_card = payments.withColumn("at", F.unix_micros("at")).groupBy("card")
    found = by_card.transformWithState(Judge(), Judge.OUTPUT, "append", "none")
    return found.withColumn("at", F.timestamp_micros("at"))


# For people who look at it in the morning: a checkpoint is enough.
@app.operator(alerts, output_mode="update")
def shops(alerts: DataFrame) -> DataFrame:
    """How many alerts every shop has had since the beginning, and how much money they were about."""
    return alerts.groupBy("merchant").agg(F.count("*").alias("alerts"), F.sum("cents").alias("cents"))


app.sink("alerts-out", alerts, us.sinks.JsonLines("alerts"))
app.sink("shops-out", shops, us.sinks.JsonLines("shops"))
