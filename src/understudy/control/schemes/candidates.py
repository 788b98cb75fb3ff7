"""Every scheme with every shipping interval: what each would promise a slice, what it would cost, and which to take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from understudy.control.schemes.costs import prices, weighted
from understudy.control.schemes.decisions import Why
from understudy.control.schemes.estimates import ACTIVE, STANDBY, Facts, Floats, fixed_steps, gather, jump_s, replay_s
from understudy.control.schemes.margin import NO_PENALTY
from understudy.control.schemes.objectives import Held, Settings, Watched
from understudy.model.capabilities import LADDER, rank
from understudy.model.recovery import SHIP_EVERY, SHIP_SELDOM, Scheme

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
EVEN_S = 1e-9
SAME = 0.1
"""Share of `tie` below which the costs of two candidates count as equal."""


class Board:
    """The candidates of every slice, as arrays of (slices, candidates): seconds, costs, whether they may be had."""

    def __init__(self, watched: Sequence[Watched], held: Sequence[Held | None], settings: Settings, now: float) -> None:
        self.watched, self.held, self.settings, self.now = watched, held, settings, now
        self.pairs = [(s, k) for s in range(STANDBY) for k in settings.intervals]
        self.pairs += [(STANDBY, SHIP_SELDOM), (ACTIVE, SHIP_SELDOM)]
        self.schemes: Numbers = np.array([s for s, _ in self.pairs])
        self.usual: Flags = np.array([usual(s, k, settings.intervals) for s, k in self.pairs])
        self.rows: Numbers = np.arange(len(watched))
        self.facts = gather([w.history for w in watched], [w.guarantee for w in watched])
        self.objective: Floats = np.array([w.objective_s for w in watched], dtype=np.float64)
        self.fixed: Floats = np.array([w.ship_every or 0 for w in watched], dtype=np.float64)
        self.totals, self.needed = self._seconds(self.facts, self._penalties())
        self.prices = prices([w.usage for w in watched])
        intervals: Floats = np.array([k for _, k in self.pairs], dtype=np.float64)
        self.costs = weighted(self.prices, settings.costs, self.schemes, intervals)
        self.new: Flags = np.array([h is None for h in held])
        self.current = self._current()
        self.allowed = self._allowed()

    def _penalties(self) -> Floats:
        found: Floats = np.zeros(len(self.held))
        for row, held in enumerate(self.held):
            if held is not None and held.penalty is not NO_PENALTY:
                found[row] = held.penalty.now(self.now, self.settings.caution)
        return found

    def _seconds(self, facts: Facts, penalties: Floats) -> tuple[Floats, Floats]:
        """Predicted seconds, and those with the margin that an objective must leave."""
        base: Floats = np.sum(list(fixed_steps(facts).values()), axis=0)
        # An interval the user insists on stands in for all of ours.
        pairs = [(scheme, np.where(self.fixed > 0, self.fixed, float(k))) for scheme, k in self.pairs]
        replay: Floats = np.stack([replay_s(facts, scheme, k) for scheme, k in pairs], axis=1)
        jumps: Floats = np.stack([jump_s(facts, scheme, k) for scheme, k in pairs], axis=1)
        factors = facts.factors[:, self.schemes]
        totals: Floats = (base[:, self.schemes] + replay) * factors
        needed: Floats = totals * (1.0 + self.settings.caution.base + penalties[:, None]) + jumps * factors
        return totals, needed

    def _allowed(self) -> Flags:
        """Which candidates a slice may have at all, whatever they promise."""
        strongest: Numbers = np.array([rank(w.strongest) for w in self.watched])
        permitted: Flags = self.schemes[None, :] <= strongest[:, None]
        # With a fixed interval, or nothing to replay, one interval is as good as another: only the usual one stays.
        single: Flags = (self.fixed > 0) | (self.facts.replays == 0)
        found: Flags = permitted & (self.usual[None, :] | ~single[:, None])
        return found

    def _current(self) -> Numbers:
        """The candidate each slice has now; -1 if it is new, or was given something else by hand."""
        index: dict[tuple[Scheme, int], int] = {(LADDER[s], k): n for n, (s, k) in enumerate(self.pairs)}
        by_scheme: dict[Scheme, int] = {LADDER[s]: n for n, (s, _) in enumerate(self.pairs) if self.usual[n]}
        found: Numbers = np.full(len(self.held), -1)
        for row, (held, one) in enumerate(zip(self.held, self.watched, strict=True)):
            if held is not None:
                pair = (held.scheme, held.ship_every)
                found[row] = by_scheme.get(held.scheme, -1) if one.ship_every else index.get(pair, -1)
        return found

    def choose(self) -> tuple[Numbers, list[Why]]:
        """The cheapest that keeps the objective with the margin; the fastest if none does."""
        keeps: Flags = self.allowed & (self.needed <= self.objective[:, None])
        roomy: Flags = keeps & self._roomy()
        ideal = self._cheapest(keeps)
        none: Flags = np.logical_not(keeps.any(axis=1))
        best = np.where(roomy.any(axis=1), self._cheapest(roomy), ideal)
        best = np.where(self._content(best, keeps), self.current, best)
        best = np.where(none, self._fastest(), best)
        best = np.where(self.new, self._safest(), best)
        waits: Flags = (best != self.current) & self._recent()
        chosen: Numbers = np.where(waits, self.current, best)
        return chosen, self._reasons(waits, none, best != ideal)

    def _content(self, best: Numbers, keeps: Flags) -> Flags:
        """What a slice has keeps its objective, and the best would hardly be cheaper, nor faster for the same price.

        The same, not about the same: what is a tie now would be the cheaper again a moment later.
        """
        now_cost, best_cost = self.costs[self.rows, self.current], self.costs[self.rows, best]
        faster = self.totals[self.rows, best] < self.totals[self.rows, self.current] - EVEN_S
        same = np.abs(now_cost - best_cost) <= SAME * self.settings.tie * best_cost + EVEN_S
        little = now_cost - best_cost <= self.settings.gain * self.costs[:, -1]
        found: Flags = (self.current >= 0) & keeps[self.rows, self.current] & little & ~(faster & same)
        return found

    def _recent(self) -> Flags:
        """Changed within the cool-down, to something that is still allowed."""
        since = [-np.inf if held is None else held.since for held in self.held]
        young = self.now - np.array(since) < self.settings.cool_down_s
        found: Flags = young & (self.current >= 0) & self.allowed[self.rows, self.current]
        return found

    def _roomy(self) -> Flags:
        """Slower than now: only with room to spare, so that a slice on the edge does not move to and fro."""
        now_s = np.where(self.current >= 0, self.totals[self.rows, self.current], np.inf)
        slower = self.totals > now_s[:, None] + EVEN_S
        found: Flags = ~slower | (self.needed * (1.0 + self.settings.descend) <= self.objective[:, None])
        return found

    def _cheapest(self, candidates: Flags) -> Numbers:
        """The fastest among those that cost about as little as the cheapest; of equals the stronger scheme."""
        costs = np.where(candidates, self.costs, np.inf)
        close = candidates & (costs <= costs.min(axis=1, keepdims=True) * (1.0 + self.settings.tie) + EVEN_S)
        return self._quickest(close)

    def _quickest(self, candidates: Flags) -> Numbers:
        seconds = np.where(candidates, self.totals, np.inf)
        even = seconds <= seconds.min(axis=1, keepdims=True) + EVEN_S
        last: Numbers = len(self.pairs) - 1 - np.argmax(even[:, ::-1], axis=1)
        return last

    def _fastest(self) -> Numbers:
        """Of what is known; if nothing is, the strongest that is allowed."""
        known: Flags = self.allowed & ~np.isnan(self.totals)
        return np.where(known.any(axis=1), self._quickest(known), self._safest())

    def _safest(self) -> Numbers:
        usual: Flags = self.allowed & self.usual[None, :]
        last: Numbers = len(self.pairs) - 1 - np.argmax(usual[:, ::-1], axis=1)
        return last

    def _reasons(self, waits: Flags, none: Flags, narrow: Flags) -> list[Why]:
        codes = np.select([self.new, waits, none, narrow], [0, 1, 2, 3], default=4)
        names = (Why.START, Why.COOL_DOWN, Why.UNREACHABLE, Why.ROOM, Why.CHEAPEST)
        return [names[code] for code in codes.tolist()]


def usual(scheme: int, interval: int, choices: tuple[int, ...]) -> bool:
    """Whether this is the interval a scheme ships with when nobody says otherwise."""
    wanted = SHIP_EVERY.get(LADDER[scheme], SHIP_SELDOM)
    return scheme >= STANDBY or interval == min(choices, key=lambda k: (abs(k - wanted), k))
