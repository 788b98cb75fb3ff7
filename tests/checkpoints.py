"""Directories that look like a Spark checkpoint, growing batch by batch."""

from __future__ import annotations

from pathlib import Path

from understudy.checkpoints.interface import Checkpoint
from understudy.checkpoints.spark_files import committed


class FakeQuery:
    """Batch numbers are not epochs: a restored query goes on counting batches while epochs are what was read."""

    def __init__(self, directory: Path, epoch: int = -1, *, writer: str = "a", keep: int = 3) -> None:
        self.directory, self.epoch, self.keep = directory, epoch, keep
        # After a restore: go on where the checkpoint ends.
        self.batch = max((int(path.name) for path in (directory / "commits").glob("[0-9]*")), default=-1)
        self._write("metadata", f'{{"id":"{writer}"}}')

    def run(self, epochs: int = 1) -> None:
        for _ in range(epochs):
            self.batch += 1
            self.epoch += 1
            self._write(f"offsets/{self.batch}", f'v1\n{{"batchWatermarkMs":0}}\n{self.epoch}')
            self._write(f"state/0/0/{self.batch + 1}.delta", f"delta of {self.epoch}" * 20)
            if self.batch % 2 == 0:
                self._write(f"state/0/0/{self.batch + 1}.zip", f"snapshot of {self.epoch}" * 50)
            self._write(f"state/0/0/{self.batch + 1}.changelog", f"changes of {self.epoch}")
            self._write(f"state/0/0/.{self.batch + 1}.delta.tmp-crc", "half")
            self._write(f"commits/.{self.batch}.crc", "x")
            self._write(f"commits/{self.batch}", 'v1\n{"nextBatchWatermarkMs":0}')
        self.purge()

    def begin_next(self) -> None:
        """A batch that is planned and has written state, but is not committed."""
        self._write(f"offsets/{self.batch + 1}", f"v1\n{{}}\n{self.epoch + 1}")
        self._write(f"state/0/0/.{self.batch + 2}.delta.tmp", "half")

    def purge(self) -> None:
        """Spark forgets batches that nothing newer needs."""
        for path in sorted(self.directory.rglob("*")):
            number = path.name.partition(".")[0]
            first = self.batch - self.keep + (path.parent.name == "0")
            if path.is_file() and number.isdigit() and int(number) < first:
                path.unlink()

    def committed(self) -> Checkpoint:
        found = committed(self.directory)
        assert found is not None
        return found

    def needed(self) -> dict[str, bytes]:
        """What a restored checkpoint must consist of: the last commit, and what it takes to run its batch once more, so
        state from the newest snapshot before it on."""
        names = ["metadata"]
        for kind in ("offsets", "commits"):
            names += [f"{kind}/{n}" for n in range(self.batch + 1) if (self.directory / kind / str(n)).exists()]
        snapshots = [int(path.stem) for path in self.directory.rglob("[0-9]*.zip")]
        snapshot = max((number for number in snapshots if number <= self.batch), default=0)
        state = [path for path in (self.directory / "state").rglob("[0-9]*.*") if int(path.stem) >= snapshot]
        names += [path.relative_to(self.directory).as_posix() for path in state]
        return {name: (self.directory / name).read_bytes() for name in names}

    def _write(self, name: str, text: str) -> None:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
