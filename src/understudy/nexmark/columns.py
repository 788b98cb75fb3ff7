"""Rows of several kinds in one wide table: a column that a kind does not have is null."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Columns:
    """Wide columns that are filled one kind of event at a time."""

    def __init__(self, kind: NDArray[np.int64]) -> None:
        self.kind = kind
        self._values: dict[str, NDArray[np.int64]] = {}
        self._filled: dict[str, NDArray[np.bool_]] = {}
        self._pools: dict[str, list[pa.Array]] = {}

    def put(self, name: str, rows: NDArray[np.bool_], values: NDArray[np.int64]) -> None:
        """Writes numbers into the given rows of a column."""
        if name not in self._values:
            self._values[name] = np.zeros(len(self.kind), np.int64)
            self._filled[name] = np.zeros(len(self.kind), np.bool_)
        self._values[name][rows] = values
        self._filled[name] |= rows

    def pick(self, name: str, rows: NDArray[np.bool_], index: NDArray[np.int64], pool: pa.Array) -> None:
        """Writes texts of a pool into the given rows of a column; a column may take from several pools."""
        before = self._pools.setdefault(name, [])
        self.put(name, rows, index + sum(map(len, before)))
        before.append(pool)

    def table(self) -> pa.Table:
        return pa.table({name: self._array(name) for name in self._values})

    def _array(self, name: str) -> pa.Array:
        numbers = pa.array(self._values[name], mask=~self._filled[name])
        if name in self._pools:
            return pa.concat_arrays(self._pools[name]).take(numbers)
        if name in ("at", "expires"):
            return numbers.cast(pa.timestamp("us", tz="UTC"))
        return numbers.cast(pa.int32()) if name == "kind" else numbers
