"""The planning problem: operators with tasks, streams between them, sinks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from understudy.errors import InvalidInput
from understudy.planning.replication import checks

if TYPE_CHECKING:
    from collections.abc import Iterable


class Partitioning(StrEnum):
    ONE_TO_ONE = "one-to-one"
    SPLIT = "split"
    MERGE = "merge"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Operator:
    """`rates` holds the output rate of each task; a correlated operator joins its inputs."""

    name: str
    rates: tuple[float, ...]
    correlated: bool = False

    def task(self, index: int) -> str:
        return f"{self.name}[{index}]"


@dataclass(frozen=True, slots=True)
class Stream:
    """`shares` (row per upstream task, column per downstream task) overrides the partitioning."""

    source: str
    target: str
    partitioning: Partitioning = Partitioning.FULL
    shares: tuple[tuple[float, ...], ...] | None = None

    def __str__(self) -> str:
        return f"{self.source} -> {self.target}"


@dataclass(frozen=True)
class ReplicationProblem:
    """Checked when built: its users may rely on names, counts and the absence of cycles."""

    operators: tuple[Operator, ...]
    streams: tuple[Stream, ...]
    sinks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checks.check_operators(self)
        checks.check_streams(self)
        if not self.sinks:
            read = {stream.source for stream in self.streams}
            open_ended = tuple(op.name for op in self.operators if op.name not in read)
            object.__setattr__(self, "sinks", open_ended)
        checks.check_sinks(self)
        checks.check_cycles(self)
        checks.check_everyone_is_fed(self)

    @cached_property
    def positions(self) -> dict[str, int]:
        return {op.name: i for i, op in enumerate(self.operators)}

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Number of the first task of each operator; one more entry than operators."""
        ends = [0]
        for op in self.operators:
            ends.append(ends[-1] + len(op.rates))
        return tuple(ends)

    @property
    def task_count(self) -> int:
        return self.offsets[-1]

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        return tuple(op.task(i) for op in self.operators for i in range(len(op.rates)))

    @cached_property
    def task_numbers(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.tasks)}

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Operators, upstream first."""
        return checks.topological_order(self)

    def inputs_of(self, operator: str) -> tuple[Stream, ...]:
        return tuple(stream for stream in self.streams if stream.target == operator)

    def numbers(self, names: Iterable[str]) -> list[int]:
        wanted = list(names)
        unknown = [name for name in wanted if name not in self.task_numbers]
        if unknown:
            raise InvalidInput(
                f"no task is called {', '.join(unknown)}",
                why="a task is named after its operator and its position, starting at 0",
                fix=f"use names such as {self.tasks[0]} and {self.tasks[-1]}",
            )
        return [self.task_numbers[name] for name in wanted]
