"""The syntax tree of a query: what the text says, before anything is known about streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any
from typing import Literal as OneOf

from understudy.queries.places import NOWHERE, Span


@dataclass(frozen=True)
class Node:
    """Anything that stands somewhere in the text. Two nodes are equal if they say the same, wherever they stand."""

    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Column(Node):
    """`price`, or `a.price` with the name of a stream or a step."""

    name: str
    stream: str | None = None


@dataclass(frozen=True)
class Literal(Node):
    """A number that is not negative, a text, TRUE, FALSE or NULL."""

    value: int | float | str | bool | None

    def __eq__(self, other: object) -> bool:
        """1, 1.0 and TRUE are equal in Python and are not the same text."""
        same = isinstance(other, Literal) and type(other.value) is type(self.value)
        return same and isinstance(other, Literal) and other.value == self.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True)
class Call(Node):
    """A function; `count(*)` has no arguments."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Unary(Node):
    operator: OneOf["-", "NOT"]
    operand: Expression


@dataclass(frozen=True)
class Binary(Node):
    """Two operands: AND, OR, a comparison, LIKE, or arithmetic."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Between(Node):
    value: Expression
    low: Expression
    high: Expression
    negated: bool = False


@dataclass(frozen=True)
class Among(Node):
    """`value IN (…)`."""

    value: Expression
    choices: tuple[Expression, ...]
    negated: bool = False


@dataclass(frozen=True)
class Missing(Node):
    """`value IS NULL`."""

    value: Expression
    negated: bool = False


@dataclass(frozen=True)
class Branch(Node):
    """`WHEN condition THEN value`."""

    condition: Expression
    value: Expression


@dataclass(frozen=True)
class Case(Node):
    branches: tuple[Branch, ...]
    otherwise: Expression | None = None


@dataclass(frozen=True)
class Cast(Node):
    value: Expression
    type: str


Expression = Column | Literal | Call | Unary | Binary | Between | Among | Missing | Branch | Case | Cast


@dataclass(frozen=True)
class Duration(Node):
    """A time span of the text, in whole milliseconds: finer ones Spark's watermarks do not tell apart."""

    ms: int


@dataclass(frozen=True)
class Item(Node):
    """One thing that is selected, and the name it was given."""

    value: Expression
    name: str | None = None


@dataclass(frozen=True)
class Stream(Node):
    name: str
    alias: str | None = None


@dataclass(frozen=True)
class Join(Node):
    left: Stream
    right: Stream
    on: Expression
    kind: OneOf["inner", "left"] = "inner"


@dataclass(frozen=True)
class Step(Node):
    """One event of a sequence: `b=trades(price > a.price)`."""

    name: str
    stream: str
    condition: Expression | None = None


@dataclass(frozen=True)
class Pattern(Node):
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Timing(Node):
    """`WITHIN 10 s EVERY 2 s TIME at LATE 1 s`, each of which may be absent."""

    within: Duration | None = None
    every: Duration | None = None
    time: Column | None = None
    late: Duration | None = None


@dataclass(frozen=True)
class Query(Node):
    """A whole query. No items means `*`."""

    items: tuple[Item, ...]
    source: Stream | Join | Pattern
    timing: Timing = Timing()
    where: Expression | None = None
    groups: tuple[Expression, ...] = ()
    having: Expression | None = None


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below, in the order of the text."""
    for one in fields(node):
        value = getattr(node, one.name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Node):
                yield item


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def rewrite(node: Any, change: Callable[[Any], Any | None]) -> Any:
    """The tree with every node replaced that `change` answers for; what it answers is not looked into again."""
    changed = change(node)
    if changed is not None:
        return changed
    new = {one.name: _rewritten(getattr(node, one.name), change) for one in fields(node)}
    return replace(node, **new)


def _rewritten(value: Any, change: Callable[[Any], Any | None]) -> Any:
    if isinstance(value, tuple):
        return tuple(_rewritten(item, change) for item in value)
    return rewrite(value, change) if isinstance(value, Node) else value


def conjuncts(expression: Expression | None) -> Iterator[Expression]:
    """The conditions that all must hold."""
    if isinstance(expression, Binary) and expression.operator == "AND":
        yield from conjuncts(expression.left)
        yield from conjuncts(expression.right)
    elif expression is not None:
        yield expression


def columns(node: Node | None) -> Iterator[Column]:
    """Every column that is read below."""
    return (one for one in walk(node) if isinstance(one, Column)) if node is not None else iter(())
