"""The rules by which a payment looks stolen, and what they must know of a card. Plain Python, no Spark."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

VELOCITY_US = 5 * 60 * 1_000_000
VELOCITY = 3  # payments within five minutes that are nothing special
FAR_KM = 100  # nearer than this, a wrong position is more likely than a thief
FAST_KMH = 900  # an airliner
SPIKE = 10  # times the usual amount
USUAL = 3  # payments before a card has a usual amount
EARTH_KM = 6371.0


class Payment(NamedTuple):
    """A payment; in order of `at` and `id`, time in microseconds."""

    at: int
    id: int
    merchant: int
    cents: int
    latitude: float
    longitude: float


class Alert(NamedTuple):
    """A rule that a payment breaks, and by how much: payments, kilometres, or per cent of the usual amount."""

    rule: str
    value: int


@dataclass
class Card:
    """What is remembered of a card: the times of the last five minutes, the last place, and what it usually pays."""

    recent: list[int] = field(default_factory=list)
    at: int = 0
    latitude: float = 0.0
    longitude: float = 0.0
    payments: int = 0
    cents: int = 0

    def pay(self, payment: Payment) -> list[Alert]:
        """Judges a payment by those before it, then remembers it."""
        self.recent = [at for at in self.recent if at > payment.at - VELOCITY_US] + [payment.at]
        alerts = [*self._velocity(), *self._distance(payment), *self._spike(payment)]
        self.at, self.latitude, self.longitude = payment.at, payment.latitude, payment.longitude
        self.payments += 1
        self.cents += payment.cents
        return alerts

    def _velocity(self) -> list[Alert]:
        return [Alert("velocity", len(self.recent))] if len(self.recent) > VELOCITY else []

    def _distance(self, payment: Payment) -> list[Alert]:
        if not self.payments:
            return []
        km = distance(self.latitude, self.longitude, payment.latitude, payment.longitude)
        hours = (payment.at - self.at) / 3.6e9
        return [Alert("distance", round(km))] if km > FAR_KM and km > FAST_KMH * hours else []

    def _spike(self, payment: Payment) -> list[Alert]:
        if self.payments < USUAL or payment.cents * self.payments <= SPIKE * self.cents:
            return []
        return [Alert("spike", 100 * payment.cents * self.payments // self.cents)]


def distance(latitude: float, longitude: float, to_latitude: float, to_longitude: float) -> float:
    """Kilometres along the surface (haversine).

    >>> round(distance(52.52, 13.40, 48.86, 2.35))
    877
    """
    north, east = math.radians(to_latitude - latitude), math.radians(to_longitude - longitude)
    across = math.cos(math.radians(latitude)) * math.cos(math.radians(to_latitude))
    half = math.sin(north / 2) ** 2 + across * math.sin(east / 2) ** 2
    return 2 * EARTH_KM * math.asin(math.sqrt(half))
