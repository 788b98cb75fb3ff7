"""Call records as an exchange writes them: people who call their friends, and a few machines that call everybody."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

SCHEMA = "caller long, callee long, at timestamp, seconds int"
"""A call that nobody answered has no seconds."""

START_S = 1_767_225_600  # 2026-01-01 00:00:00 UTC
FRIENDS = 8
MACHINES = 0.12  # share of calls that machines make
ACTIVE = 3  # machines at a time
SHIFT = 12  # epochs until other numbers are used
FIRST_MACHINE = 900_000  # their numbers are never called


def calls(epoch: int, rows: int, seconds: float, people: int, rng: np.random.Generator) -> pa.Table:
    """The calls of an epoch that stands for so many seconds, in order of time.

    People call one of eight friends, who answer most of the time. Machines call one number after the other, ring once
    and hang up, or play a recording; after a while they use other numbers.
    """
    at = np.sort(rng.integers(int(epoch * seconds), max(int((epoch + 1) * seconds), 1), rows))
    caller = rng.integers(0, people, rows)
    callee = (caller + (rng.integers(0, FRIENDS, rows) + 1) ** 3) % people
    talk = np.where(rng.random(rows) < 0.75, rng.lognormal(4.5, 0.9, rows).astype(np.int64) + 1, 0)
    machine = rng.random(rows) < MACHINES
    number = FIRST_MACHINE + epoch // SHIFT * ACTIVE + rng.integers(0, ACTIVE, rows)
    recording = np.where(rng.random(rows) < 0.3, rng.integers(2, 12, rows), 0)
    return pa.table(
        {
            "caller": np.where(machine, number, caller),
            "callee": np.where(machine, rng.integers(0, people, rows), callee),
            "at": pa.array(START_S + at, pa.timestamp("s", tz="UTC")),
            "seconds": pa.array(np.where(machine, recording, talk), pa.int32()),
        }
    )
