"""How many bytes rows take, as a function of their values alone.

Arrow's own count depends on how a table came about: on its chunks, and on bitmaps for nulls that are not there. Where
a bag is cut must not, because it decides how many partitions Spark makes of it.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

_OFFSET_BITS = 32


def payload_bytes(table: pa.Table) -> int:
    """Values and offsets without bitmaps and padding; never more than `table.nbytes`."""
    return sum(_bits(chunk) for column in table.columns for chunk in column.chunks) // 8


def _bits(array: pa.Array) -> int:
    kind = array.type
    if pt.is_struct(kind):
        return sum(_bits(child) for child in array.flatten())
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_map(kind):
        return len(array) * _OFFSET_BITS + _bits(array.flatten())
    if pt.is_fixed_size_list(kind):
        return _bits(array.flatten())
    if pt.is_string(kind) or pt.is_binary(kind) or pt.is_large_string(kind) or pt.is_large_binary(kind):
        return len(array) * _OFFSET_BITS + 8 * (pc.sum(pc.binary_length(array)).as_py() or 0)
    if pt.is_null(kind):
        return 0
    return len(array) * int(kind.bit_width)
