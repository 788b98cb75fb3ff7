"""What is wrong with an entry of a topology, as far as that is known without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import pyarrow as pa

from understudy.errors import InvalidInput
from understudy.model.arity import check_arity
from understudy.model.entries import Inputs, Operator, Order, OutputMode, Sink, Source
from understudy.model.hashing import family
from understudy.model.names import valid_name
from understudy.model.recovery import ACTIVE, Recovery, Scheme


def check_entry(entry: Source | Operator | Sink) -> None:
    if not isinstance(entry.name, str) or not valid_name(entry.name):
        raise bad_name(type(entry).__name__.lower(), entry.name)
    slices = 1 if isinstance(entry, Sink) else entry.slices
    if not isinstance(slices, int) or slices < 1:
        raise InvalidInput(
            f"'{entry.name}' has slices={slices!r}", why="slices do the work", fix="give a whole number, 1 or more"
        )
    if isinstance(entry, Operator):
        _check_operator(entry)
    elif isinstance(entry, Source):
        _check_end(entry.name, entry.source, ("open", "schema"), 'us.sources.Files("rows.csv", …)')
    else:
        _check_end(entry.name, entry.sink, ("open",), 'us.sinks.Parquet("out")')
        if entry.tentative and not getattr(entry.sink, "takes_tentative", False):
            raise InvalidInput(
                f"sink '{entry.name}' cannot take tentative output",
                why=f"{type(entry.sink).__name__} cannot mark an epoch as tentative and withdraw it",
                fix="leave tentative=True out, or use Parquet, JsonLines, or Call with tentative=",
            )


def _check_end(name: str, end: Any, needed: Sequence[str], example: str) -> None:
    """A source or a sink is an object with a certain interface: neither a path nor a class."""
    if isinstance(end, type) or not all(hasattr(end, attribute) for attribute in needed):
        kind = example.split(".")[1]
        raise InvalidInput(
            f"'{name}' is given {end!r}",
            why=f"a {kind[:-1]} is an object of us.{kind}, not {'a class' if isinstance(end, type) else 'a value'}",
            fix=f"pass one, like {example}",
        )


def _check_operator(operator: Operator) -> None:
    where = f"operator '{operator.name}'"
    if not isinstance(operator.recovery, Recovery):
        given = operator.recovery
        raise InvalidInput(
            f"{where} has recovery={given!r}",
            why="a recovery is a us.Recovery",
            fix=f"write recovery=us.Recovery(scheme={given!r})" if given in tuple(Scheme) else "write us.Recovery(…)",
        )
    if not operator.inputs:
        raise InvalidInput(f"{where} reads nothing", why="an operator has at least one input", fix="name its inputs")
    for option, kind in (("output_mode", OutputMode), ("input", Inputs), ("order", Order)):
        value, allowed = getattr(operator, option), get_args(kind)
        if value not in allowed:
            raise InvalidInput(
                f"{where} has {option}='{value}'", why="there is no such choice", fix=f"use one of {', '.join(allowed)}"
            )
    if not operator.deterministic and operator.recovery.scheme in ACTIVE:
        raise InvalidInput(
            f"{where} is not deterministic and asks for {operator.recovery.scheme}",
            why="two working copies would come to different results",
            fix="use passive_standby_hot or a scheme below it, or make the operator deterministic",
        )
    if operator.order == "strict" and operator.time is None:
        raise InvalidInput(
            f"{where} has order='strict' and no time column",
            why="strict order sorts the rows of an epoch by their time",
            fix='name the column, like time="at"',
        )
    check_arity(operator.function, f"the function of {where}", operator.inputs)


def bad_name(kind: str, name: str) -> InvalidInput:
    return InvalidInput(
        f"'{name}' cannot be the name of a {kind}",
        why="names become directories, metrics and command-line words",
        fix="use letters, digits, '-' and '_', starting with a letter",
    )


def check_columns(operator: Operator, stream: str, columns: Sequence[str]) -> None:
    """Refuses a key or a time that is not a column of this input."""
    needed = [("key", column) for column in operator.key]
    if operator.order == "strict" and operator.time is not None:
        needed.append(("time", operator.time))
    for what, column in needed:
        if column not in columns:
            raise InvalidInput(
                f"{at(operator)}operator '{operator.name}' has {what}='{column}', which '{stream}' does not have",
                why=f"the columns of '{stream}' are {', '.join(columns)}",
                fix=f"name a column that every input of '{operator.name}' has",
            )


def check_key_types(operator: Operator, schemas: Mapping[str, pa.Schema]) -> None:
    """Refuses keys whose types differ between inputs so that equal values would go to different slices.

    `schemas` are those of the operator's inputs that are known.
    """
    known = [(name, schemas[name]) for name in dict.fromkeys(operator.inputs) if name in schemas]
    if operator.slices == 1 or len(known) < 2:
        return
    for column in operator.key:
        kinds = [(name, schema.field(column).type) for name, schema in known]
        first, other = kinds[0], next((one for one in kinds if family(one[1]) != family(kinds[0][1])), None)
        if other is not None:
            raise InvalidInput(
                f"{at(operator)}operator '{operator.name}' has key='{column}', "
                f"which is {first[1]} in '{first[0]}' and {other[1]} in '{other[0]}'",
                why=f"rows are divided among {operator.slices} slices by a hash, in which equal values of these types "
                "differ: they would never meet",
                fix=f"cast '{column}' to one type before '{operator.name}' reads it, or give it slices=1",
            )


def at(entry: Source | Operator | Sink) -> str:
    return f"{entry.place}: " if entry.place else ""
