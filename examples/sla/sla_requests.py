"""Requests of a few services as a load balancer logs them, with an incident now and then."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

SCHEMA = "service string, timestamp timestamp, value double"
REAL_SCHEMA = "timestamp timestamp, value double"
"""The columns of a latency series of the Numenta Anomaly Benchmark, which has a header: one service, milliseconds."""

START_S = 1_767_225_600  # 2026-01-01 00:00:00 UTC
# Name, median in milliseconds, spread of the logarithm, share of requests.
SERVICES = (
    ("search", 45.0, 0.5, 0.30),
    ("catalogue", 12.0, 0.4, 0.25),
    ("cart", 20.0, 0.4, 0.20),
    ("login", 80.0, 0.3, 0.10),
    ("checkout", 110.0, 0.6, 0.10),
    ("export", 400.0, 0.9, 0.05),
)
INCIDENT_EVERY, INCIDENT_LASTS = 20, 6  # epochs
SLOWER = 8.0  # half of the requests of the service that has an incident


def requests(epoch: int, rows: int, seconds: float, rng: np.random.Generator) -> pa.Table:
    """The requests that end in an epoch that stands for so many seconds, in order of time.

    Every twenty epochs another service has an incident: for six epochs half of its requests take eight times as long.
    """
    names, median, spread, share = (np.array(column) for column in zip(*SERVICES, strict=True))
    service = rng.choice(len(SERVICES), rows, p=share)
    ms = rng.lognormal(np.log(median[service]), spread[service])
    turn, since = divmod(epoch, INCIDENT_EVERY)
    ill = (service == turn % len(SERVICES)) & (INCIDENT_EVERY - since <= INCIDENT_LASTS)
    ms = np.where(ill & (rng.random(rows) < 0.5), ms * SLOWER, ms)
    at = np.sort(rng.integers(int(epoch * seconds * 1000), max(int((epoch + 1) * seconds * 1000), 1), rows))
    return pa.table(
        {
            "service": names[service],
            "timestamp": pa.array(START_S * 1000 + at, pa.timestamp("ms", tz="UTC")),
            "value": np.round(ms, 3),
        }
    )
