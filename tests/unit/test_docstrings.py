"""What `help()` shows of the public interface: every name explained, every parameter listed, every example true."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import understudy as us
from understudy import errors
from understudy.model import entries, recovery
from understudy.testing import cluster, services

SHAPES = ("Constant", "Diurnal", "Messages", "Spikes", "Steps", "named", "rows_at")
"""Of `us.sources.shapes`, which has no `__all__`."""


def _exported(module: ModuleType) -> dict[str, Any]:
    names = {f"{module.__name__}.{name}": getattr(module, name) for name in module.__all__}
    return {name: value for name, value in names.items() if callable(value)}


NAMES: dict[str, Any] = {
    **_exported(us),
    **_exported(us.sources),
    **_exported(us.sinks),
    **_exported(services),
    **{f"understudy.sources.shapes.{name}": getattr(us.sources.shapes, name) for name in SHAPES},
    "understudy.errors.InvalidInput": errors.InvalidInput,
    "understudy.errors.Unavailable": errors.Unavailable,
    "understudy.errors.UnderstudyError": errors.UnderstudyError,
    "understudy.model.entries.Operator": entries.Operator,
    "understudy.model.entries.Sink": entries.Sink,
    "understudy.model.entries.Source": entries.Source,
    "understudy.model.recovery.Guarantee": recovery.Guarantee,
    "understudy.model.recovery.Reaction": recovery.Reaction,
    "understudy.model.recovery.Scheme": recovery.Scheme,
    "understudy.testing.cluster.run": cluster.run,
}
MODULES = sorted(
    {value.__module__ for value in NAMES.values()}
    | {"understudy", "understudy.model.address", "understudy.model.secrets", "understudy.planning.replication.metrics"}
)
WITHOUT_EXAMPLE = ("EndOfSource", "InvalidInput", "Unavailable", "UnderstudyError", "SourceReader", "SinkWriter")
"""Errors, and interfaces that the example of `Source` or `Sink` shows too."""


def _documented(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A public name, and the methods and properties that it defines or inherits from us."""
    yield name, value
    if inspect.isclass(value):
        for attribute, member in inspect.getmembers_static(value):
            if not attribute.startswith("_") and _ours(value, attribute) and _is_method(member):
                yield f"{name}.{attribute}", member


def _ours(owner: type, attribute: str) -> bool:
    return any(attribute in vars(base) and base.__module__.startswith("understudy") for base in owner.__mro__)


def _is_method(member: Any) -> bool:
    return inspect.isfunction(member) or isinstance(member, (classmethod, staticmethod, property))


ENTRIES = dict(entry for name, value in NAMES.items() for entry in _documented(name, value))


def _docstring(name: str, value: Any) -> str:
    """What `help()` shows: a method without a docstring of its own inherits the one it overrides."""
    owner, _, attribute = name.rpartition(".")
    if isinstance(value, (classmethod, staticmethod)) or inspect.isfunction(value):
        value = getattr(ENTRIES[owner], attribute, value) if owner in ENTRIES else value
    return inspect.getdoc(value) or ""


def _listed(docstring: str) -> list[str]:
    """The names in the section Parameters, in order."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)", docstring, re.MULTILINE | re.DOTALL)
    return re.findall(r"^(\*{0,2}\w+)(?: :|$)", section[1], re.MULTILINE) if section else []


def _parameters(value: Callable[..., Any]) -> list[str]:
    stars: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    found = inspect.signature(value).parameters.values()
    return [stars.get(one.kind, "") + one.name for one in found if one.name not in ("self", "cls")]


def _takes_parameters(value: Any) -> bool:
    """Errors are caught, not made, by users; the members of an enumeration are listed in its text."""
    if inspect.isclass(value):
        return "__init__" in vars(value) and not issubclass(value, (Exception, str, int))
    return inspect.isfunction(value)


@pytest.mark.parametrize("name", ENTRIES)
def test_a_public_name_has_a_docstring(name: str) -> None:
    first = _docstring(name, ENTRIES[name]).split("\n")[0]
    assert first, f"{name} has no docstring"
    assert not first.startswith(f"{name.rpartition('.')[2]}("), f"{name} has only the text of a dataclass"
    assert first.endswith((".", ":")), f"the first line of {name} is not a sentence: {first}"


@pytest.mark.parametrize("name", [name for name, value in ENTRIES.items() if _takes_parameters(value)])
def test_parameters_are_documented_under_their_names(name: str) -> None:
    value = ENTRIES[name]
    docstring = _docstring(name, value)
    if re.search(r"see `\w+\.\w+`", docstring) or not _parameters(value):
        return
    assert _listed(docstring) == _parameters(value), f"the list of parameters of {name} is not that of its signature"


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith(WITHOUT_EXAMPLE)])
def test_a_public_name_shows_an_example(name: str) -> None:
    assert ">>>" in _docstring(name, NAMES[name]), f"{name} shows no example"


@pytest.mark.parametrize("module", MODULES)
def test_examples_are_true(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each docstring runs in an empty directory, so that examples may write files."""
    found = doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(module), module)
    runner = doctest.DocTestRunner(verbose=False)
    report: list[str] = []
    for number, example in enumerate(found):
        place = tmp_path / str(number)
        place.mkdir()
        monkeypatch.chdir(place)
        runner.run(example, out=report.append)
    assert not runner.summarize(verbose=False).failed, "".join(report)
