"""Loads a user's file and finds its topology."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from understudy import settings
from understudy.errors import InvalidInput
from understudy.model.topology import Topology
from understudy.runtime.mistakes import explain


def load(path: Path, values: Mapping[str, str] | None = None) -> Topology:
    """Runs the file and returns its only topology, checked as far as that is possible without Spark."""
    settings.give(values or {})
    module = import_file(path)
    settings.check_all_asked()
    topologies = {id(value): value for value in vars(module).values() if isinstance(value, Topology)}
    if len(topologies) != 1:
        raise InvalidInput(
            f"{path} defines {len(topologies) or 'no'} topolog{'ies' if topologies else 'y'}",
            why="a run has exactly one, at the top level of the file",
            fix='write app = us.Topology("name") once',
        )
    topology = next(iter(topologies.values()))
    topology.validate()
    return topology


def import_file(path: Path) -> ModuleType:
    """Imports a file as a script would be: files beside it can be imported too."""
    if not path.is_file():
        raise InvalidInput(f"{path} is not there", why="an application is a Python file", fix="check the path")
    path = path.resolve()
    # A name of its own: a file called json.py must not replace the library.
    name = f"application_{path.stem}"
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"{path} is not a Python file", why="an application is a Python file", fix="check the path")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        # Whatever the user's code raises: it is their line that must be corrected.
        raise explain(error, path) from error
    return module
