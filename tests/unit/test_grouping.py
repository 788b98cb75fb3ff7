"""Whether a group can span slices, decided from a plan without Spark."""

from __future__ import annotations

from typing import Any

import pytest
from tests.builders import Input, one, two

from understudy.control.application.grouping import check_grouping
from understudy.errors import InvalidInput
from understudy.model.query_plan import PlanNode, Term
from understudy.model.topology import Operator, Topology

USER, SHOP, AT, OTHER_USER, OTHER_SHOP = range(1, 6)
NAMES = {USER: "user", SHOP: "shop", AT: "at", OTHER_USER: "user", OTHER_SHOP: "shop"}
ROWS = PlanNode("Rows", (USER, SHOP, AT), base={USER: (0, "user"), SHOP: (0, "shop"), AT: (0, "at")})
OTHERS = PlanNode("Rows", (OTHER_USER, OTHER_SHOP), base={OTHER_USER: (1, "user"), OTHER_SHOP: (1, "shop")})


def operator(key: Any = "user", slices: int = 2, inputs: int = 1) -> Operator:
    app = Topology("app")
    streams = [app.source(f"rows{number}", Input()) for number in range(inputs)]
    return app.operator(*streams, name="bad", key=key, slices=slices)(one if inputs == 1 else two)


def term(*reads: int, text: str = "") -> Term:
    return Term(text or " ".join(NAMES.get(number, str(number)) for number in reads), frozenset(reads))


def grouped(child: PlanNode, *groups: Term) -> PlanNode:
    return PlanNode("Aggregate", child.output, (child,), groups=groups)


def made(child: PlanNode, number: int, *reads: int) -> PlanNode:
    return PlanNode("Project", (*child.output, number), (child,), made={number: frozenset(reads)})


def join(left: PlanNode, right: PlanNode, *equal: tuple[Term, Term]) -> PlanNode:
    return PlanNode("Join", left.output + right.output, (left, right), equal=equal, joins=True)


def opaque(child: PlanNode, *numbers: int) -> PlanNode:
    return PlanNode("MapInArrow", numbers, (child,))


UNITED = PlanNode("Union", (USER, SHOP), (ROWS, OTHERS), union=True)
CROSSED = PlanNode("Union", (USER, SHOP), (ROWS, PlanNode("Project", (OTHER_SHOP, OTHER_USER), (OTHERS,))), union=True)
BY_USER = (term(USER), term(OTHER_USER))
BY_SHOP = (term(SHOP), term(OTHER_SHOP))

RIGHT = {
    "the key": (grouped(ROWS, term(USER)), 1),
    "more than the key": (grouped(ROWS, term(SHOP), term(USER)), 1),
    "a renamed key": (grouped(made(ROWS, 10, USER), term(10)), 1),
    "an expression over the key": (grouped(made(ROWS, 10, USER, SHOP), term(10)), 1),
    "an expression over an expression": (grouped(made(made(ROWS, 10, USER), 11, 10), term(11)), 1),
    "something nobody knows": (grouped(opaque(ROWS, 20), term(20)), 1),
    "no state": (made(ROWS, 10, SHOP), 1),
    "a join by the key": (join(ROWS, OTHERS, BY_USER), 2),
    "a join by more than the key": (join(ROWS, OTHERS, BY_SHOP, BY_USER), 2),
    "a join the other way round": (join(ROWS, OTHERS, BY_USER[::-1]), 2),
    "a join with something nobody knows": (join(ROWS, opaque(OTHERS, 20, 21), (term(USER), term(20))), 2),
    "a group after a join": (grouped(join(ROWS, OTHERS, BY_USER), term(OTHER_USER)), 2),
    "a union": (grouped(UNITED, term(USER)), 2),
}
WRONG = {
    "another column": (grouped(ROWS, term(SHOP)), 1, "groups by shop", "key='shop'"),
    "an expression over another": (grouped(made(ROWS, 10, SHOP, AT), term(10, text="both")), 1, "groups by both", ""),
    "all rows": (grouped(ROWS), 1, "one group of all rows", ""),
    "the second of two groups": (grouped(grouped(ROWS, term(USER)), term(AT)), 1, "groups by at", "key='at'"),
    "a join by another column": (join(ROWS, OTHERS, BY_SHOP), 2, "joins by shop = shop", ""),
    "a join of the key with another": (join(ROWS, OTHERS, (term(USER), term(OTHER_SHOP))), 2, "user = shop", ""),
    "a join by nothing": (join(ROWS, OTHERS), 2, "joins by nothing", ""),
    "a group after a join by another": (grouped(join(ROWS, OTHERS, BY_USER), term(SHOP)), 2, "groups by shop", ""),
    "a union with the key crossed": (grouped(CROSSED, term(USER)), 2, "groups by user", ""),
}


@pytest.mark.parametrize(("plan", "inputs"), RIGHT.values(), ids=RIGHT.keys())
def test_what_is_right_or_unknown_passes(plan: PlanNode, inputs: int) -> None:
    check_grouping(operator(inputs=inputs), plan)


@pytest.mark.parametrize(("plan", "inputs", "what", "fix"), WRONG.values(), ids=WRONG.keys())
def test_what_parts_is_refused_by_name(plan: PlanNode, inputs: int, what: str, fix: str) -> None:
    with pytest.raises(InvalidInput, match="operator 'bad'") as raised:
        check_grouping(operator(inputs=inputs), plan)
    assert what in raised.value.what
    assert "'user'" in raised.value.what
    assert fix in raised.value.fix
    assert "slices=1" in raised.value.fix
    assert "test_grouping.py:" in raised.value.what, "the line of the operator"
    check_grouping(operator(inputs=inputs, slices=1), plan)


def test_every_column_of_the_key_must_be_there() -> None:
    plan = grouped(ROWS, term(USER))
    with pytest.raises(InvalidInput, match="key 'shop'") as raised:
        check_grouping(operator(key=["user", "shop"]), plan)
    assert "write key='user'" in raised.value.fix
    check_grouping(operator(key=["user", "shop"]), grouped(ROWS, term(USER), term(SHOP)))
