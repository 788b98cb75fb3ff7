"""A ranking that is kept in order while single entries change, so that asking for the first ten costs nothing."""

from __future__ import annotations

from bisect import bisect_left, insort

TOP = 10
Rank = tuple[float, ...]


class Board:
    """Entries in order of their ranks, the smallest first; entries of equal rank in order of their codes.

    >>> board = Board()
    >>> board.put(7, (-3.0,))
    >>> board.put(8, (-5.0,))
    >>> board.put(7, None)
    >>> board.first()
    [8]
    """

    def __init__(self) -> None:
        self._ranks: dict[int, Rank] = {}
        self._order: list[tuple[Rank, int]] = []

    def put(self, code: int, rank: Rank | None) -> None:
        """Gives an entry its rank, or takes it from the board."""
        before = self._ranks.pop(code, None)
        if before is not None:
            del self._order[bisect_left(self._order, (before, code))]
        if rank is not None:
            self._ranks[code] = rank
            insort(self._order, (rank, code))

    def first(self, count: int = TOP) -> list[int]:
        return [code for _, code in self._order[:count]]
