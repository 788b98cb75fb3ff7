"""A tentative branch: a line of bags beside the stable one, made without the slices that are missing.

A fork is a replica of a slice in the branch. It begins with the newest stable state and goes on with what there is;
the stable replicas wait untouched. A branch is dropped when the stable output has caught up with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from understudy.model.names import SliceId

STABLE = 0
"""The number of the branch that counts."""


@dataclass(frozen=True)
class Fork:
    """Where the replica of a slice in a branch is hosted; its generations are counted inside the branch."""

    slice: SliceId
    node: str
    generation: int = 1


@dataclass(frozen=True)
class Branch:
    """`number` is above that of every branch before. `opened_s` is the age of the run at which it was opened.

    `missing`: the slices that the branch does without now. `named`: all slices that were missing at some time in it.
    `failed`: how often the fork of a slice has failed. `issued`: the newest generation of its forks, also of those that
    are gone.
    """

    number: int
    opened_s: float
    missing: tuple[SliceId, ...]
    named: tuple[SliceId, ...] = ()
    forks: tuple[Fork, ...] = ()
    failed: tuple[tuple[SliceId, int], ...] = ()
    issued: tuple[tuple[SliceId, int], ...] = ()

    @property
    def by_slice(self) -> dict[SliceId, Fork]:
        return {fork.slice: fork for fork in self.forks}

    def failures(self, slice_id: SliceId) -> int:
        return dict(self.failed).get(slice_id, 0)

    def without(self, missing: tuple[SliceId, ...]) -> Branch:
        """The same branch with other missing slices."""
        return replace(self, missing=missing, named=tuple(sorted({*self.named, *missing})))

    def to_data(self) -> dict[str, Any]:
        """As JSON values, for the store."""
        return {
            "number": self.number,
            "opened_s": self.opened_s,
            "missing": [str(one) for one in self.missing],
            "named": [str(one) for one in self.named],
            "forks": [[str(fork.slice), fork.node, fork.generation] for fork in self.forks],
            "failed": [[str(one), count] for one, count in self.failed],
            "issued": [[str(one), number] for one, number in self.issued],
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Branch:
        return cls(
            number=data["number"],
            opened_s=data["opened_s"],
            missing=tuple(map(SliceId.parse, data["missing"])),
            named=tuple(map(SliceId.parse, data["named"])),
            forks=tuple(Fork(SliceId.parse(name), node, number) for name, node, number in data["forks"]),
            failed=tuple((SliceId.parse(name), count) for name, count in data["failed"]),
            issued=tuple((SliceId.parse(name), number) for name, number in data["issued"]),
        )
