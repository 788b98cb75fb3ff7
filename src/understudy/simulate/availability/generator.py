"""Random queries from six templates (Grüneberger et al. 2013, §3.4, give their number and nothing else).

The templates and every number here are ours; docs/availability.md explains how they were chosen. Streams,
predicates and costs come from pools with Zipf-like popularity, so that queries share operators as users'
queries do: many read the same few streams.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.availability.query import Operator, OperatorType, Query
from understudy.planning.availability.sharing import SharedGraph
from understudy.planning.availability.workload import Workload, workload_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.planning.availability.workload import Floats

SOURCE, PROJECTION, FILTER = OperatorType.SOURCE, OperatorType.PROJECTION, OperatorType.FILTER
AGGREGATION, SEQUENCE, JOIN = OperatorType.AGGREGATION, OperatorType.SEQUENCE, OperatorType.JOIN
DESTINATION = OperatorType.DESTINATION


@dataclass(frozen=True)
class Mix:
    """The settings of the generator; costs are relative, the total load is scaled to the requested one."""

    streams_per_load: float = 0.2
    conditions: int = 6
    windows: int = 2
    popularity: float = 1.0
    templates: tuple[float, ...] = (0.3, 0.15, 0.25, 0.1, 0.1, 0.1)
    rate_spread: float = 0.5
    cost_spread: float = 0.5
    largest: float = 0.8
    load_per_query: float = 0.3
    cost: tuple[tuple[OperatorType, float], ...] = (
        (SOURCE, 0.1),
        (PROJECTION, 1.0),
        (FILTER, 0.3),
        (AGGREGATION, 2.0),
        (SEQUENCE, 2.0),
        (JOIN, 2.0),
        (DESTINATION, 1.0),
    )


class Templates:
    """Builds one query at a time; every choice comes from the generator that is passed in."""

    def __init__(self, mix: Mix, load: float, rng: np.random.Generator) -> None:
        self.mix = mix
        self.rng = rng
        self.cost = dict(mix.cost)
        streams = max(2, round(load * mix.streams_per_load))
        self.rates = np.exp(rng.normal(0.0, mix.rate_spread, streams)).tolist()
        self.streams = _zipf(streams, mix.popularity)
        self.templates = _cumulated(np.array(mix.templates, dtype=np.float64))
        self.conditions = _zipf(mix.conditions, mix.popularity)
        self.windows = _zipf(mix.windows, mix.popularity)
        self.known: dict[tuple[OperatorType, str, tuple[str, ...]], Operator] = {}
        self.chain: dict[str, Operator] = {}

    def query(self, number: int) -> Query:
        template = TEMPLATES[self._draw(self.templates)]
        self.chain = {}
        last = template(self)
        self._add(DESTINATION, f"out{number}", last)
        return Query(f"q{number}", tuple(self.chain.values()))

    def source(self, stream: int) -> str:
        return self._add(SOURCE, f"s{stream}", rate=self.rates[stream])

    def stream(self) -> int:
        return self._draw(self.streams)

    def filtered(self, stream: int) -> str:
        condition = self._draw(self.conditions)
        return self._add(FILTER, f"s{stream}.c{condition}", self.source(stream))

    def windowed(self, kind: OperatorType, *inputs: str) -> str:
        window = self._draw(self.windows)
        return self._add(kind, f"w{window}", *inputs)

    def _draw(self, cumulated: list[float]) -> int:
        return bisect_left(cumulated, self.rng.random())

    def _add(self, kind: OperatorType, predicate: str, *inputs: str, rate: float = 0.0) -> str:
        """The same choice is the same operator in every query, with numbers drawn once."""
        key = (kind, predicate, inputs)
        operator = self.known.get(key)
        if operator is None:
            # The name carries the inputs, so that equal names are equal operators.
            name = f"{kind[:3]}.{predicate}({','.join(inputs)})"
            low, high = SELECTIVITY[kind]
            cost = self.cost[kind] * float(np.exp(self.rng.normal(0.0, self.mix.cost_spread)))
            selectivity = float(self.rng.uniform(low, high))
            operator = Operator(name, kind, inputs, predicate, selectivity, cost, 1.0, rate)
            self.known[key] = operator
        self.chain[operator.name] = operator
        return operator.name


SELECTIVITY = {
    SOURCE: (1.0, 1.0),
    PROJECTION: (1.0, 1.0),
    FILTER: (0.2, 0.6),
    AGGREGATION: (0.05, 0.2),
    SEQUENCE: (0.05, 0.2),
    JOIN: (0.1, 0.4),
    DESTINATION: (1.0, 1.0),
}


def _watch(make: Templates) -> str:
    return make.filtered(make.stream())


def _statistic(make: Templates) -> str:
    return make.windowed(AGGREGATION, make.filtered(make.stream()))


def _total(make: Templates) -> str:
    return make.windowed(AGGREGATION, make.source(make.stream()))


def _feed(make: Templates) -> str:
    return make.windowed(PROJECTION, make.filtered(make.stream()))


def _pattern(make: Templates) -> str:
    stream = make.stream()
    return make.windowed(SEQUENCE, make.filtered(stream), make.filtered(stream))


def _match(make: Templates) -> str:
    return make.windowed(JOIN, make.source(make.stream()), make.source(make.stream()))


TEMPLATES: tuple[Callable[[Templates], str], ...] = (_watch, _statistic, _total, _feed, _pattern, _match)


def generate(load: float, rng: np.random.Generator, mix: Mix | None = None) -> Workload:
    """Queries whose operators need `load` together, none more than the largest a host can take."""
    mix = mix or Mix()
    templates = Templates(mix, load, rng)
    graph = SharedGraph()
    for number in range(max(1, round(load / mix.load_per_query))):
        graph.add(templates.query(number))
    return scaled(workload_of(graph), load, mix.largest)


def scaled(workload: Workload, load: float, largest: float) -> Workload:
    """Scale all costs to the total; an operator that would outgrow a host is cut to the largest size, as a
    system that splits operators would leave its parts, and the others grow to keep the total."""
    loads = workload.load * (load / workload.total_load)
    for _ in range(50):
        over = loads >= largest
        if over.all() or (abs(loads.sum() - load) < 1e-9 * load and not (loads > largest).any()):
            break
        loads[over] = largest
        loads[~over] *= (load - largest * over.sum()) / loads[~over].sum()
    return replace(workload, load=loads)


def _zipf(count: int, exponent: float) -> list[float]:
    return _cumulated(np.arange(1, count + 1, dtype=np.float64) ** -exponent)


def _cumulated(weights: Floats) -> list[float]:
    """Shares up to each entry, to be searched with a uniform number."""
    shares: list[float] = (np.cumsum(weights) / weights.sum()).tolist()
    return [*shares[:-1], 1.0]
