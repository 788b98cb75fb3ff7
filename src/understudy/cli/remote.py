"""Finding the manager that runs: by its address, by its home, or the newest one here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.errors import InvalidInput, UnderstudyError

if TYPE_CHECKING:
    from understudy.runtime.client import Client

HOME = Annotated[Path | None, typer.Option(help="The run's home; default: the newest under .understudy/ that answers.")]
URL = Annotated[str | None, typer.Option(help="The manager, like http://127.0.0.1:8787, instead of a home.")]
TOKEN = Annotated[Path | None, typer.Option(help="The file 'token' of the run's home, for --url.")]
JSON = Annotated[bool, typer.Option("--json", help="Print JSON.")]
HOMES = Path(".understudy")
COMPLETE_S = 1.0


def find(home: Path | None, url: str | None, token_file: Path | None, timeout_s: float | None = None) -> Client:
    """By its address, by its home, or the newest home here whose manager answers."""
    from understudy.runtime.client import TIMEOUT_S, Client, absent

    if url is not None:
        return Client(url.rstrip("/"), _token(token_file), timeout_s or TIMEOUT_S)
    if home is not None:
        return _at_home(home, token_file, timeout_s)
    for path in sorted(HOMES.glob("*/*/address"), key=lambda p: p.stat().st_mtime, reverse=True):
        remote = _at_home(path.parent, token_file, timeout_s)
        if remote.answers():
            return remote
    raise absent(f"no manager answers under {HOMES}/", "no run goes on here")


def _at_home(home: Path, token_file: Path | None, timeout_s: float | None) -> Client:
    from understudy.runtime.client import TIMEOUT_S, Client, absent
    from understudy.runtime.home import Home

    address = Home(home).address()
    if address is None:
        raise absent(f"no manager runs in {home}", "it has no file 'address'")
    own = home / "token"
    return Client(address, _token(token_file or (own if own.exists() else None)), timeout_s or TIMEOUT_S)


def _token(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return path.read_text().strip()
    except OSError as error:
        raise InvalidInput(
            f"the token file {path} cannot be read",
            why=error.strerror or str(error),
            fix="name the file 'token' in the run's home directory",
        ) from None


# -- for the shell: names that a running manager knows


def complete_nodes(incomplete: str) -> list[str]:
    return _known("nodes", "name", incomplete)


def complete_slices(incomplete: str) -> list[str]:
    return _known("slices", "slice", incomplete)


def _known(part: str, field: str, incomplete: str) -> list[str]:
    """Nothing where nobody answers at once: a shell that waits is worse than one that does not know."""
    try:
        view = json.loads(find(None, None, None, COMPLETE_S).get("/api/v1/view"))
    except (UnderstudyError, ValueError):
        return []
    return [entry[field] for entry in view[part] if entry[field].startswith(incomplete)]
