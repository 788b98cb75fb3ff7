"""Changes one rule of the replica core at a time and sees whether a test notices.

    python -m tests.mutants                       # all of control/replica: some minutes on two cores
    python -m tests.mutants --only decide --show  # one module, and what each mutant changes
    python -m tests.mutants --by scenarios        # as if the rules had no tests of their own

Conditions are inverted, operands of `and` and `or` removed, comparisons shifted by one, numbers changed. A mutant is
noticed if the rules' own tests fail, or else a scenario or a random schedule of the simulated cluster, or a property.
One that makes them run without end is noticed as well, and named. Survivors are printed; `docs/testing.md` explains
those that remain.
"""

from __future__ import annotations

import argparse
import ast
import copy
import multiprocessing
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import entry_points
from typing import Any

import pytest

from tests.changed import Hung, attempt, path_of, preload

PACKAGE = "understudy.control.replica"
MODULES = ("decide", "ends", "bags", "shipping", "retention", "comeback", "switching")
RULES = ("unit/test_replica_decide", "unit/test_replica_ends", "unit/test_shipper", "unit/test_retention")
SCENARIOS = ("property/test_switching", "unit/test_outbox", "unit/test_scenarios", "property/test_convergence")
TESTS = {"rules": RULES, "scenarios": SCENARIOS}
OPTIONS = ("-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--timeout", "300", "--hypothesis-seed", "0")
OWN = {"shipping": "unit/test_shipper", "retention": "unit/test_retention", "switching": "property/test_switching"}
USED = ("pytest", "hypothesis", "tests.simulated.schedules", "tests.builders", "tests.sites", "understudy.cli.main")
SHIFTED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
OPPOSITE = {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn}


@dataclass(frozen=True)
class Mutant:
    module: str
    number: int
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.module}.py:{self.line} {self.what}"


def variants(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """What a node may become, each with a word."""
    if isinstance(node, ast.BoolOp):
        for position in range(len(node.values)):
            rest = [value for number, value in enumerate(node.values) if number != position]
            yield "operand removed", rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for table, word in ((SHIFTED, "shifted"), (OPPOSITE, "inverted")):
            if type(node.ops[0]) in table:
                yield word, ast.Compare(node.left, [table[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not removed", node.operand
    elif isinstance(node, ast.IfExp | ast.If):
        changed = copy.copy(node)
        changed.test = ast.UnaryOp(ast.Not(), node.test)
        yield "condition inverted", changed
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield "number changed", ast.Constant(node.value + 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "truth inverted", ast.Constant(not node.value)


class Changer(ast.NodeTransformer):
    """Applies the variant of a number; counts them on the way. Docstrings and annotations stay as they are."""

    def __init__(self, number: int) -> None:
        self.number, self.seen, self.found = number, 0, Mutant("", -1, 0, "")

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.arguments | ast.AnnAssign):
            return node
        for what, variant in variants(node):
            if self.seen == self.number:
                self.seen += 1
                self.found = Mutant("", self.number, getattr(node, "lineno", 0), what)
                return ast.copy_location(variant, node)
            self.seen += 1
        return self.generic_visit(node)


def source_of(module: str) -> str:
    return path_of(f"{PACKAGE}.{module}").read_text()


def mutants_of(module: str) -> list[Mutant]:
    found: list[Mutant] = []
    while True:
        changer = Changer(len(found))
        changer.visit(ast.parse(source_of(module)))
        if changer.found.number < 0:
            return found
        found.append(Mutant(module, changer.found.number, changer.found.line, changer.found.what))


def changed(mutant: Mutant) -> dict[str, str]:
    tree = ast.fix_missing_locations(Changer(mutant.number).visit(ast.parse(source_of(mutant.module))))
    return {f"{PACKAGE}.{mutant.module}": ast.unparse(tree)}


def check(module: str, by: Sequence[str]) -> str:
    """Which tests fail, if any do. One file after the other, the module's own first: most mutants end there."""
    files = [(name, file) for name in by for file in TESTS[name]]
    for name, file in sorted(files, key=lambda one: one[1] != OWN.get(module)):
        if pytest.main([*OPTIONS, f"tests/{file}.py"]) != pytest.ExitCode.OK:
            return name
    return ""


def try_one(mutant: Mutant, by: Sequence[str]) -> tuple[Mutant, str]:
    return mutant, attempt(changed(mutant), partial(check, mutant.module, by))


def say(found: Sequence[tuple[Mutant, str]]) -> None:
    for module in (*MODULES, ""):
        noticed = [by for mutant, by in found if module in ("", mutant.module)]
        if noticed:
            count = len(noticed) - noticed.count("")
            each = ", ".join(f"{noticed.count(name)} by {name}" for name in TESTS)
            share = f"{100 * count / len(noticed):.0f} %"
            print(f"{module or 'all':10} {count} of {len(noticed)} mutants were noticed ({share}), {each}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=MODULES)
    parser.add_argument("--by", choices=TESTS)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    mutants = [one for module in ([options.only] if options.only else MODULES) for one in mutants_of(module)]
    if options.show:
        print(*mutants, sep="\n")
        return
    by = [options.by] if options.by else list(TESTS)
    preload([*USED, *(plugin.module for plugin in entry_points(group="pytest11"))])
    if attempt({}, partial(check, "", by)):
        sys.exit("the tests fail on the code as it is: mend that first")
    found = []
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for mutant, noticed in pool.imap_unordered(partial(try_one, by=by), mutants):
            found.append((mutant, noticed))
            if not noticed or isinstance(noticed, Hung):
                print(f"{noticed or 'survived'}: {mutant}", flush=True)
    say(found)


if __name__ == "__main__":
    main()
