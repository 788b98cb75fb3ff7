"""The texts and prices that events are made of. An event picks from a pool, so a million of them are made in no time.

All pools are constants: they depend on nothing but this file, and all seeds share them.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pyarrow as pa

from understudy.nexmark.draws import below

STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = ("Tucson", "Oakland", "Fresno", "Pocatello", "Salem", "Eugene", "Tacoma", "Spokane", "Olympia", "Laramie")
FIRST_NAMES = ("Ada", "Boris", "Clara", "Denis", "Edith", "Felix", "Greta", "Hugo", "Iris", "Jonas", "Karen")
LAST_NAMES = ("Archer", "Brewer", "Carter", "Draper", "Fisher", "Glover", "Hunter", "Mason", "Turner")
HOT_CHANNELS = ("Apple", "Google", "Facebook", "Baidu")
CHANNELS = 10_000
"""Besides the hot ones."""
PRICES = 1 << 16
TEXTS = 1 << 10
"""How many different texts of each kind there are."""
_SEED = 2015


@cache
def names() -> pa.Array:
    return pa.array([f"{first} {last}" for first, last in product(FIRST_NAMES, LAST_NAMES)])


@cache
def cities() -> pa.Array:
    return pa.array(CITIES)


@cache
def states() -> pa.Array:
    return pa.array(STATES)


@cache
def emails() -> pa.Array:
    return pa.array(
        [f"{who}@{where}.com" for who, where in zip(_words(TEXTS, 3, 7, 1), _words(TEXTS, 3, 5, 2), strict=True)]
    )


@cache
def cards() -> pa.Array:
    parts = [below(10_000, np.arange(TEXTS), purpose, _SEED) for purpose in range(10, 14)]
    return pa.array([" ".join(f"{part:04d}" for part in card) for card in zip(*parts, strict=True)])


@cache
def items() -> pa.Array:
    return pa.array(_words(TEXTS, 3, 20, 3))


@cache
def descriptions() -> pa.Array:
    return pa.array(_words(TEXTS, 3, 100, 4))


@cache
def extras(mean: int) -> pa.Array:
    """Filling, so that an event has the size the benchmark gives it: `mean` letters, a fifth more or less."""
    return pa.array(_words(TEXTS, mean * 4 // 5, mean * 6 // 5, 5))


@cache
def channels() -> pa.Array:
    """The hot channels, then all others."""
    return pa.array([*HOT_CHANNELS, *(f"channel-{n}" for n in range(CHANNELS))])


@cache
def urls() -> pa.Array:
    """The address of every channel. Nine of ten channels that are not hot have their number in it."""
    numbered = below(10, np.arange(CHANNELS), 8, _SEED) > 0
    ends = [*([""] * len(HOT_CHANNELS)), *(f"&channel_id={n}" if numbered[n] else "" for n in range(CHANNELS))]
    folders = zip(*(_words(len(ends), 3, 5, purpose) for purpose in (20, 21, 22)), strict=True)
    places = ("/".join(folder) for folder in folders)
    return pa.array(
        [f"https://www.nexmark.com/{place}/item.htm?query=1{end}" for place, end in zip(places, ends, strict=True)]
    )


@cache
def prices() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Cents, from a dollar to a million; as many between 1 and 10 dollars as between 10 and 100."""
    return np.array([round(10 ** (6 * n / PRICES) * 100) for n in range(PRICES)], np.int64)


def _words(count: int, shortest: int, longest: int, purpose: int) -> list[str]:
    """So many words of `shortest` to `longest` letters, always the same for the same arguments."""
    lengths = shortest + below(longest - shortest + 1, np.arange(count), 100 + purpose, _SEED)
    letters = below(26, np.arange(count * longest), 200 + purpose, _SEED) + ord("a")
    lines = letters.astype(np.uint8).reshape(count, longest)
    return [line[:length].tobytes().decode() for line, length in zip(lines, lengths, strict=True)]
