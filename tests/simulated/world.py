"""What all simulated nodes share, and what no failure of theirs touches: the log, the checkpoints, the outside."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from tests.simulated.checkpoints import SimStore
from tests.simulated.log import SimLog
from tests.simulated.tokens import source_token
from understudy.model.layout import Kind, Layout
from understudy.model.messages import Correction
from understudy.model.names import SliceId
from understudy.sinks.interface import Sink, SinkWriter, Written
from understudy.sources.interface import Source, SourceReader


@dataclass
class World:
    layout: Layout
    rng: random.Random
    log: SimLog
    stores: dict[SliceId, SimStore] = field(default_factory=dict)
    written: dict[str, dict[int, int]] = field(default_factory=dict)
    """What every sink has written to the outside, by epoch."""
    rewritten: list[tuple[str, int]] = field(default_factory=list)
    """Epochs that were offered to the outside with another content than before."""
    branches: dict[int, SimLog] = field(default_factory=dict)
    """The bags of tentative branches."""
    copies: dict[str, dict[int, int]] = field(default_factory=dict)
    """What every sink has written tentatively and not withdrawn yet, as the run remembers it."""
    tentative: dict[str, dict[int, int]] = field(default_factory=dict)
    """The same, as the outside sees it."""
    tried: list[tuple[str, int]] = field(default_factory=list)
    """Every epoch that was written tentatively, by sink."""

    count: Callable[[SliceId, int], int] = lambda _, __: 1
    """How many rows a bag says it has; only counters look at it."""

    def __post_init__(self) -> None:
        for slice_id in self.layout.of_kind(Kind.OPERATOR):
            self.stores[slice_id] = SimStore(slice_id, self.layout[slice_id.operator].stateful)

    def chance(self) -> int:
        return self.rng.randrange(1, 1 << 30)

    def fill_disk(self, full: Callable[[], bool]) -> None:
        self.log.full = full
        self.fill_stores(full)

    def fill_stores(self, full: Callable[[], bool]) -> None:
        for store in self.stores.values():
            store.full = full


_CUTS = itertools.count(1)
"""No two cuts are the same, so an epoch that is cut again shows."""


class TokenSource(Source):
    """Rows are the token of their epoch. `recorded` makes it a live source, whose cuts must be written down."""

    schema = pa.schema({"word": pa.string(), "n": pa.int64()})

    def __init__(self, name: str = "lines", *, recorded: bool = False) -> None:
        self.name, self.recorded = name, recorded

    def open(self, slice_index: int, slices: int, epoch_s: float) -> SourceReader:
        return TokenReader(self, SliceId(self.name, slice_index))


@dataclass
class TokenReader(SourceReader):
    source: TokenSource
    slice_id: SliceId

    def cut(self, epoch: int, start: object) -> int:
        return next(_CUTS) if self.source.recorded else epoch

    def read(self, epoch: int, start: Any, end: Any) -> int:
        cut = (start or 0, end) if self.source.recorded else ()
        return source_token(self.slice_id, epoch, *cut)


@dataclass
class TokenCopies:
    """What a sink has written tentatively."""

    held: dict[int, int]

    def keep(self, epoch: int, rows: int) -> None:
        self.held[epoch] = rows

    def until(self, epoch: int) -> list[int]:
        return sorted(number for number in self.held if number <= epoch)

    def compare(self, epoch: int, rows: int) -> Correction:
        return Correction(rows=1, tentative_rows=1, had=int(self.held[epoch] == rows))

    def drop(self, epoch: int) -> None:
        self.held.pop(epoch, None)


_OUTSIDE: WeakKeyDictionary[TokenSink, World] = WeakKeyDictionary()
"""Where sinks write to; not in the sink itself, whose fields are parameters of the application."""


class TokenSink(Sink):
    """Writes an epoch once, as every sink must; offered again, it must be the same."""

    def write_to(self, world: World) -> None:
        _OUTSIDE[self] = world

    takes_tentative = True

    def open(self, name: str, home: object, run: str) -> SinkWriter:
        return TokenWriter(_OUTSIDE[self], name)


@dataclass
class TokenWriter(SinkWriter):
    world: World
    name: str

    def write(self, epoch: int, rows: int) -> Written:
        written = self.world.written.setdefault(self.name, {})
        if epoch in written:
            if written[epoch] != rows:
                self.world.rewritten.append((self.name, epoch))
            return Written.THERE
        written[epoch] = rows
        return Written.ONCE

    def write_tentative(self, epoch: int, rows: int, missing: tuple[str, ...]) -> None:
        self.world.tentative.setdefault(self.name, {})[epoch] = rows
        self.world.tried.append((self.name, epoch))

    def withdraw_tentative(self, epoch: int) -> None:
        self.world.tentative.get(self.name, {}).pop(epoch, None)
