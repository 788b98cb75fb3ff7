"""Card payments as they reach a bank: most of them near home, some of them not the owner's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

SCHEMA = "id long, card long, merchant int, at timestamp, cents long, latitude double, longitude double"
START_S = 1_767_225_600  # 2026-01-01 00:00:00 UTC
MERCHANTS = 300
LEAKY = 13  # the merchant whose customers' numbers were stolen
STOLEN = 0.02  # share of payments by thieves
BURST = 5  # payments of a thief in a row

# Latitude, longitude: people live around these.
CITIES = np.array([(52.52, 13.40), (48.86, 2.35), (51.51, -0.13), (40.42, -3.70), (41.90, 12.50), (59.33, 18.07)])
SYDNEY = np.array((-33.87, 151.21))


def payments(epoch: int, rows: int, seconds: float, cards: int, rng: np.random.Generator) -> pa.Table:
    """The payments of an epoch that stands for so many seconds, in order of time.

    A card's home and habits follow from its number, so they are the same in every epoch. A thief pays several times
    within a minute, or from the other side of the world, or once and much.
    """
    card = rng.integers(0, cards, rows)
    at = np.sort(rng.integers(int(epoch * seconds * 1000), max(int((epoch + 1) * seconds * 1000), 1), rows))
    merchant = rng.integers(0, MERCHANTS, rows)
    place = _homes(card) + rng.normal(0, 0.05, (rows, 2))
    cents = (rng.lognormal(0, 0.6, rows) * (800 + card % 10 * 400)).astype(np.int64) + 50
    thief = rng.random(rows) < STOLEN
    kind = rng.integers(0, 3, rows)
    merchant[thief] = np.where(rng.random(thief.sum()) < 0.5, LEAKY, merchant[thief])
    place[thief & (kind == 1)] = SYDNEY
    cents[thief & (kind == 2)] *= 40
    for first in np.flatnonzero(thief & (kind == 0)):
        card[first : first + BURST] = card[first]
        place[first : first + BURST] = place[first]
    return pa.table(
        {
            "id": epoch * 1_000_000 + np.arange(rows),
            "card": card,
            "merchant": pa.array(merchant, pa.int32()),
            "at": pa.array(START_S * 1000 + at, pa.timestamp("ms", tz="UTC")),
            "cents": cents,
            "latitude": np.round(place[:, 0], 5),
            "longitude": np.round(place[:, 1], 5),
        }
    )


def _homes(card: NDArray[np.int64]) -> NDArray[np.float64]:
    homes: NDArray[np.float64] = CITIES[card % len(CITIES)] + np.stack([card % 7 - 3, card % 11 - 5], axis=1) * 0.02
    return homes
