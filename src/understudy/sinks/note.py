"""Which epochs a sink delivered, for targets that cannot remember it themselves.

sinks/<name>/run                  whose epochs these are
sinks/<name>/writers/<number>     the writers that were opened, one after the other
sinks/<name>/begun/0000000012-3   an epoch whose delivery was begun, and by which writer
sinks/<name>/done/0000000012      an epoch whose delivery has ended
"""

from __future__ import annotations

from pathlib import Path

from understudy.errors import InvalidInput, UnderstudyError
from understudy.log.disk import TEMPORARY, Disk


class Superseded(UnderstudyError):
    """Another writer was opened after this one."""

    def __init__(self, name: str, epoch: int) -> None:
        super().__init__(
            f"sink '{name}' did not deliver epoch {epoch}",
            why="its slice was deployed somewhere else meanwhile",
            fix="nothing: the newer writer delivers it",
        )


class Note:
    """Files only appear, each in one step, so a late writer cannot undo a note.

    A writer begins an epoch, then looks whether a newer writer was opened, then delivers. So an epoch that was
    delivered twice was begun before the second writer opened, and the second writer finds it begun.
    """

    def __init__(self, name: str, home: Path, run: str, disk: Disk | None = None) -> None:
        self._name = name
        self._root = home / "sinks" / name
        self._disk = disk or Disk()
        self._claim(run)
        self._number = self._enter()

    def last(self) -> int:
        """The last epoch that was delivered. Read anew each time: there may be a second writer for a moment."""
        return max(self._numbers("done"), default=-1)

    def begin(self, epoch: int) -> bool:
        """Notes that the delivery of an epoch begins; False if another writer had begun it."""
        self._disk.put_if_absent(self._begun(epoch), [b""], durable=True)
        if max(self._numbers("writers")) > self._number:
            raise Superseded(self._name, epoch)
        return self._numbers("begun").count(epoch) == 1

    def withdraw(self, epoch: int) -> None:
        """The delivery failed: it does not count as one."""
        self._begun(epoch).unlink(missing_ok=True)

    def advance(self, epoch: int) -> None:
        """Notes that an epoch was delivered, and forgets those before it."""
        self._disk.put_if_absent(self._path("done", epoch), [b""], durable=True)
        last = self.last()
        for kind, below in (("begun", last + 1), ("done", last), ("writers", self._number)):
            for path in self._files(kind):
                if _number(path) < below:
                    path.unlink(missing_ok=True)

    def _claim(self, run: str) -> None:
        claim = self._root / "run"
        self._disk.put_if_absent(claim, [run.encode()], durable=True)
        owner = claim.read_text()
        if owner != run:
            raise InvalidInput(
                f"{self._root} belongs to run {owner}",
                why=f"this is run {run}; its epochs are others",
                fix="use another --home, or go on with that run by --resume",
            )

    def _enter(self) -> int:
        number = max(self._numbers("writers"), default=-1) + 1
        while not self._disk.put_if_absent(self._path("writers", number), [b""], durable=True):
            number += 1
        return number

    def _numbers(self, kind: str) -> list[int]:
        return [_number(path) for path in self._files(kind)]

    def _files(self, kind: str) -> list[Path]:
        return [path for path in (self._root / kind).glob("*") if not path.name.startswith(TEMPORARY)]

    def _path(self, kind: str, number: int) -> Path:
        return self._root / kind / f"{number:010d}"

    def _begun(self, epoch: int) -> Path:
        return self._root / "begun" / f"{epoch:010d}-{self._number}"


def _number(path: Path) -> int:
    """The epoch or the writer a file stands for."""
    number = path.name.partition("-")[0]
    if not number.isdigit():
        raise InvalidInput(
            f"{path} cannot be read",
            why="the names in this directory should begin with numbers of epochs or writers",
            fix="remove the file if it is not a part of this run, or start in another --home",
        )
    return int(number)
