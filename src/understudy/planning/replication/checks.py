"""What makes a problem meaningless; every error names the place and what is allowed there."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from understudy.errors import InvalidInput

if TYPE_CHECKING:
    from understudy.planning.replication.problem import ReplicationProblem, Stream


def check_operators(problem: ReplicationProblem) -> None:
    if not problem.operators:
        raise InvalidInput(
            "the problem has no operators",
            why="there is nothing to replicate",
            fix='list at least one operator, such as {"name": "O1", "tasks": [1.0]}',
        )
    for name, count in Counter(op.name for op in problem.operators).items():
        if count > 1:
            raise InvalidInput(
                f"operator {name} is defined {count} times",
                why="streams find operators by name",
                fix="give every operator its own name",
            )
    for op in problem.operators:
        if not op.rates:
            raise InvalidInput(
                f"operator {op.name} has no tasks",
                why="an operator runs as one task or more",
                fix='give "tasks" one output rate per task',
            )
        for i, rate in enumerate(op.rates):
            if not (math.isfinite(rate) and rate >= 0):
                raise InvalidInput(
                    f"task {op.task(i)} has the output rate {rate}",
                    why="a rate is a number of rows per second",
                    fix="use a finite number, 0 or greater",
                )


def check_streams(problem: ReplicationProblem) -> None:
    sizes = {op.name: len(op.rates) for op in problem.operators}
    for stream in problem.streams:
        for name in (stream.source, stream.target):
            if name not in sizes:
                raise InvalidInput(
                    f"stream {stream} names the unknown operator {name}",
                    why="a stream connects two operators of the same problem",
                    fix=f"use one of {', '.join(sizes)}",
                )
        _check_counts(stream, sizes[stream.source], sizes[stream.target])
    for pair, count in Counter((s.source, s.target) for s in problem.streams).items():
        if count > 1:
            raise InvalidInput(
                f"{count} streams go from {pair[0]} to {pair[1]}",
                why="all that one operator sends to another is one input stream",
                fix='merge them into one stream, with "shares" if the split is special',
            )


def _check_counts(stream: Stream, upstream: int, downstream: int) -> None:
    if stream.shares is not None:
        _check_shares(stream, upstream, downstream)
        return
    allowed = {
        "one-to-one": (upstream == downstream, "the same number of tasks on both sides"),
        "split": (upstream <= downstream, "at least as many tasks downstream as upstream"),
        "merge": (upstream >= downstream, "at least as many tasks upstream as downstream"),
        "full": (True, ""),
    }
    fits, need = allowed[stream.partitioning]
    if not fits:
        raise InvalidInput(
            f"stream {stream} is {stream.partitioning}, from {upstream} to {downstream} tasks",
            why=f"{stream.partitioning} needs {need}",
            fix="change the number of tasks, or use one of: one-to-one (equal), split (fewer to more), "
            "merge (more to fewer), full (any)",
        )


def _check_shares(stream: Stream, upstream: int, downstream: int) -> None:
    shares = stream.shares or ()
    shape = f"{upstream} rows (upstream tasks) of {downstream} numbers (downstream tasks)"
    if len(shares) != upstream or any(len(row) != downstream for row in shares):
        raise InvalidInput(
            f"the shares of stream {stream} have the wrong shape",
            why="each row tells how one upstream task divides its output",
            fix=f"write {shape}",
        )
    if any(not (math.isfinite(share) and share >= 0) for row in shares for share in row):
        raise InvalidInput(
            f"the shares of stream {stream} hold a number that is not a share",
            why="a share is a part of the sender's rate; 0 means not connected",
            fix="use finite numbers, 0 or greater",
        )


def check_sinks(problem: ReplicationProblem) -> None:
    known = [op.name for op in problem.operators]
    for name in problem.sinks:
        if name not in known:
            raise InvalidInput(
                f"the sink {name} is not an operator",
                why="the output is what the tasks of the sinks emit",
                fix=f"use some of {', '.join(known)}",
            )
    if len(set(problem.sinks)) != len(problem.sinks):
        raise InvalidInput("a sink is named twice", why="its output would count twice", fix="name every sink once")


def topological_order(problem: ReplicationProblem) -> tuple[int, ...]:
    """Shorter than the list of operators when there is a cycle."""
    waiting = Counter(stream.target for stream in problem.streams)
    readers: dict[str, list[str]] = {}
    for stream in problem.streams:
        readers.setdefault(stream.source, []).append(stream.target)
    ready = [op.name for op in problem.operators if not waiting[op.name]]
    order: list[int] = []
    while ready:
        name = ready.pop(0)
        order.append(problem.positions[name])
        for reader in readers.get(name, ()):
            waiting[reader] -= 1
            if not waiting[reader]:
                ready.append(reader)
    return tuple(order)


def check_cycles(problem: ReplicationProblem) -> None:
    order = topological_order(problem)
    if len(order) < len(problem.operators):
        stuck = [op.name for i, op in enumerate(problem.operators) if i not in set(order)]
        raise InvalidInput(
            f"the streams form a cycle; it holds or feeds {', '.join(stuck)}",
            why="loss is passed on from the sources to the sinks and would never settle",
            fix="remove a stream so that data flows in one direction only",
        )


def check_everyone_is_fed(problem: ReplicationProblem) -> None:
    """Only shares can leave a task out: every partitioning reaches all downstream tasks."""
    for op in problem.operators:
        inputs = problem.inputs_of(op.name)
        if not inputs or any(stream.shares is None for stream in inputs):
            continue
        for i in range(len(op.rates)):
            if not any(row[i] > 0 for stream in inputs for row in stream.shares or ()):
                raise InvalidInput(
                    f"nobody feeds task {op.task(i)}",
                    why=f"column {i} is 0 in the shares of {', '.join(map(str, inputs))}",
                    fix="give it a share above 0 in at least one row, or remove the task",
                )
