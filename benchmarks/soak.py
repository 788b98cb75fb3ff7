"""Memory of a node and size of the home directory over many epochs: both must stay flat.

    python benchmarks/soak.py [--epochs 500] [--rows 20000] [--every 50]

Prints a line for every so many epochs, then how much the last fifth of the run has over the second fifth (the first
is warming up). The output of the sink grows with every epoch by its nature and is not counted.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from pathlib import Path

from understudy.log.disk import walk
from understudy.model.view import RunState
from understudy.testing.cluster import run

APP = Path(__file__).with_name("stateful.py")
PARTS = ("log", "checkpoints", "nodes")


class Watch:
    def __init__(self, home: Path, every: int) -> None:
        self.home, self.every = home, every
        self.samples: dict[int, tuple[float, float, int]] = {}

    def see(self, state: RunState) -> None:
        if state.epoch in self.samples or not state.nodes:
            return
        memory = sum(node.memory_bytes for node in state.nodes) / 2**20
        sizes = [size for part in PARTS for size in _sizes(self.home / part)]
        self.samples[state.epoch] = (memory, sum(sizes) / 2**20, len(sizes))
        if state.epoch % self.every == 0:
            print(f"epoch {state.epoch:5d}  memory {memory:7.1f} MB  home {sum(sizes) / 2**20:7.1f} MB", end="  ")
            print(f"{len(sizes):5d} files", flush=True)

    def growth(self, column: int) -> float:
        """The last fifth over the second fifth, as a ratio of medians."""
        epochs = sorted(self.samples)
        fifth = max(1, len(epochs) // 5)
        early, late = epochs[fifth : 2 * fifth], epochs[-fifth:]
        return statistics.median(self.samples[e][column] for e in late) / statistics.median(
            self.samples[e][column] for e in early
        )


def _sizes(directory: Path) -> list[int]:
    found = []
    for path in walk(directory):
        try:
            found.append(path.stat().st_size)
        except FileNotFoundError:
            continue
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--every", type=int, default=50)
    arguments = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="soak-"))
    watch = Watch(home, arguments.every)
    settings = {"rows": str(arguments.rows), "scheme": "passive_replication"}
    try:
        report = run(APP, home, nodes=1, epochs=arguments.epochs, settings=settings, watch=watch.see)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    names = ("memory", "home in bytes", "home in files")
    print(f"{report.verdict} after {report.epochs} epochs; last fifth over second fifth:")
    print(", ".join(f"{name} {watch.growth(column):.3f}" for column, name in enumerate(names)))


if __name__ == "__main__":
    main()
