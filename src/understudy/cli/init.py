"""`understudy init`: a project to start from, with an application, its tests and its configuration."""

from __future__ import annotations

import re
import shlex
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from understudy.errors import InvalidInput, Unavailable
from understudy.model.names import valid_name

STARTER = {
    "app.py": "app.py.txt",
    "test_app.py": "test_app.py.txt",
    "pytest.ini": "pytest.ini.txt",
    "understudy.toml": "understudy.toml.txt",
    "README.md": "README.md.txt",
    ".gitignore": "gitignore.txt",
}
"""Files of the project, and where they come from. They are text here, because they belong to no package."""


def init(
    directory: Annotated[Path, typer.Argument(help="Where to put it: a new or empty directory.", show_default=False)],
    name: Annotated[str | None, typer.Option(help="Name of the topology; default: that of the directory.")] = None,
) -> None:
    """Write a starter project: an application, tests, a configuration file and a short README."""
    chosen = name or _name_of(directory)
    if not valid_name(chosen):
        raise InvalidInput(
            f"--name {chosen}",
            why="a name has letters, digits, '-' and '_', and begins with a letter",
            fix="choose one",
        )
    if directory.exists() and not (directory.is_dir() and not any(directory.iterdir())):
        raise InvalidInput(f"{directory} is not empty", why="nothing is overwritten", fix="give a new directory")
    try:
        write(directory, chosen)
    except OSError as error:
        raise Unavailable(
            f"{directory} cannot be written", why=str(error), fix="give a directory that you may write"
        ) from error
    print(f"{directory}: {', '.join(STARTER)}")
    print(f"next: cd {shlex.quote(str(directory))} && understudy run app.py --epochs 30 --fault kill:node-2@epoch12")


def write(directory: Path, name: str) -> None:
    """Writes the project, each file from its template."""
    directory.mkdir(parents=True, exist_ok=True)
    for target, template in STARTER.items():
        text = (files("understudy.cli") / "starter" / template).read_text(encoding="utf-8")
        (directory / target).write_text(Template(text).substitute(name=name), encoding="utf-8")


def _name_of(directory: Path) -> str:
    """The directory's name as a topology may be called."""
    found = re.sub(r"[^A-Za-z0-9_-]+", "-", directory.resolve().name).strip("-_")
    return found if found[:1].isalpha() else f"app-{found}".rstrip("-")
