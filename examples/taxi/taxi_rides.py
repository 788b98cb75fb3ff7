"""Taxi rides shaped like New York's, made up as they go: hot spots, hours, traffic, fares, and some dirt."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

SCHEMA = """
    medallion string, hack_license string, pickup_datetime timestamp, dropoff_datetime timestamp,
    trip_time_in_secs int, trip_distance double, pickup_longitude double, pickup_latitude double,
    dropoff_longitude double, dropoff_latitude double, payment_type string, fare_amount double, surcharge double,
    mta_tax double, tip_amount double, tolls_amount double, total_amount double
"""
"""The columns of the DEBS 2015 Grand Challenge, in the order of its file, which has no header."""

START_S = 1_356_998_400  # 2013-01-01 00:00:00 UTC
TAXIS = 13_000
DIRT = 0.015  # rides without coordinates

# Longitude, latitude, spread in degrees, share by day, share by night.
SPOTS = np.array(
    [
        (-73.9855, 40.7580, 0.004, 16, 14),  # Times Square
        (-73.9935, 40.7506, 0.003, 14, 8),  # Pennsylvania Station
        (-73.9772, 40.7527, 0.003, 14, 6),  # Grand Central
        (-74.0089, 40.7069, 0.004, 9, 3),  # Wall Street
        (-73.9815, 40.7265, 0.005, 6, 20),  # East Village
        (-74.0060, 40.7405, 0.003, 6, 18),  # Meatpacking District
        (-73.9566, 40.7736, 0.006, 13, 8),  # Upper East Side
        (-73.9754, 40.7870, 0.006, 10, 7),  # Upper West Side
        (-73.9571, 40.7081, 0.006, 3, 9),  # Williamsburg
        (-73.8740, 40.7769, 0.002, 6, 4),  # LaGuardia
        (-73.7781, 40.6413, 0.003, 3, 3),  # Kennedy
    ]
)
# How busy each hour of the day is, against the busiest.
DEMAND = np.array([.8, .6, .45, .32, .25, .22, .4, .65, .8, .8, .75, .77, .8, .8, .83, .8, .7, .85, 1, 1, .95, .95, .93, .9])  # fmt: skip # noqa: E501


def rides(epoch: int, rows: int, seconds: float, rng: np.random.Generator) -> pa.Table:
    """The rides dropped off in an epoch that stands for so many seconds, in order of drop-off; fewer at night."""
    hour = int((epoch * seconds / 3600) % 24)
    count = int(rows * DEMAND[hour])
    dropoff = np.sort(rng.integers(int(epoch * seconds), max(int((epoch + 1) * seconds), 1), count)) + START_S
    start, end = _points(count, hour, rng), _points(count, hour, rng)
    miles = np.abs(start - end) @ np.array([52.3, 69.0]) + 0.1  # along the streets, degrees to miles
    pace = np.where(7 <= hour < 20, 420, 270) * rng.lognormal(0, 0.25, count)  # seconds a mile
    seconds_driven = np.clip(miles * pace, 60, 7200).astype(np.int64) // 60 * 60
    fare = np.round(2.5 + 2.0 * miles + seconds_driven / 200) + rng.choice([0, 0.5], count)
    card = rng.random(count) < 0.52
    surcharge = np.full(count, 0.5 if hour >= 20 or hour < 6 else 1.0 if hour >= 16 else 0.0)
    tip = np.where(card, np.round(fare * rng.choice([0.1, 0.2, 0.25], count), 2), 0.0)
    tolls = np.where(miles > 8, 4.8, 0.0)
    start[rng.random(count) < DIRT] = 0.0
    end[rng.random(count) < DIRT] = 0.0
    taxi = rng.integers(0, TAXIS, count)
    time = pa.timestamp("s", tz="UTC")
    return pa.table(
        {
            "medallion": _names(taxi, 0x9E3779B97F4A7C15F39CC0605CEDC835),
            "hack_license": _names(taxi + rng.integers(0, 2, count) * TAXIS, 0xBF58476D1CE4E5B994D049BB133111EB),
            "pickup_datetime": pa.array(dropoff - seconds_driven, time),
            "dropoff_datetime": pa.array(dropoff, time),
            "trip_time_in_secs": pa.array(seconds_driven, pa.int32()),
            "trip_distance": np.round(miles, 2),
            "pickup_longitude": np.round(start[:, 0], 6),
            "pickup_latitude": np.round(start[:, 1], 6),
            "dropoff_longitude": np.round(end[:, 0], 6),
            "dropoff_latitude": np.round(end[:, 1], 6),
            "payment_type": np.where(card, "CRD", "CSH"),
            "fare_amount": fare,
            "surcharge": surcharge,
            "mta_tax": np.full(count, 0.5),
            "tip_amount": tip,
            "tolls_amount": tolls,
            "total_amount": np.round(fare + surcharge + 0.5 + tip + tolls, 2),
        }
    )


def _points(count: int, hour: int, rng: np.random.Generator) -> NDArray[np.float64]:
    share = SPOTS[:, 3 if 6 <= hour < 20 else 4]
    spot = SPOTS[rng.choice(len(SPOTS), count, p=share / share.sum())]
    points: NDArray[np.float64] = spot[:, :2] + rng.normal(size=(count, 2)) * spot[:, 2:3]
    return points


def _names(numbers: NDArray[np.int64], factor: int) -> list[str]:
    """Numbers as the file hides them: 32 hexadecimal digits."""
    return [f"{(n + 1) * factor % (1 << 128):032X}" for n in numbers.tolist()]
