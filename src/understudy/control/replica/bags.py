"""What becomes of a bag that a replica has made."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class Fate(StrEnum):
    PUBLISH = "publish"
    SPOOL = "spool"
    """Hold it back: the primary has not published it yet."""
    COMPARE = "compare"
    """The primary has published it: only see whether both agree."""
    HALT = "halt"
    """A newer replica has taken over, and its bags count from here on."""


class BagView(Protocol):
    """What a replica knows at the moment its bag is ready."""

    @property
    def sends(self) -> bool: ...

    @property
    def fenced(self) -> bool:
        """Whether a newer replica has taken over where a replay may differ."""
        ...

    def is_published(self, epoch: int) -> bool:
        """Whether readers find a bag of an epoch, or all of them have it already."""
        ...


def fate(epoch: int, view: BagView) -> Fate:
    """Whether the bag of an epoch is published, held back, compared, or given up with its replica."""
    if view.sends:
        return Fate.HALT if view.fenced else Fate.PUBLISH
    return Fate.COMPARE if view.is_published(epoch) else Fate.SPOOL


def differs(made: str, published: str, *, first: bool, lost: bool, stateful: bool, deterministic: bool) -> bool:
    """Whether a replay came to another result than what was published, both given by their digests.

    `lost`: the published bag stands for a gap, which nothing equals. A state of chance is another one after a replay,
    even if this bag does not show it.
    """
    if lost:
        return False
    return made != published or (not first and stateful and not deterministic)
