"""What the compacted topic of a run says: acknowledgements, progress of sinks, cuts, bookmarks, carried fences.

A topic that is compacted keeps the last record of every key. So a key is either written with values that only grow, or
whoever writes last is right, or nobody else ever writes it. Cuts are of the third kind: every attempt has a key of its
own, none replaces another, and the first in the order counts. This is pure code.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from understudy.model.names import SliceId

ACK, REACHED, CUT, MARK, FENCE = "ack", "reached", "cut", "mark", "fence"


@dataclass(frozen=True)
class Fact:
    """`key` begins with one of the words above. `value` None removes what the key held. `token` names the writing."""

    key: tuple[Any, ...]
    value: Any
    token: str
    gone: bool = False

    @property
    def key_bytes(self) -> bytes:
        return json.dumps(self.key, separators=(",", ":")).encode()

    @property
    def value_bytes(self) -> bytes | None:
        """A record without a value removes its key when the topic is compacted."""
        return None if self.gone else json.dumps({"value": self.value, "token": self.token}).encode()


def decode(key: bytes | None, value: bytes | None) -> Fact | None:
    """The fact in a record; None for one that we cannot have written, which counts as absent."""
    try:
        parts = tuple(json.loads(key or b""))
        if value is None:
            return Fact(parts, None, "", gone=True)
        fields = json.loads(value)
        return Fact(parts, fields["value"], fields["token"])
    except (ValueError, KeyError, TypeError):
        return None


def ack(reader: SliceId, upstream: SliceId) -> tuple[Any, ...]:
    return (ACK, str(reader), str(upstream))


def reached(reader: SliceId) -> tuple[Any, ...]:
    return (REACHED, str(reader))


def cut(slice_id: SliceId, epoch: int, token: str) -> tuple[Any, ...]:
    return (CUT, str(slice_id), epoch, token)


def mark(slice_id: SliceId, epoch: int) -> tuple[Any, ...]:
    return (MARK, str(slice_id), epoch)


def fence(slice_id: SliceId, generation: int) -> tuple[Any, ...]:
    return (FENCE, str(slice_id), generation)


@dataclass
class Facts:
    """The topic as far as it was read, and on top of it what this process has written and not read yet.

    What was written counts at once for this process, as it does with files. `lowered` holds keys of acknowledgements
    whose last record is not their highest: after compaction a new reader would know only the last.
    """

    acks: dict[tuple[Any, ...], int] = field(default_factory=dict)
    reached: dict[tuple[Any, ...], int] = field(default_factory=dict)
    marks: dict[str, dict[int, Any]] = field(default_factory=dict)
    cuts: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict)
    fences: dict[str, dict[int, int]] = field(default_factory=dict)
    lowered: set[tuple[Any, ...]] = field(default_factory=set)
    _ahead: dict[tuple[Any, ...], str] = field(default_factory=dict)

    def write(self, fact: Fact) -> None:
        """This process has written a fact and will read it later."""
        if fact.key[0] == REACHED:
            self._ahead[fact.key] = fact.token
            self.reached[fact.key] = fact.value
        elif fact.key[0] != CUT:
            self._take(fact)

    def apply(self, fact: Fact) -> None:
        """Reads the next record."""
        if fact.key[0] == REACHED and fact.key in self._ahead:
            if self._ahead[fact.key] != fact.token:
                return  # older than what this process has written
            del self._ahead[fact.key]
        self._take(fact)

    def _take(self, fact: Fact) -> None:
        kind, name = fact.key[0], fact.key[1]
        if kind == ACK and not fact.gone:
            highest = max(fact.value, self.acks.get(fact.key, -1))
            (self.lowered.add if fact.value < highest else self.lowered.discard)(fact.key)
            self.acks[fact.key] = highest
        elif kind == REACHED and not fact.gone:
            self.reached[fact.key] = fact.value
        elif kind == MARK:
            _put(self.marks.setdefault(name, {}), fact.key[2], fact)
        elif kind == FENCE:
            _put(self.fences.setdefault(name, {}), fact.key[2], fact)
        elif kind == CUT:
            attempts = self.cuts.setdefault(name, {}).setdefault(fact.key[2], {})
            _put(attempts, fact.key[3], fact)
            if not attempts:
                del self.cuts[name][fact.key[2]]

    # -- cuts

    def recorded(self, slice_id: SliceId, epoch: int) -> Any:
        """The first cut of an epoch, None if there is none."""
        return next(iter(self.cuts.get(str(slice_id), {}).get(epoch, {}).values()), None)

    def cut_epochs(self, slice_id: SliceId) -> set[int]:
        return set(self.cuts.get(str(slice_id), {}))

    def cut_keys(self, slice_id: SliceId, epoch: int) -> list[tuple[Any, ...]]:
        """All attempts, the one that counts last: whoever removes them may be interrupted."""
        attempts = self.cuts.get(str(slice_id), {}).get(epoch, {})
        return [cut(slice_id, epoch, token) for token in reversed(attempts)]


def _put(held: dict[Any, Any], name: Any, fact: Fact) -> None:
    if fact.gone:
        held.pop(name, None)
    else:
        held[name] = fact.value
