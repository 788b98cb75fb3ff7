"""Readings of smart plugs in the format of the DEBS 2014 Grand Challenge: load and work of every plug, some missing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

SCHEMA = "id long, timestamp long, value double, property int, plug_id int, household_id int, house_id int"
"""The columns of the challenge's file, which has no header; property 0 is work in kWh since ever, 1 is load in W."""

START_S = 1_377_986_400 - 1_377_986_400 % 86_400  # 2013-08-31 00:00:00 UTC, the day before the challenge's first
HOUSEHOLDS, PLUGS = 2, 2  # of a house, and of a household
DAY_S = 86_400
LOST = 0.02  # share of single readings that never arrive
SILENT = 0.06  # share of hours in which a plug's load is missing altogether

Numbers = NDArray[np.float64]


def readings(epoch: int, rows: int, seconds: float, houses: int, rng: np.random.Generator) -> pa.Table:
    """What the plugs of all houses measure in an epoch that stands for so many seconds, in order of time.

    Two of three plugs follow the sun; the third is a machine that goes on and off. Its load and its work are functions
    of the time alone, so what a plug used while it was silent shows in the work it reports afterwards.
    """
    plugs = houses * HOUSEHOLDS * PLUGS
    times = max(rows // (2 * plugs), 1) if rows else 0
    step = seconds / max(times, 1)
    at = np.repeat(np.floor(epoch * seconds + np.arange(times) * step).astype(np.int64), plugs)
    plug = np.tile(np.arange(plugs), times)
    load = np.round(np.maximum(_load(plug, at) + rng.normal(0, 2, len(at)), 0), 3)
    work = np.round(_work(plug, at), 6)
    heard = rng.random((len(at), 2)) >= LOST
    heard[:, 1] &= ~_silent(plug, at)
    keep = heard.ravel()
    house, rest = np.divmod(plug, HOUSEHOLDS * PLUGS)
    pairs = np.repeat(np.arange(len(at)), 2)[keep]
    return pa.table(
        {
            "id": epoch * 1_000_000 + np.arange(len(pairs)),
            "timestamp": START_S + at[pairs],
            "value": np.stack([work, load], axis=1).ravel()[keep],
            "property": pa.array(np.tile([0, 1], len(at))[keep], pa.int32()),
            "plug_id": pa.array((rest % PLUGS)[pairs], pa.int32()),
            "household_id": pa.array((rest // PLUGS)[pairs], pa.int32()),
            "house_id": pa.array(house[pairs], pa.int32()),
        }
    )


def _load(plug: NDArray[np.int64], at: NDArray[np.int64]) -> Numbers:
    """Watts: a constant, a wave of a day, and for every third plug a machine that runs a quarter of five hours."""
    wave = 0.8 * np.sin(2 * np.pi * at / DAY_S - plug)
    turn = (at / (5 * 3600) + plug * 0.37) % 1
    watts: Numbers = _size(plug) * (1 + wave + np.where((plug % 3 == 0) & (turn < 0.25), 6.0, 0.0))
    return watts


def _work(plug: NDArray[np.int64], at: NDArray[np.int64]) -> Numbers:
    """The integral of the load since the start, in kWh."""
    around = DAY_S / (2 * np.pi)
    wave = 0.8 * around * (np.cos(-plug.astype(np.float64)) - np.cos(2 * np.pi * at / DAY_S - plug))
    turns = at / (5 * 3600) + plug * 0.37
    ran = np.floor(turns) * 0.25 + np.minimum(turns % 1, 0.25)
    machine = np.where(plug % 3 == 0, 6.0 * 5 * 3600 * ran, 0.0)
    return np.asarray(_size(plug) * (at + wave + machine) / 3.6e6, np.float64)


def _size(plug: NDArray[np.int64]) -> Numbers:
    return np.asarray(20.0 + plug * 7 % 50, np.float64)


def _silent(plug: NDArray[np.int64], at: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the load of a plug is lost in the hour of a time: decided by both numbers, so that it lasts the hour."""
    mixed = (plug * 7919 + at // 3600 * 104_729) % 1009
    lost: NDArray[np.bool_] = mixed < SILENT * 1009
    return lost
