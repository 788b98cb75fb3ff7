"""Turns an error that a user's file raised into one that names the line, the reason and the fix."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from understudy.errors import InvalidInput, UnderstudyError
from understudy.model.place import Place

PACKAGE = "understudy"
_KEYWORD = re.compile(r"(\w+)\.(\w+)\(\) got an unexpected keyword argument")
_CORRECT = "correct that line"


def explain(error: BaseException, path: Path) -> InvalidInput:
    """What happened while this file was executed, at the deepest line that is the user's own."""
    place, line = _found_at(error, path)
    if isinstance(error, UnderstudyError):
        return InvalidInput(f"{place}: {error.what}", why=error.why, fix=error.fix)
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    if isinstance(error, SystemExit):
        text = f"the file calls exit({message})"
    why = f"that line reads: {line.strip()}" if line.strip() else "the file cannot be executed"
    return InvalidInput(f"{place}: {text}", why=why, fix=_fix(error))


def _found_at(error: BaseException, path: Path) -> tuple[Place, str]:
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return Place(error.filename, error.lineno), error.text or ""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _is_users(Path(f.filename), path)]
    if not frames:
        return Place(str(path), 1), ""
    return Place(frames[-1].filename, frames[-1].lineno or 1), frames[-1].line or ""


def _is_users(file: Path, app: Path) -> bool:
    """The application itself, or a file beside or below it that is not an installed package."""
    return file == app or (file.is_relative_to(app.parent) and "site-packages" not in file.parts)


def _fix(error: BaseException) -> str:
    if isinstance(error, ImportError):
        return _fix_import(error)
    if isinstance(error, AttributeError):
        names = _names_of(getattr(error, "obj", None))
        return f"use one of {', '.join(names)}" if names else _CORRECT
    if isinstance(error, TypeError):
        parameters = _parameters(str(error))
        return f"use one of the parameters {', '.join(parameters)}" if parameters else _CORRECT
    if isinstance(error, SystemExit):
        return "let the file define the topology and go on to its end"
    return _CORRECT


def _fix_import(error: ImportError) -> str:
    module = error.name or ""
    if module.split(".")[0] == PACKAGE:
        names = _names_of(sys.modules.get(module)) or _names_of(sys.modules[PACKAGE])
        return f"use one of {', '.join(names)}"
    if isinstance(error, ModuleNotFoundError):
        return f"install '{module}' where understudy is installed, or correct the name"
    return "correct the name"


def _names_of(thing: Any) -> list[str]:
    """The public names of a module or an object of ours; none of others."""
    if isinstance(thing, ModuleType):
        ours = thing.__name__.split(".")[0] == PACKAGE
        return sorted(getattr(thing, "__all__", [])) if ours else []
    if type(thing).__module__.split(".")[0] != PACKAGE:
        return []
    return sorted(name for name in dir(thing) if not name.startswith("_"))


def _parameters(message: str) -> list[str]:
    """The parameters of the function of ours that a TypeError talks about."""
    match = _KEYWORD.search(message)
    if match is None:
        return []
    for module in (PACKAGE, f"{PACKAGE}.sources", f"{PACKAGE}.sinks", f"{PACKAGE}.sources.shapes"):
        owner = getattr(importlib.import_module(module), match[1], None)
        method = getattr(owner, match[2], None)
        if owner is not None and method is not None:
            return [name for name in inspect.signature(method).parameters if name not in ("self", "inputs")]
    return []
