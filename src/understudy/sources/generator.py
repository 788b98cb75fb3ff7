"""Rows made by a function, the same for the same seed, slice and epoch, in any order and on any machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.errors import InvalidInput
from understudy.model.arity import check_arity
from understudy.model.schema import SchemaLike, conform, parse
from understudy.sources.interface import Position, Source, SourceReader
from understudy.sources.pace import exact, rows_before
from understudy.sources.shapes import Rate, rows_at

Make = Callable[[int, int, int, np.random.Generator], pa.Table]


@dataclass(frozen=True)
class Generator(Source):
    """A source whose rows a function makes.

    Parameters
    ----------
    make : callable
        Called as ``make(epoch, slice, rows, rng)`` for every epoch of every slice; returns a ``pyarrow.Table`` with
        exactly the columns of the schema. ``rng`` is a ``numpy.random.Generator`` that depends on (seed, slice, epoch)
        alone.
    schema : str, pyarrow.Schema, mapping or StructType
        What the rows look like, for example ``"word string, at timestamp"``.
    rate : float or callable, optional
        Rows a second and slice; fractions add up exactly. A rate that changes is a function of the seconds since the
        first epoch, such as one of ``us.sources.shapes``. Default: 1000.
    seed : int, optional
        Seed of ``rng``. Default: 0.

    Raises
    ------
    InvalidInput
        If ``make`` does not take four arguments, or the schema, the rate or the seed cannot be used.

    Notes
    -----
    The same epoch is made again after a failure and must be the same: take chance from ``rng`` only, and derive times
    from the epoch, not from a clock.

    Examples
    --------
    >>> import understudy as us
    >>> import pyarrow as pa
    >>> def numbers(epoch, slice, rows, rng):
    ...     return pa.table({"epoch": [epoch] * rows, "n": rng.integers(0, 100, rows)})
    >>> source = us.sources.Generator(numbers, "epoch long, n long", rate=2.5)
    >>> reader = source.open(0, 1, 1.0)
    >>> [reader.read(epoch, None, None).num_rows for epoch in range(4)]
    [2, 3, 2, 3]
    >>> reader.read(7, None, None) == reader.read(7, None, None)
    True
    """

    make: Make
    schema: SchemaLike
    rate: float | Rate = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", parse(self.schema))
        if not callable(self.make):
            raise InvalidInput(
                f"a generator needs a function, not {self.make!r}",
                why="every epoch is made by calling it with epoch, slice, rows and rng",
                fix="pass the function itself: us.sources.Generator(make, schema)",
            )
        check_arity(self.make, "the function of a generator", ("epoch", "slice", "rows", "rng"))
        if callable(self.rate):
            check_arity(self.rate, "the rate of a generator", ("seconds",))
        if not callable(self.rate) and (not self.rate > 0 or self.rate == float("inf")):
            raise _bad_number("rate", self.rate, "rows a second are counted, so a rate is above 0")
        if self.seed < 0:
            raise _bad_number("seed", self.seed, "numpy takes no negative seeds")

    def open(self, slice_index: int, slices: int, epoch_s: float) -> SourceReader:  # noqa: ARG002 - the interface's
        """Opens one slice; see `Source.open`."""
        return _GeneratorReader(self, slice_index, epoch_s)


def _bad_number(name: str, value: float, why: str) -> InvalidInput:
    return InvalidInput(f"{name}={value} cannot be used", why=why, fix=f"choose another {name}")


class _GeneratorReader(SourceReader):
    def __init__(self, source: Generator, slice_index: int, epoch_s: float) -> None:
        self._source = source
        self._slice = slice_index
        self._epoch_s = exact(epoch_s)
        self._name = f"generator '{getattr(source.make, '__name__', type(source.make).__name__)}'"

    def cut(self, epoch: int, start: Position) -> Position:  # noqa: ARG002 - the interface's
        return None

    def read(self, epoch: int, start: Position, end: Position) -> pa.Table:  # noqa: ARG002 - the interface's
        rows = self._rows(epoch)
        seeds = np.random.SeedSequence(self._source.seed, spawn_key=(self._slice, epoch))
        try:
            made = self._source.make(epoch, self._slice, rows, np.random.default_rng(seeds))
        except Exception as error:
            error.add_note(f"while {self._name} made {rows} rows of epoch {epoch}, slice {self._slice}")
            raise
        return self._checked(made, epoch)

    def _rows(self, epoch: int) -> int:
        rate, epoch_s = self._source.rate, self._epoch_s
        if callable(rate):
            return rows_at(rate, float(epoch * epoch_s), float(epoch_s))
        return rows_before(epoch + 1, exact(rate), epoch_s) - rows_before(epoch, exact(rate), epoch_s)

    def _checked(self, made: Any, epoch: int) -> pa.Table:
        names = self._source.schema.names
        if not isinstance(made, pa.Table):
            raise InvalidInput(
                f"{self._name} returned {type(made).__name__} for epoch {epoch}",
                why="an epoch is a pyarrow.Table",
                fix="return pa.table({...}) with the columns " + ", ".join(names),
            )
        if sorted(made.column_names) != sorted(names):
            raise InvalidInput(
                f"{self._name} returned the columns {', '.join(made.column_names) or '(none)'}",
                why=f"its schema has {', '.join(names)}",
                fix="return exactly the columns of the schema, or change the schema",
            )
        try:
            return conform(made, self._source.schema)
        except InvalidInput as error:
            raise InvalidInput(f"{self._name}: {error.what}", why=error.why, fix=error.fix) from error
