"""Stable 64-bit hashes of rows: which slice a row goes to, and what a bag holds.

The same value has the same hash on every machine, in every chunking and slicing of a table, because hashes
are made from values and never from layout. All work is numpy over Arrow's buffers in blocks that stay in the
cache; there is no Python loop over rows. The functions are frozen: slices of a running topology depend on
them, and a test holds golden values. They are no defence against somebody who looks for collisions on
purpose.

A column becomes words of 64 bits (see `words.py`); a row starts at a seed and takes in one word after the
other with the finaliser of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
2014).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from understudy.errors import InvalidInput
from understudy.model.words import Words, column_words, mix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

BLOCK = 1 << 14
"""Rows per block: the block, a word and the scratch take 384 KB, which is a core's second cache."""

_SEED = np.uint64(0x243F6A8885A308D3)
_SECOND = np.uint64(0x452821E638D01377)


def row_hashes(table: pa.Table, columns: Sequence[str] | None = None) -> NDArray[np.uint64]:
    """One hash per row over the columns in the order given; names do not count, values and their order do.

    Equal numbers hash alike in every integer width; float32 hashes like the float64 of the same value, -0.0
    like 0.0, every NaN like every other. Times hash by their number, so compare times of one unit only
    (Spark has one); decimals by their unscaled number, so compare decimals of one scale only.
    """
    chosen = table.column_names if columns is None else list(columns)
    hashes = np.full(table.num_rows, _SEED, np.uint64)
    for name in chosen:
        at = 0
        for words in _blocks(_column(table, name)):
            view = hashes[at : at + len(words)]
            np.bitwise_xor(view, words, out=view)
            mix(view)
            at += len(words)
    return hashes


def family(kind: pa.DataType) -> str:
    """Types of one family hash equal values alike; values of two families part ways even where Spark calls them equal.

    A `long` 1 and a `double` 1.0, or decimals of two scales, are such values.
    """
    if pt.is_dictionary(kind):
        return family(kind.value_type)
    if pt.is_struct(kind):
        return f"struct<{', '.join(family(field.type) for field in kind)}>"
    if pt.is_map(kind):
        return f"map<{family(kind.key_type)}, {family(kind.item_type)}>"
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        return f"array<{family(kind.value_type)}>"
    if pt.is_decimal(kind):
        return f"decimal of scale {kind.scale}"
    if pt.is_timestamp(kind) or pt.is_time(kind) or pt.is_duration(kind):
        return f"{type(kind).__name__} in {kind.unit}"
    found = (name for name, matches in _FAMILIES.items() if matches(kind))
    return next(found, str(kind))


_FAMILIES: dict[str, Callable[[pa.DataType], bool]] = {
    "whole number": lambda kind: pt.is_integer(kind) or pt.is_boolean(kind),
    "floating point": pt.is_floating,
    "text": lambda kind: any(
        matches(kind)
        for matches in (pt.is_string, pt.is_large_string, pt.is_string_view, pt.is_binary, pt.is_large_binary)
    ),
}


def partition(table: pa.Table, key: Sequence[str], slices: int) -> list[pa.Table]:
    """The rows of each slice by the hash of the key, in the order they had; equal keys land together."""
    if slices == 1:
        return [table]
    # The upper half times the number of slices, over 2^32: as even as a remainder and free of division.
    slots = ((row_hashes(table, key) >> np.uint64(32)) * np.uint64(slices)) >> np.uint64(32)
    # Few distinct small numbers: numpy sorts these by counting, which beats one filter per slice.
    order = np.argsort(slots.astype(np.uint16 if slices <= 1 << 16 else np.uint64), kind="stable")
    ends = np.cumsum(np.bincount(slots.astype(np.int64), minlength=slices))
    sorted_rows = table.combine_chunks().take(pa.array(order))
    starts = np.concatenate(([0], ends[:-1]))
    return [sorted_rows.slice(int(a), int(b - a)) for a, b in zip(starts, ends, strict=True)]


def spread(table: pa.Table, slices: int) -> list[pa.Table]:
    """The rows dealt out like cards: row i goes to slice i modulo `slices`."""
    if slices == 1:
        return [table]
    whole = table.combine_chunks()
    return [whole.take(pa.array(np.arange(i, table.num_rows, slices))) for i in range(slices)]


def digest(table: pa.Table) -> str:
    """What the table holds, whatever the order of its rows: two sums over the rows and their number, in hex.

    Column names and their order count. The sums are modulo 2^64, of two independent functions of a row's
    hash: two tables are mistaken for each other if two rows share a 64-bit hash, or if both sums agree by
    chance (2^-128).
    """
    names = hashlib.sha256("\0".join(table.column_names).encode()).digest()
    first, second = int.from_bytes(names[:8], "big"), int.from_bytes(names[8:16], "big")
    hashes = row_hashes(table)
    block = np.empty(min(BLOCK, len(hashes)), np.uint64)
    for at in range(0, len(hashes), BLOCK):
        part = hashes[at : at + BLOCK]
        other = block[: len(part)]
        np.bitwise_xor(part, _SECOND, out=other)
        mix(other)
        first += int(part.sum(dtype=np.uint64))
        second += int(other.sum(dtype=np.uint64))
    limit = (1 << 64) - 1
    return f"{first & limit:016x}{second & limit:016x}{table.num_rows:08x}"


NOTHING = hashlib.sha256().hexdigest()
"""The digest of a stream that has no epoch yet."""


def chain(before: str, epoch: int, epoch_digest: str, rows: int) -> str:
    """The digest of a stream with one more epoch. All that must be known of the earlier ones is their digest."""
    return hashlib.sha256(f"{before}\n{epoch}:{epoch_digest}:{rows}\n".encode()).hexdigest()


def combine(epochs: Iterable[tuple[int, str, int]], before: str = NOTHING) -> str:
    """One digest for a whole stream from (epoch, digest, rows) in epoch order; goes on from the digest `before`."""
    for epoch, epoch_digest, rows in epochs:
        before = chain(before, epoch, epoch_digest, rows)
    return before


def _column(table: pa.Table, name: str) -> pa.ChunkedArray:
    found = table.schema.get_all_field_indices(name)
    if len(found) == 1:
        return table.column(found[0])
    raise InvalidInput(
        f"there is no column '{name}' to hash" if not found else f"column '{name}' is there {len(found)} times",
        why=f"the rows have the columns {', '.join(table.column_names) or '(none)'}",
        fix="use a column of the rows as key",
    )


def _blocks(column: pa.ChunkedArray) -> Iterator[Words]:
    for chunk in column.chunks:
        for at in range(0, len(chunk), BLOCK):
            yield column_words(chunk.slice(at, BLOCK))
