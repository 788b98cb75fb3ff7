"""As many nodes as the time of day says: `08:00=4, 20:00=2`, in UTC."""

from __future__ import annotations

import re
from collections.abc import Sequence

from understudy.control.scaling.sample import Sample, Wish
from understudy.errors import InvalidInput
from understudy.model.config import ScalingSection

DAY_S = 86_400
_ENTRY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)\s*=\s*([1-9]\d*)")


def suggest(history: Sequence[Sample], limits: ScalingSection) -> Wish:
    entries, now_s = parse(limits.schedule), history[-1].at % DAY_S
    # Before the first entry of a day, the last one of the day before holds.
    since_s, nodes = max((one for one in entries if one[0] <= now_s), default=entries[-1])
    return Wish(nodes, f"the schedule says {nodes} from {since_s // 3600:02d}:{since_s % 3600 // 60:02d} on")


def parse(text: str) -> list[tuple[int, int]]:
    """Seconds of the day and numbers of nodes, in order."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    found = [_ENTRY.fullmatch(part) for part in parts]
    entries = sorted((int(m[1]) * 3600 + int(m[2]) * 60, int(m[3])) for m in found if m is not None)
    if not entries or len(entries) < len(parts):
        raise InvalidInput(
            f"scaling.schedule = {text!r}",
            why="it names times of the day and numbers of nodes",
            fix="write it like 08:00=4, 20:00=2",
        )
    return entries
