"""What a run left behind in its home directory, compared with what it should have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq

from tests.oracles.rows import Output


def delivered(home: Path, stream: str) -> Output:
    """The rows of every epoch that a Parquet sink wrote, columns in the file's order."""
    files = sorted((home / "out" / stream).glob("*.parquet"))
    return [Counter(tuple(row.values()) for row in pq.read_table(path).to_pylist()) for path in files]


def differences(home: Path, expected: Mapping[str, Output]) -> list[str]:
    """A line for every epoch of every stream that is not as expected: what is missing, and what is too much."""
    found = []
    for stream, epochs in expected.items():
        written = delivered(home, stream)
        if len(written) != len(epochs):
            found.append(f"{stream}: {len(written)} epochs instead of {len(epochs)}")
        for epoch, (got, wanted) in enumerate(zip(written, epochs, strict=False)):
            if got != wanted:
                missing, added = list((wanted - got).items())[:3], list((got - wanted).items())[:3]
                found.append(f"{stream}, epoch {epoch}: missing {missing}, added {added}")
    return found


def rows(outputs: Mapping[str, Output]) -> dict[str, int]:
    """How many rows every stream has: an expectation of nothing proves nothing."""
    return {stream: sum(epoch.total() for epoch in epochs) for stream, epochs in outputs.items()}
