"""How long a slice took to come back: from the moment a replica's bags count until it makes something new."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from understudy.model.messages import Steps

_NO_STEPS = Steps()


@dataclass(frozen=True)
class Comeback:
    """Times are those of one monotonic clock; every observation makes a new value.

    `known` is the newest epoch that was made before. `marked` is when the last step of coming up ended.
    """

    began: float
    known: int
    marked: float
    wired_at: float | None = None
    replayed_at: float | None = None
    steps: Steps = _NO_STEPS

    @classmethod
    def begin(cls, now: float, known: int) -> Comeback:
        return cls(began=now, known=known, marked=now)

    def knowing(self, known: int) -> Comeback:
        """Only an epoch after this one ends the recovery."""
        return replace(self, known=known)

    def stepped(self, name: str, seconds: float, now: float) -> Comeback:
        """A step of coming up has ended after so many seconds."""
        return self._noted({name: getattr(self.steps, name) + seconds}, marked=now)

    def idled(self, since: float, now: float) -> Comeback:
        """The replica waited for input that nobody had made yet: that is no part of coming back."""
        seconds = now - max(since, self.began)
        if self.steps.done or seconds <= 0:
            return self
        return self._noted(
            {"idle": self.steps.idle + seconds},
            marked=self.marked + seconds,
            wired_at=None if self.wired_at is None else self.wired_at + seconds,
            replayed_at=None if self.replayed_at is None else self.replayed_at + seconds,
        )

    def wired(self, now: float) -> Comeback:
        """Input has arrived; what follows is replay."""
        if self.wired_at is not None:
            return self
        return self._noted({"wire_receive": now - self.marked}, wired_at=now)

    def seamless(self, wall: float) -> Comeback:
        """Whoever took over was publishing already and at the head: nothing was ever missing."""
        return self._noted({"done": True, "done_at": wall, "seamless": True})

    def progressed(self, epoch: int, now: float, wall: float) -> Comeback:
        """The replica has finished an epoch. The first that nobody had finished before ends the recovery."""
        if self.steps.done:
            return self
        wired = now if self.wired_at is None else self.wired_at
        if epoch <= self.known:
            return self._noted({"replayed": self.steps.replayed + 1, "replay": now - wired}, replayed_at=now)
        since = wired if self.replayed_at is None else self.replayed_at
        return self._noted({"first_bag": now - since, "done": True, "done_at": wall})

    def _noted(self, steps: dict[str, Any], **changes: float | None) -> Comeback:
        """With other steps, and other times."""
        return replace(self, steps=Steps.trusted(self.steps.__dict__ | steps), **changes)  # type: ignore[arg-type]
