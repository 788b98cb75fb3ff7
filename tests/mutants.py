"""Changes one rule of the replica core at a time and sees whether a test notices.

    python -m tests.mutants                       # all of control/replica: a few minutes on two cores
    python -m tests.mutants --only decide --show  # one module, and what each mutant changes

Conditions are inverted, operands of `and` and `or` removed, comparisons shifted by one, numbers changed. A mutant is
killed if the rules' own tests fail, or else a scenario of the simulated cluster. Survivors are printed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib
import io
import logging
import multiprocessing
import os
import sys
import time
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PACKAGE = "understudy.control.replica"
MODULES = ("decide", "ends", "bags", "shipping", "retention", "comeback", "switching")
FIRST = [
    "tests/unit/test_replica_decide.py",
    "tests/unit/test_replica_ends.py",
    "tests/unit/test_shipper.py",
    "tests/unit/test_retention.py",
    "tests/property/test_switching.py",
]
THEN = ["tests/unit/test_scenarios.py", "tests/unit/test_source_replica.py", "tests/unit/test_outbox.py"]
SHIFTED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
OPPOSITE = {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn}
TIMEOUT_S = 120


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
    found = importlib.import_module(f"{PACKAGE}.{module}").__file__
    assert found is not None
    return Path(found).read_text()


def mutants_of(module: str) -> list[Mutant]:
    found: list[Mutant] = []
    while True:
        changer = Changer(len(found))
        changer.visit(ast.parse(source_of(module)))
        if changer.found.number < 0:
            return found
        found.append(Mutant(module, changer.found.number, changer.found.line, changer.found.what))


def apply(mutant: Mutant) -> None:
    """Puts the changed code into the functions that are there, so that everybody who knows them gets it."""
    target = importlib.import_module(f"{PACKAGE}.{mutant.module}")
    tree = ast.fix_missing_locations(Changer(mutant.number).visit(ast.parse(source_of(mutant.module))))
    changed = types.ModuleType(target.__name__)
    changed.__file__ = target.__file__
    sys.modules[target.__name__] = changed
    exec(compile(tree, str(target.__file__), "exec"), changed.__dict__)
    sys.modules[target.__name__] = target
    _exchange(target, changed)


def _exchange(target: Any, changed: Any) -> None:
    for name, value in list(vars(changed).items()):
        old = vars(target).get(name)
        plain, new = getattr(old, "__wrapped__", old), getattr(value, "__wrapped__", value)
        if isinstance(plain, types.FunctionType) and isinstance(new, types.FunctionType):
            if plain.__module__ == getattr(target, "__module__", getattr(target, "__name__", None)):
                plain.__code__ = new.__code__
        elif isinstance(plain, classmethod):
            plain.__func__.__code__ = new.__func__.__code__
        elif isinstance(plain, property) and plain.fget is not None:
            plain.fget.__code__ = new.fget.__code__
        elif isinstance(old, type) and isinstance(value, type) and old.__module__ == changed.__name__:
            _exchange(old, value)


def is_killed(mutant: Mutant) -> bool:
    """In a process of its own."""
    apply(mutant)
    logging.disable(logging.CRITICAL)
    for files in (FIRST, THEN):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            code = pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--timeout", "60", *files])
        if code != 0:
            return True
    return False


def attempt(mutant: Mutant) -> tuple[Mutant, bool]:
    child = os.fork()
    if child == 0:
        os._exit(0 if is_killed(mutant) else 1)
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return mutant, os.waitstatus_to_exitcode(status) != 1
        time.sleep(0.02)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return mutant, True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=MODULES)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    found = [one for module in ([options.only] if options.only else MODULES) for one in mutants_of(module)]
    if options.show:
        print(*found, sep="\n")
        return
    with multiprocessing.get_context("fork").Pool(2) as pool:
        survivors = [mutant for mutant, killed in pool.imap_unordered(attempt, found) if not killed]
    print(*(f"survived: {mutant}" for mutant in survivors), sep="\n")
    killed = len(found) - len(survivors)
    print(f"{killed} of {len(found)} mutants were noticed: {100 * killed / len(found):.0f} %")


if __name__ == "__main__":
    main()
