"""What is measured of a query, from the times at which its epochs were delivered."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise

from pydantic import BaseModel, ConfigDict

WARM_SHARE = 0.4
"""The first epochs of a run, in which code is compiled and caches fill, are not measured."""


class Figures(BaseModel):
    """`epoch_ms` is the usual time from one delivery to the next. `latency_ms` counts from the moment an epoch is due
    to its delivery; a run that does not wait for the clock has none. `digest` covers all rows of all epochs."""

    model_config = ConfigDict(frozen=True)

    events_per_s: float | None
    epoch_ms: float | None
    latency_ms: float | None = None
    latency_p95_ms: float | None = None
    digest: str


def measured(events: Sequence[int], done: Sequence[float], due: Sequence[float] | None, digest: str) -> Figures:
    """The figures of a run without its warm-up.

    Parameters
    ----------
    events : sequence of int
        Input events of every epoch.
    done : sequence of float
        When every epoch was delivered, in seconds.
    due : sequence of float or None
        When the events of every epoch were there; None if nothing waited for the clock.
    digest : str
        Of all rows of all epochs.

    Returns
    -------
    Figures
        Without rates if fewer than two epochs are left.

    Examples
    --------
    >>> found = measured([100] * 10, [float(n) for n in range(10)], None, "")
    >>> found.events_per_s, found.epoch_ms, found.latency_ms
    (100.0, 1000.0, None)
    """
    first = int(len(done) * WARM_SHARE)
    steady = done[first:]
    gaps = [later - earlier for earlier, later in pairwise(steady)]
    rate = sum(events[first + 1 : len(done)]) / (steady[-1] - steady[0]) if gaps and steady[-1] > steady[0] else None
    waits = [] if due is None else sorted(at - moment for at, moment in zip(steady, due[first:], strict=False))
    return Figures(
        events_per_s=rate,
        epoch_ms=_ms(statistics.median(gaps)) if gaps else None,
        latency_ms=_ms(statistics.median(waits)) if waits else None,
        latency_p95_ms=_ms(waits[int(0.95 * (len(waits) - 1))]) if waits else None,
        digest=digest,
    )


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)
