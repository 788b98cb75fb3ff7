"""The topology as it runs: fused operators, slices, and the channels between them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from understudy.model.names import SliceId
from understudy.model.recovery import Guarantee, Recovery


class Kind(StrEnum):
    SOURCE = "source"
    OPERATOR = "operator"
    SINK = "sink"


@dataclass(frozen=True, order=True)
class Split:
    """How a bag is divided: by a hash of the key, by row number, or not at all (one slice)."""

    key: tuple[str, ...] = ()
    slices: int = 1

    @property
    def whole(self) -> bool:
        return self.slices == 1

    @property
    def label(self) -> str:
        return f"{json.dumps(self.key)}/{self.slices}"


@dataclass(frozen=True)
class Edge:
    """From an upstream vertex to its reader. `one_to_one`: slice i reads slice i alone."""

    upstream: str
    split: Split
    one_to_one: bool = False


@dataclass(frozen=True)
class Vertex:
    """A source, a sink, or a chain of fused operators, which is called by the name of its last one."""

    name: str
    kind: Kind
    slices: int
    edges: tuple[Edge, ...] = ()
    parts: tuple[str, ...] = ()
    stateful: bool = False
    deterministic: bool = True
    recovery: Recovery = Recovery()

    @property
    def repeatable(self) -> bool:
        """Whether whoever comes after a failure makes the same bags again. Then replicas may publish side by side, and
        a bag that was lost can be recomputed."""
        return self.deterministic and self.recovery.guarantee == Guarantee.PRECISE

    @cached_property
    def replays(self) -> bool:
        """Whether missed epochs are processed again after a failure."""
        return Guarantee(self.recovery.guarantee).replays

    @property
    def reloads(self) -> bool:
        """Whether the last batch of a checkpoint may be run once more so that Spark loads the state: that must come to
        the state that was shipped."""
        return self.stateful and self.deterministic


@dataclass(frozen=True)
class Channel:
    """What one slice reads of one upstream slice: a part of its bag, for one of its inputs."""

    input: int
    upstream: SliceId
    split: Split
    part: int


@dataclass(frozen=True)
class Layout:
    vertices: tuple[Vertex, ...]

    @cached_property
    def _by_name(self) -> dict[str, Vertex]:
        return {vertex.name: vertex for vertex in self.vertices}

    def __getitem__(self, name: str) -> Vertex:
        return self._by_name[name]

    @cached_property
    def slices(self) -> tuple[SliceId, ...]:
        return tuple(SliceId(vertex.name, index) for vertex in self.vertices for index in range(vertex.slices))

    @cached_property
    def has_objectives(self) -> bool:
        """Whether a slice of any vertex must be back within a time, so that there is something to control."""
        return any(vertex.recovery.objective_s is not None for vertex in self.vertices)

    def of_kind(self, kind: Kind) -> tuple[SliceId, ...]:
        return self._of_kind[kind]

    @cached_property
    def _of_kind(self) -> dict[Kind, tuple[SliceId, ...]]:
        return {kind: tuple(one for one in self.slices if self[one.operator].kind is kind) for kind in Kind}

    def channels(self, reader: SliceId) -> tuple[Channel, ...]:
        """In the order in which the rows of an epoch are merged: by operator, then slice."""
        return self._channels[reader]

    @cached_property
    def _channels(self) -> dict[SliceId, tuple[Channel, ...]]:
        """Asked for with every epoch, so they are found once."""
        return {reader: self._channels_of(reader) for reader in self.slices}

    def _channels_of(self, reader: SliceId) -> tuple[Channel, ...]:
        found = [
            Channel(number, upstream, edge.split, 0 if edge.split.whole else reader.index)
            for number, edge in enumerate(self[reader.operator].edges)
            for upstream in self._upstream(edge, reader)
        ]
        return tuple(sorted(found, key=lambda channel: (channel.upstream, channel.input)))

    def _upstream(self, edge: Edge, reader: SliceId) -> tuple[SliceId, ...]:
        if edge.one_to_one:
            return (SliceId(edge.upstream, reader.index),)
        return tuple(SliceId(edge.upstream, index) for index in range(self[edge.upstream].slices))

    def readers(self, upstream: SliceId) -> tuple[SliceId, ...]:
        """Who must have acknowledged a bag of this slice before it may be trimmed."""
        return self._readers.get(upstream, ())

    @cached_property
    def _readers(self) -> dict[SliceId, tuple[SliceId, ...]]:
        found: dict[SliceId, list[SliceId]] = {}
        for reader in self.slices:
            for upstream in dict.fromkeys(channel.upstream for channel in self.channels(reader)):
                found.setdefault(upstream, []).append(reader)
        return {upstream: tuple(readers) for upstream, readers in found.items()}

    def splits(self, name: str) -> tuple[Split, ...]:
        """The divisions in which this vertex writes its bags; those who read whole bags need none."""
        edges = (edge for vertex in self.vertices for edge in vertex.edges)
        return tuple(sorted({edge.split for edge in edges if edge.upstream == name and not edge.split.whole}))
