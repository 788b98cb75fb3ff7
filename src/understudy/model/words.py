"""Arrow values as 64-bit words, the raw material of row hashes (see `understudy.model.hashing`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from understudy.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

Words: TypeAlias = "NDArray[np.uint64]"

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)

_NULL = np.uint64(0x13198A2E03707344)
_NAN = np.uint64(0x7FF8000000000000)
_STRUCT = np.uint64(0xA4093822299F31D0)
_LIST = np.uint64(0x082EFA98EC4E6C89)

_LONG = 1 << 15
"""Bytes hashed at once; with 8 bytes of weights and terms per byte it stays in the second cache."""


def mix(z: Words) -> None:
    """splitmix64's step and finaliser, in place."""
    t = np.empty_like(z)
    np.add(z, GOLDEN, out=z)
    np.right_shift(z, _S30, out=t)
    np.bitwise_xor(z, t, out=z)
    np.multiply(z, _M1, out=z)
    np.right_shift(z, _S27, out=t)
    np.bitwise_xor(z, t, out=z)
    np.multiply(z, _M2, out=z)
    np.right_shift(z, _S31, out=t)
    np.bitwise_xor(z, t, out=z)


def _weights(start: int, count: int) -> Words:
    """The random odd weight of each position: position p has the p-th number of splitmix64 from 0."""
    answer = (np.arange(start, start + count, dtype=np.uint64)) * GOLDEN
    mix(answer)
    return answer | np.uint64(1)


def _letters() -> Words:
    letters = np.arange(256, dtype=np.uint64) + np.uint64(0x3F84D5B5B5470917)
    mix(letters)
    mix(letters)
    return letters


_LETTERS = _letters()
_WEIGHTS = _weights(0, _LONG)


def column_words(array: pa.Array) -> Words:
    """One word per value of the array; equal values give equal words, whatever the layout."""
    if isinstance(array, pa.ExtensionArray):
        return column_words(array.storage)
    words = _reader(array.type)(array)
    if array.null_count:
        words = words.copy() if not words.flags.writeable else words
        words[~array.is_valid().to_numpy(zero_copy_only=False)] = _NULL
    return words


def _reader(kind: pa.DataType) -> Callable[[pa.Array], Words]:
    for matches, read in _READERS:
        if matches(kind):
            return read
    raise InvalidInput(
        f"a column of type {kind} cannot be hashed",
        why="its values have no stable 64-bit form here",
        fix="cast the column to a type Spark has, for example string",
    )


def _buffer(array: pa.Array, dtype: np.dtype[Any], per_value: int = 1) -> NDArray[Any]:
    """The values under this array, from its offset on; what lies under nulls may be anything."""
    data = array.buffers()[1]
    if len(array) == 0 or data is None:
        return np.zeros(len(array) * per_value, dtype)
    start = array.offset * per_value * dtype.itemsize
    return np.frombuffer(data, dtype, len(array) * per_value, start)


def _numbers(array: pa.Array) -> Words:
    dtype = np.dtype(f"i{array.type.bit_width // 8}")
    if pt.is_unsigned_integer(array.type):
        dtype = np.dtype(f"u{array.type.bit_width // 8}")
    return _buffer(array, dtype).astype(np.int64, copy=False).view(np.uint64)


def _floats(array: pa.Array) -> Words:
    values = _buffer(array, np.dtype(f"f{array.type.bit_width // 8}")).astype(np.float64, copy=False)
    clean = values + 0.0  # -0.0 + 0.0 is 0.0
    words = clean.view(np.uint64)
    words[np.isnan(clean)] = _NAN
    return words


def _booleans(array: pa.Array) -> Words:
    return _numbers(array.cast(pa.uint8()))


def _decimals(array: pa.Array) -> Words:
    if array.type.bit_width < 128:
        array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    count = array.type.bit_width // 64
    parts = _buffer(array, np.dtype(np.uint64), count).reshape(len(array), count)
    words = np.ascontiguousarray(parts[:, 0]).view(np.uint64).copy()
    for i in range(1, count):
        mix(words)
        np.bitwise_xor(words, parts[:, i].view(np.uint64), out=words)
    return words


def _offsets(array: pa.Array) -> NDArray[np.int64]:
    kind = array.type
    large = pt.is_large_string(kind) or pt.is_large_binary(kind) or pt.is_large_list(kind)
    dtype = np.int64 if large else np.int32
    data = array.buffers()[1]
    if len(array) == 0 or data is None:
        return np.zeros(len(array) + 1, np.int64)
    start = array.offset * np.dtype(dtype).itemsize
    return np.frombuffer(data, dtype, len(array) + 1, start).astype(np.int64, copy=False)


