"""The last epoch a sink gave away, for targets that cannot remember it themselves."""

from __future__ import annotations

import json
from pathlib import Path

from understudy.errors import InvalidInput
from understudy.log.disk import Disk


class Note:
    """`home/sinks/<name>/last`, replaced in one step."""

    def __init__(self, name: str, home: Path, run: str, disk: Disk | None = None) -> None:
        self._path = home / "sinks" / name / "last"
        self._run = run
        self._disk = disk or Disk()
        self.last()

    def last(self) -> int:
        """Read anew each time: after a failover there may be a second writer for a moment."""
        if not self._path.exists():
            return -1
        try:
            note = json.loads(self._path.read_bytes())
            run, epoch = str(note["run"]), int(note["epoch"])
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(
                f"{self._path} cannot be read",
                why="it should hold a run and an epoch",
                fix="write the last epoch the target has into it, or start in another --home",
            ) from error
        if run != self._run:
            raise InvalidInput(
                f"{self._path} belongs to run {run}",
                why=f"this is run {self._run}; its epochs are others",
                fix="use another --home, or go on with that run by --resume",
            )
        return epoch

    def advance(self, epoch: int) -> None:
        text = json.dumps({"run": self._run, "epoch": epoch})
        self._disk.replace(self._path, [text.encode()], durable=True)
