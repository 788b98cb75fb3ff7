"""Which epoch a row belongs to: exact arithmetic, so that every machine and every restart agrees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from understudy.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SAFE = 1 << 62
_BEFORE_ALL = np.iinfo(np.int64).min


def exact(number: float | Fraction) -> Fraction:
    """The number as it is written: 0.1 is a tenth, not the nearest binary fraction."""
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


def rows_before(epoch: int, rate: Fraction, epoch_s: Fraction) -> int:
    """How many rows a steady stream has given when this epoch starts."""
    return floor(epoch * rate * epoch_s)


def _floor_divide(numbers: NDArray[np.int64], times: int, by: int) -> NDArray[np.int64]:
    """floor(numbers * times / by), in Python's big integers only where 64 bits would not do."""
    largest = max(abs(int(numbers.min(initial=0))), abs(int(numbers.max(initial=0))))
    if largest * times < _SAFE and by < _SAFE:
        return numbers * times // by
    return np.array([int(n) * times // by for n in numbers], np.int64)


class Pace(ABC):
    """Gives the rows of an input their epochs, batch after batch; epochs never go down."""

    @abstractmethod
    def epochs(self, batch: pa.Table, first_row: int) -> NDArray[np.int64]: ...

    def state(self) -> Any:
        """What it remembers of the rows so far, as JSON can hold it."""
        return None

    def restore(self, state: Any) -> None:  # noqa: B027 - most remember nothing
        """Goes on as if the rows before had been seen."""


@dataclass(frozen=True)
class ByRate(Pace):
    """So many rows a second and slice."""

    rate: Fraction
    epoch_s: Fraction
    slices: int

    def epochs(self, batch: pa.Table, first_row: int) -> NDArray[np.int64]:
        # Row l of a slice lies in epoch n if rows_before(n) <= l < rows_before(n + 1), so n + 1 is the smallest
        # number with (n + 1) * per_epoch >= l + 1.
        per_epoch = self.rate * self.epoch_s
        rows = np.arange(first_row, first_row + batch.num_rows, dtype=np.int64) // self.slices
        return -_floor_divide(-(rows + 1), per_epoch.denominator, per_epoch.numerator) - 1


class ByTime(Pace):
    """By a column's time since the first row; a row that goes back in time, or has none, stays in the epoch cut."""

    def __init__(self, column: str, epoch_s: Fraction, speed: Fraction) -> None:
        self._column = column
        self._width = epoch_s * speed * 1_000_000
        self._start: int | None = None
        self._last = 0

    def state(self) -> Any:
        return [self._start, self._last]

    def restore(self, state: Any) -> None:
        self._start, self._last = state

    def epochs(self, batch: pa.Table, first_row: int) -> NDArray[np.int64]:  # noqa: ARG002 - the interface's
        times, known = _microseconds(batch.column(self._column))
        if self._start is None and known.any():
            self._start = int(times[known][0])
        epochs = np.full(len(times), self._last, np.int64)
        if self._start is not None:
            since = np.where(known, times - self._start, _BEFORE_ALL // 4)
            epochs = np.maximum(_floor_divide(since, self._width.denominator, self._width.numerator), self._last)
            np.maximum.accumulate(epochs, out=epochs)
        if len(epochs):
            self._last = int(epochs[-1])
        return epochs


def check_time_column(schema: pa.Schema, column: str) -> None:
    if column not in schema.names:
        raise InvalidInput(
            f"there is no column '{column}' to take the event time from",
            why=f"the schema has the columns {', '.join(schema.names)}",
            fix="name a column of the schema in event_time",
        )
    kind = schema.field(column).type
    if not (pt.is_timestamp(kind) or pt.is_date(kind) or pt.is_integer(kind)):
        raise InvalidInput(
            f"column '{column}' of type {kind} is no event time",
            why="event times are timestamps, dates or whole seconds",
            fix=f"give '{column}' the type timestamp in the schema",
        )


def _microseconds(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    known = column.is_valid().to_numpy()
    scale = 1
    kind: Any = column.type
    if pt.is_integer(kind):
        scale = 1_000_000
    elif pt.is_date(kind):
        column, scale = column.cast(pa.int32()), 86_400_000_000
    else:
        column = column.cast(pa.timestamp("us", tz=kind.tz))
    numbers = column.cast(pa.int64()).fill_null(0).to_numpy().astype(np.int64)
    return numbers * scale, known
