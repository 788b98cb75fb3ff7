"""What a query was told to read lately: to name a damaged bag, and to hand down what was lost."""

from __future__ import annotations

import re
from pathlib import Path

from understudy.control.replica.decide import AHEAD
from understudy.log.bag import DamagedBag
from understudy.model.names import SliceId
from understudy.stream.edge import Input, InputDamaged

_DAMAGED = re.compile(r"damaged bag <<(.*?)>>: ([^\n]*)")


class Reading:
    """Written by the replica's own thread, read by the query's: both mappings are replaced as a whole."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[SliceId, int]] = {}
        self._lost: dict[int, tuple[str, ...]] = {}

    def note(self, epoch: int, found: Input) -> None:
        kept = {path: place for path, place in self._places.items() if place[1] > epoch - 2 * AHEAD}
        self._places = kept | {path: (upstream, epoch) for path, upstream in found.places.items()}
        lost = {number: names for number, names in self._lost.items() if number > epoch - 2 * AHEAD}
        self._lost = lost | {epoch: found.lost}

    def lost(self, epoch: int) -> tuple[str, ...]:
        """The slices that left a gap in the input of an epoch."""
        return self._lost.get(epoch, ())

    def explain(self, error: BaseException, home: Path) -> BaseException:
        """Finds in Spark's words the bag that could not be read."""
        match = _DAMAGED.search(str(error))
        place = self._places.get(match[1]) if match else None
        if match is None or place is None:
            return error
        return InputDamaged(DamagedBag(home / match[1], match[2]), *place)