def _texts(array: pa.Array) -> Words:
    """Sum of letter times weight of its position, modulo 2^64, plus the length.

    Independent weights instead of the powers of one base: powers of an odd base modulo 2^64 share low bits,
    and there are short texts that collide under every base.
    """
    offsets = _offsets(array)
    words = np.empty(len(array), np.uint64)
    data = array.buffers()[2]
    letters = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    row = 0
    while row < len(array):
        last = int(np.searchsorted(offsets, offsets[row] + _LONG, side="right")) - 1
        if last <= row:
            words[row] = _long_text(letters[offsets[row] : offsets[row + 1]])
            row += 1
        else:
            last = min(last, len(array))
            words[row:last] = _short_texts(letters, offsets[row : last + 1])
            row = last
    return words


def _short_texts(letters: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Words:
    terms = _LETTERS[letters[offsets[0] : offsets[-1]]]
    return _weighted(terms, offsets - offsets[0], _WEIGHTS)


def _long_text(text: NDArray[np.uint8]) -> np.uint64:
    total = len(text) * int(GOLDEN)
    for at in range(0, len(text), _LONG):
        terms = _LETTERS[text[at : at + _LONG]]
        terms *= _weights(at, len(terms))
        total += int(terms.sum(dtype=np.uint64))
    return np.uint64(total & ((1 << 64) - 1))


def _weighted(terms: Words, offsets: NDArray[np.int64], weights: Words) -> Words:
    """Per row, the sum of its terms times the weights of their positions in the row."""
    lengths = np.diff(offsets)
    positions = np.arange(len(terms)) - np.repeat(offsets[:-1], lengths)
    terms *= weights[positions]
    sums = np.zeros(len(terms) + 1, np.uint64)
    np.cumsum(terms, out=sums[1:])
    return sums[offsets[1:]] - sums[offsets[:-1]] + lengths.view(np.uint64) * GOLDEN


def _structs(array: pa.Array) -> Words:
    words = np.full(len(array), _STRUCT, np.uint64)
    for i in range(array.type.num_fields):
        # What lies under a null struct does not matter: the caller puts the word for null there.
        np.bitwise_xor(words, column_words(array.field(i)), out=words)
        mix(words)
    return words


def _lists(array: pa.Array) -> Words:
    """Like texts, with the elements' words as letters.

    Maps are lists of entries: their order counts, as in Spark.
    """
    offsets = _offsets(array)
    first, last = int(offsets[0]), int(offsets[-1])
    # `values` ignores this array's own slice, and may be longer than what our rows use.
    entries = _entries(array) if pt.is_map(array.type) else array.values
    terms = column_words(entries.slice(first, last - first)).copy()
    np.bitwise_xor(terms, _LIST, out=terms)
    mix(terms)
    longest = int(np.diff(offsets).max(initial=0))
    weights = _WEIGHTS if longest <= _LONG else _weights(0, longest)
    return _weighted(terms, offsets - first, weights)


def _entries(array: pa.MapArray) -> pa.StructArray:
    return pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])


def _nothing(array: pa.Array) -> Words:
    return np.full(len(array), _NULL, np.uint64)


def _decoded(array: pa.Array) -> Words:
    return column_words(array.dictionary_decode())


def _as(kind: Callable[[pa.DataType], pa.DataType]) -> Callable[[pa.Array], Words]:
    return lambda array: column_words(array.cast(kind(array.type)))


_READERS: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], Words]]] = [
    (pt.is_integer, _numbers),
    (lambda k: pt.is_string(k) or pt.is_binary(k) or pt.is_large_string(k) or pt.is_large_binary(k), _texts),
    (pt.is_floating, _floats),
    (lambda k: pt.is_temporal(k) and not pt.is_interval(k), _numbers),
    (pt.is_boolean, _booleans),
    (pt.is_decimal, _decimals),
    (pt.is_struct, _structs),
    (lambda k: pt.is_list(k) or pt.is_large_list(k) or pt.is_map(k), _lists),
    (pt.is_null, _nothing),
    (pt.is_dictionary, _decoded),
    (pt.is_fixed_size_list, _as(lambda k: pa.list_(k.value_type))),
    (lambda k: pt.is_fixed_size_binary(k) or pt.is_binary_view(k), _as(lambda _: pa.binary())),
    (pt.is_string_view, _as(lambda _: pa.string())),
]
