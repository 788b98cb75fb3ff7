"""Tests on code that was changed on purpose: each try in a process of its own, which imports the changed source.

`tests/mutants.py` changes rules of the replica core, `tests/unmended.py` takes mends out.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import resource
import signal
import sys
import time
import types
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from typing import NoReturn

SRC = Path(__file__).parents[1] / "src"
OURS = ("understudy", "tests")
KEPT = ("understudy.model", "understudy.errors")
"""Import nothing else of ours, so a try may use them as they are, unless it changes one of them."""
CPU_S = 120
"""Of the processor, so that a busy machine ends no try. All tests together need a tenth of it."""
WALL_S = 1200.0
MOST_SAID = 10_000
"""Bytes a check may say: fewer than a pipe holds."""
BROKEN = 3
"""The exit code of a try whose check itself is broken."""


class Hung(str):
    """What is noticed where a change makes a check run without end."""

    __slots__ = ()


def path_of(module: str) -> Path:
    return SRC / (module.replace(".", "/") + ".py")


class _Loader(SourceFileLoader):
    def __init__(self, name: str, source: str) -> None:
        super().__init__(name, str(path_of(name)))
        self._source = source

    def get_code(self, fullname: str) -> types.CodeType:
        return compile(self._source, self.path, "exec")


class _Finder(MetaPathFinder):
    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        found = PathFinder.find_spec(fullname, path) if fullname in self._sources else None
        if found is not None:
            found.loader = _Loader(fullname, self._sources[fullname])
        return found


def preload(modules: Sequence[str]) -> None:
    """Imports once what every try needs. Most of our own modules are forgotten: a try imports them changed."""
    for module in modules:
        importlib.import_module(module)
    _forget(KEPT)


def _forget(but: tuple[str, ...]) -> None:
    ours = [name for name in sys.modules if name.split(".")[0] in OURS and name not in ("tests", __name__)]
    for name in [name for name in ours if not name.startswith(but)]:
        del sys.modules[name]


def attempt(sources: Mapping[str, str], check: Callable[[], str]) -> str:
    """What a check notices where some modules have another source, in a process of its own; empty if nothing."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _try(sources, check, writer)
    os.close(writer)
    with os.fdopen(reader) as found:
        ended = _await(child)
        return found.read() if ended else Hung("it did not end")


def _try(sources: Mapping[str, str], check: Callable[[], str], writer: int) -> NoReturn:
    code = BROKEN
    with contextlib.suppress(BaseException):
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
        logging.disable(logging.CRITICAL)
        if any(name.startswith(KEPT) for name in sources):
            _forget(())
        sys.meta_path.insert(0, _Finder(sources))
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            os.write(writer, check().encode()[:MOST_SAID])
        code = 0
    os._exit(code)


def _await(child: int) -> bool:
    """Whether it ended by itself."""
    deadline = time.monotonic() + WALL_S
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            if code == BROKEN:
                raise ChildProcessError("the check itself is broken")
            return code == 0
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False
