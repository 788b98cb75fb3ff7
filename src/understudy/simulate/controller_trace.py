"""What slices did, epoch by epoch: recorded, or made up by a load shape. Input of the simulator of the controller.

A recorded trace is a file of JSON lines, one for every slice and epoch:

    {"slice": "moods[0]", "epoch": 12, "rows_in": 980, "state_bytes": 812340, "batch_s": 0.31}

These are fields of `ReplicaStatus`, so a receiver of heartbeats can write a trace.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InvalidInput
from understudy.sources.shapes import named

Floats = NDArray[np.float64]
PERIOD_S = 720
"""A whole number of days, spikes, steps and months of the shapes."""


@dataclass(frozen=True)
class Trace:
    """Arrays of (epochs, slices)."""

    slices: tuple[str, ...]
    epoch_s: float
    rows: Floats
    state_bytes: Floats
    batch_s: Floats
    origin: str

    @property
    def epochs(self) -> int:
        return len(self.rows)

    @property
    def cpu(self) -> Floats:
        """Cores the primary keeps busy: a slice works while its batch runs."""
        return np.minimum(self.batch_s / self.epoch_s, 1.0)


@dataclass(frozen=True)
class Workload:
    """The sentiment example, as a model: what its stateful operator costs at a rate.

    `floor_s` is the measured floor of a micro-batch with a window and a watermark (0.24 s at 1,000 rows). That a row
    costs `row_s`, and takes `row_bytes` of state for ten seconds, in all windows together, is assumed. Slices differ in
    rate by a factor of up to `spread` either way and are shifted against each other by up to a period, and batches
    scatter by `noise`.
    """

    shape: str = "messages"
    rate: float = 20_000.0
    epoch_s: float = 1.0
    window_s: float = 10.0
    floor_s: float = 0.24
    row_s: float = 4e-6
    row_bytes: float = 200.0
    spread: float = 4.0
    noise: float = 0.1


def synthetic(workload: Workload, slices: int, epochs: int, seed: int) -> Trace:
    rng = np.random.default_rng(seed)
    scale = workload.spread ** rng.uniform(-1, 1, slices)
    shift = rng.integers(0, PERIOD_S, slices)
    moments = (np.arange(epochs)[:, None] * workload.epoch_s + shift[None, :]) % PERIOD_S
    rows = _load(workload.shape)[moments.astype(np.int64)] * workload.rate * workload.epoch_s * scale
    window = max(1, round(workload.window_s / workload.epoch_s))
    summed = np.concatenate([np.zeros((1, slices)), np.cumsum(rows, axis=0)])
    # A run starts with empty windows, whatever the load would have been before it.
    kept = summed[1:] - summed[np.maximum(0, np.arange(epochs) + 1 - window)]
    scatter = np.exp(rng.normal(0.0, workload.noise, rows.shape))
    return Trace(
        slices=tuple(f"moods[{number}]" for number in range(slices)),
        epoch_s=workload.epoch_s,
        rows=rows,
        state_bytes=kept * workload.row_bytes,
        batch_s=(workload.floor_s + workload.row_s * rows) * scatter,
        origin=f"synthetic: {workload.shape}, mean rate {workload.rate:g} rows/s, seed {seed}",
    )


def _load(name: str) -> Floats:
    """The shape at every second, around a mean of 1."""
    shape = named(name, 1.0)
    load: Floats = np.array([shape(float(second)) for second in range(PERIOD_S)])
    scaled: Floats = load / load.mean()
    return scaled


def read_trace(path: Path, epoch_s: float = 1.0) -> Trace:
    """A recorded trace; epochs of a slice that are missing repeat what was last seen of it."""
    try:
        lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
        found = {(str(line["slice"]), int(line["epoch"])): line for line in lines}
        values = {key: [float(line[name]) for name in FIELDS] for key, line in found.items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(
            f"{path} is no trace",
            why=str(error) or type(error).__name__,
            fix=f"give JSON lines with {', '.join(FIELDS)}",
        ) from None
    if not values:
        raise InvalidInput(f"{path} is empty", why="there is nothing to replay", fix="record a run first")
    slices = tuple(sorted({name for name, _ in values}))
    first, last = min(epoch for _, epoch in values), max(epoch for _, epoch in values)
    arrays: Floats = np.zeros((len(FIELDS), last - first + 1, len(slices)))
    for number, name in enumerate(slices):
        known = [0.0, 0.0, 0.0]
        for epoch in range(first, last + 1):
            known = values.get((name, epoch), known)
            arrays[:, epoch - first, number] = known
    return Trace(slices, epoch_s, arrays[0], arrays[1], np.maximum(arrays[2], 1e-3), f"recorded: {path.name}")


FIELDS = ("rows_in", "state_bytes", "batch_s")


def to_lines(trace: Trace) -> Iterable[str]:
    for epoch in range(trace.epochs):
        for number, name in enumerate(trace.slices):
            values = (trace.rows[epoch, number], trace.state_bytes[epoch, number], trace.batch_s[epoch, number])
            fields = dict(zip(FIELDS, (round(float(value), 6) for value in values), strict=True))
            yield json.dumps({"slice": name, "epoch": epoch} | fields)
