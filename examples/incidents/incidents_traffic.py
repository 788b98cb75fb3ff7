"""Traffic as a navigation application sees it: where its users are and how fast, and what they report."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

POSITIONS = "user long, segment long, kmh long, at timestamp"
REPORTS = "user long, segment long, at timestamp"
START_S = 1_767_225_600  # 2026-01-01 00:00:00 UTC
USERS, SEGMENTS = 2000, 100
ZIPF = 0.5  # how unevenly users are spread over the segments
INCIDENTS = 5  # in every epoch, on segments in proportion to their users
JAMMED = 0.5  # share of the incidents that slow the traffic down
LASTS = 4  # epochs of a jam, after that of its incident

_WEIGHTS = 1 / np.arange(1, SEGMENTS + 1) ** ZIPF
_UP_TO = np.cumsum(_WEIGHTS / _WEIGHTS.sum())


def segment_of(share: np.ndarray) -> np.ndarray:
    """The segment of a user, by a number from 0 to 1: all users live where they drive.

    >>> segment_of(np.array([0.0, 0.05, 0.5, 1.0])).tolist()
    [0, 0, 28, 99]
    """
    return np.minimum(np.searchsorted(_UP_TO, share), SEGMENTS - 1)


def incidents_of(epoch: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The segments of the incidents of an epoch, and which of them jam: the same for both sources."""
    rng = np.random.default_rng([seed, max(epoch, 0)])
    return segment_of(rng.random(INCIDENTS)), (rng.random(INCIDENTS) < JAMMED) & (epoch >= 0)


def positions(epoch: int, rows: int, seconds: float, seed: int, rng: np.random.Generator) -> pa.Table:
    """Where users are in an epoch that stands for so many seconds."""
    user = rng.integers(0, USERS, rows)
    segment = segment_of(user / USERS)
    found = [incidents_of(before, seed) for before in range(epoch - LASTS, epoch)]
    slow = np.isin(segment, np.concatenate([segments[jams] for segments, jams in found]))
    kmh = np.where(slow, rng.normal(12, 4, rows), rng.normal(60, 10, rows))
    return pa.table({"user": user, "segment": segment, "kmh": np.maximum(kmh, 0).astype(np.int64)}).append_column(
        "at", _times(epoch, rows, seconds, rng)
    )


def reports(epoch: int, rows: int, seconds: float, seed: int, rng: np.random.Generator) -> pa.Table:
    """What users on the segments of the incidents report: many of them the same."""
    segments, _ = incidents_of(epoch, seed)
    return pa.table(
        {
            "user": rng.integers(0, USERS, rows),
            "segment": segments[rng.integers(0, INCIDENTS, rows)],
            "at": _times(epoch, rows, seconds, rng),
        }
    )


def _times(epoch: int, rows: int, seconds: float, rng: np.random.Generator) -> pa.Array:
    at = START_S + (epoch + rng.random(rows)) * seconds
    return pa.array((at * 1000).astype(np.int64), pa.timestamp("ms", tz="UTC"))
