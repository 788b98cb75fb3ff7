"""What a run wrote as JSON lines, compared with what it should have written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from tests.oracles.rows import Row

Lines = list[list[Row]]
"""The rows of every epoch, with values as JSON has them."""


def iso(at: datetime) -> str:
    """A time as the sink writes it."""
    return at.isoformat().replace("+00:00", "Z")


def delivered(home: Path, stream: str) -> Lines:
    files = sorted((home / "out" / stream).glob("*.jsonl"))
    return [[json.loads(line) for line in path.read_text().splitlines()] for path in files]


def differences(home: Path, expected: Mapping[str, Lines]) -> list[str]:
    """A line for every epoch of every stream that is not as expected; the order of rows within an epoch is free."""
    found = []
    for stream, epochs in expected.items():
        written = delivered(home, stream)
        if len(written) != len(epochs):
            found.append(f"{stream}: {len(written)} epochs instead of {len(epochs)}")
        for epoch, (got, wanted) in enumerate(zip(written, epochs, strict=False)):
            have, want = _counted(got), _counted(wanted)
            if have != want:
                missing, added = list((want - have).items())[:3], list((have - want).items())[:3]
                found.append(f"{stream}, epoch {epoch}: missing {missing}, added {added}")
    return found


def _counted(rows: list[Row]) -> Counter[str]:
    return Counter(json.dumps(row, sort_keys=True) for row in rows)
