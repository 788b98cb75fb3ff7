"""What open dashboards cost the manager: the period of its loop with twenty pages, against its period without.

A real manager process with fifty slices and five simulated nodes; pages are clients that read every frame, in a process
of their own. Rounds with and without pages alternate, so that other load on the machine affects both.

python benchmarks/dashboard.py --seconds 20 --rounds 3 --pages 20
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

from stage import Stage, playing, start

PERIOD = "understudy_manager_tick_period_seconds"
DURATION = "understudy_manager_tick_duration_seconds"
SETTLE_S = 2.0


def measure(stage: Stage, seconds: float) -> dict[str, float]:
    """Mean period and mean length of a tick, in milliseconds, from the manager's own metrics."""
    before = stage.metrics()
    time.sleep(seconds)
    after = stage.metrics()
    ticks = after[f"{PERIOD}_count"] - before[f"{PERIOD}_count"]
    return {
        "ticks": ticks,
        "period_ms": 1000 * (after[f"{PERIOD}_sum"] - before[f"{PERIOD}_sum"]) / ticks,
        "duration_ms": 1000 * (after[f"{DURATION}_sum"] - before[f"{DURATION}_sum"]) / ticks,
    }


def with_pages(stage: Stage, seconds: float, pages: int) -> dict[str, float]:
    audience = start(["pages", stage.url, str(pages)])
    try:
        while stage.metrics()["understudy_dashboard_pages"] < pages:
            time.sleep(0.1)
        time.sleep(SETTLE_S)
        return measure(stage, seconds)
    finally:
        audience.kill()
        audience.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    without, beside = [], []
    with playing() as stage:
        time.sleep(SETTLE_S)
        for _ in range(given.rounds):
            without.append(measure(stage, given.seconds))
            beside.append(with_pages(stage, given.seconds, given.pages))
    quiet = statistics.median(entry["period_ms"] for entry in without)
    busy = statistics.median(entry["period_ms"] for entry in beside)
    found = {
        "pages": given.pages,
        "period_ms_without": round(quiet, 2),
        "period_ms_with": round(busy, 2),
        "longer_percent": round(100 * (busy / quiet - 1), 2),
        "tick_ms_without": round(statistics.median(entry["duration_ms"] for entry in without), 3),
        "tick_ms_with": round(statistics.median(entry["duration_ms"] for entry in beside), 3),
        "rounds": [
            {"without": round(a["period_ms"], 2), "with": round(b["period_ms"], 2)}
            for a, b in zip(without, beside, strict=True)
        ],
    }
    if given.json:
        print(json.dumps(found, indent=2))
        return
    print(f"period without pages   {found['period_ms_without']} ms (a tick takes {found['tick_ms_without']} ms)")
    print(f"period with {given.pages} pages   {found['period_ms_with']} ms (a tick takes {found['tick_ms_with']} ms)")
    print(f"longer by              {found['longer_percent']} % (target: within 10 %)")


if __name__ == "__main__":
    main()
