"""How long one step of the controller takes.

python benchmarks/controller_step.py                 10,000 slices, the target is 100 ms
python benchmarks/controller_step.py --slices 100000

`every history new`: all slices finished an epoch since the last step. `nothing new`: a step in between two epochs. On a
busy machine the CPU time says more than the median.
"""

from __future__ import annotations

import argparse
import gc
import time
from dataclasses import replace
from statistics import median

import numpy as np

from understudy.control.schemes.controller import decide_schemes
from understudy.control.schemes.costs import Usage
from understudy.control.schemes.history import History, Observation, observe
from understudy.control.schemes.objectives import Memory, Settings, Watched
from understudy.control.schemes.series import Transfer
from understudy.model.messages import ReplicaStatus, Steps
from understudy.model.names import SliceId
from understudy.model.recovery import Guarantee, Scheme

TARGET_MS = 100.0


def slices(count: int, seed: int) -> list[Watched]:
    """Different sizes, paces, objectives and guarantees, with a history of ten epochs each."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(count):
        batch, size = float(rng.uniform(0.1, 0.6)), int(10 ** rng.uniform(4, 9))
        history = History(f"counts[{number}]", detect_s=0.4)
        for epoch in range(10):
            status = ReplicaStatus(
                slice=SliceId.parse(history.slice),
                generation=1,
                epoch=epoch,
                batch_s=batch * float(rng.uniform(0.9, 1.1)),
                state_bytes=size,
                steps=Steps(deploy=1.5, done=True),
            )
            transfer = Transfer(size, size / 2e8)
            history = observe(history, Observation(status, shipped_to=epoch, shipped=transfer, loaded=transfer))
        usage = Usage(cpu=batch, received_bps=1e6, published_bps=2e5, changed_bps=1e5)
        objective = float(rng.choice([0.0, 1.0, 2.0, 5.0, 20.0]))
        guarantee = Guarantee.PRECISE if rng.random() < 0.8 else Guarantee.GAP
        made.append(
            Watched(
                history,
                usage,
                objective,
                guarantee,
                strongest=Scheme.PASSIVE_STANDBY_HOT if rng.random() < 0.05 else Scheme.ACTIVE_REPLICATION,
            )
        )
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slices", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    watched = slices(options.slices, options.seed)
    settings, memory = Settings(), Memory()
    for name in ("every history new", "nothing new"):
        taken, worked = [], []
        for step in range(options.repeats):
            if name == "every history new":
                watched = [replace(one, history=replace(one.history)) for one in watched]
            gc.collect()
            began, at_work = time.perf_counter(), time.process_time()
            outcome = decide_schemes(watched, memory, settings, now=step * 6.0)
            taken.append(1000 * (time.perf_counter() - began))
            worked.append(1000 * (time.process_time() - at_work))
            memory = outcome.memory
        good = "within" if median(taken) < TARGET_MS else "over"
        print(
            f"{name:18} {options.slices:,} slices: median {median(taken):6.1f} ms, best {min(taken):6.1f} ms, worst "
            f"{max(taken):6.1f} ms ({good} {TARGET_MS:.0f} ms); CPU {median(worked):6.1f} ms; "
            f"{len(outcome.changes):,} changes in the last step"
        )


if __name__ == "__main__":
    main()
