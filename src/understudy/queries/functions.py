"""The functions of the language. All are deterministic: a replay gives what the first run gave.

Functions that take chance, a clock or the order of rows from the machine (`rand`, `now`, `first`) are missing on
purpose; a query that needs them is an operator in Python with `deterministic=False`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Function:
    """How many arguments it takes, and how Spark calls it."""

    least: int
    most: int
    spark: str
    aggregate: bool = False

    @property
    def arity(self) -> str:
        if self.least == self.most:
            return f"{self.least} argument{'' if self.least == 1 else 's'}"
        return f"{self.least} to {self.most} arguments" if self.most < MANY else f"at least {self.least} arguments"


MANY = 100
_SCALAR: dict[str, tuple[int, int]] = {
    "abs": (1, 1), "ceil": (1, 1), "floor": (1, 1), "round": (1, 2), "sign": (1, 1), "sqrt": (1, 1), "power": (2, 2),
    "exp": (1, 1), "ln": (1, 1), "log10": (1, 1), "greatest": (2, MANY), "least": (2, MANY),
    "coalesce": (1, MANY), "nullif": (2, 2),
    "upper": (1, 1), "lower": (1, 1), "trim": (1, 1), "length": (1, 1), "concat": (1, MANY), "substring": (2, 3),
    "replace": (3, 3), "startswith": (2, 2), "endswith": (2, 2), "contains": (2, 2),
    "year": (1, 1), "month": (1, 1), "day": (1, 1), "hour": (1, 1), "minute": (1, 1), "second": (1, 1),
    "date_trunc": (2, 2), "unix_seconds": (1, 1), "unix_millis": (1, 1),
}  # fmt: skip
_AGGREGATE: dict[str, tuple[int, int]] = {
    "count": (0, 1), "sum": (1, 1), "avg": (1, 1), "min": (1, 1), "max": (1, 1), "stddev": (1, 1), "variance": (1, 1),
    "min_by": (2, 2), "max_by": (2, 2), "bool_and": (1, 1), "bool_or": (1, 1), "approx_count_distinct": (1, 1),
}  # fmt: skip
_OTHER_NAMES = {"pow": "power", "ceiling": "ceil", "mean": "avg", "stddev_samp": "stddev", "var_samp": "variance"}

FUNCTIONS: dict[str, Function] = {
    **{name: Function(*arity, name) for name, arity in _SCALAR.items()},
    **{name: Function(*arity, name, aggregate=True) for name, arity in _AGGREGATE.items()},
}
FUNCTIONS |= {other: FUNCTIONS[name] for other, name in _OTHER_NAMES.items()}

REFUSED = {
    **dict.fromkeys(
        ["rand", "random", "randn", "uuid", "shuffle"], "it gives another result when an epoch is replayed"
    ),
    **dict.fromkeys(
        ["now", "current_timestamp", "current_date", "unix_timestamp", "localtimestamp"],
        "it reads the machine's clock, which says something else when an epoch is replayed",
    ),
    **dict.fromkeys(
        ["first", "last", "first_value", "last_value", "any_value", "collect_list", "collect_set"],
        "its result depends on the order in which rows arrive; min_by and max_by do not",
    ),
}
"""Functions that many would expect, and why they are not there."""

TYPES = ("boolean", "int", "long", "float", "double", "decimal", "string", "date", "timestamp")
"""What CAST can make."""
