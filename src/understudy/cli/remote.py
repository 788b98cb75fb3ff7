"""Finding the manager that runs, and talking to it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.errors import InvalidInput, NoManager, Unavailable, UnderstudyError

if TYPE_CHECKING:
    import httpx

HOME = Annotated[Path | None, typer.Option(help="The run's home; default: the newest under .understudy/ that answers.")]
URL = Annotated[str | None, typer.Option(help="The manager, like http://127.0.0.1:8787, instead of a home.")]
TOKEN = Annotated[Path | None, typer.Option(help="The file 'token' of the run's home, for --url.")]
JSON = Annotated[bool, typer.Option("--json", help="Print JSON.")]
HOMES = Path(".understudy")
TIMEOUT_S = 5.0
COMPLETE_S = 1.0


@dataclass(frozen=True)
class Remote:
    """A manager's API. Raises what a person can act on: nobody there, or a refusal with its reason."""

    url: str
    token: str
    timeout_s: float = TIMEOUT_S

    def get(self, path: str, **query: Any) -> str:
        return self._ask("GET", path, params=query).text

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._ask("POST", path, json=body).json()

    def answers(self) -> bool:
        try:
            self.get("/health/live")
        except (NoManager, Unavailable):
            return False
        return True

    def _ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        import httpx

        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            answer = httpx.request(method, f"{self.url}{path}", headers=headers, timeout=self.timeout_s, **more)
        except httpx.HTTPError as error:
            raise absent(f"no manager answers at {self.url}", str(error) or type(error).__name__) from None
        except (httpx.InvalidURL, ValueError) as error:
            raise InvalidInput(f"--url {self.url}", why=str(error), fix="write it like http://127.0.0.1:8787") from None
        if answer.is_success:
            return answer
        raise Unavailable(
            f"the manager refuses {path.removeprefix('/api/v1/')}",
            why=_reason(answer),
            fix=_FIXES.get(answer.status_code, "see the manager's log in the home directory"),
        )


_FIXES = {
    401: "name the run's --home, or give its file 'token' with --token-file",
    403: "start the run with --allow-faults",
    404: "look names up with 'understudy status'",
    405: "this manager is of another version; run the same one",
    409: "see 'understudy status', then try again",
    422: "correct what the reason names",
}


def _reason(answer: httpx.Response) -> str:
    try:
        detail = answer.json()["detail"]
    except (ValueError, KeyError, TypeError):
        return f"status {answer.status_code}"
    if isinstance(detail, list):
        return "; ".join(f"{'.'.join(str(part) for part in entry['loc'])}: {entry['msg']}" for entry in detail)
    return str(detail)


def absent(what: str, why: str) -> NoManager:
    return NoManager(
        what, why=why, fix="start one with 'understudy run APP.py', or name a running one with --home or --url"
    )


def find(home: Path | None, url: str | None, token_file: Path | None) -> Remote:
    """By its address, by its home, or the newest home here whose manager answers."""
    if url is not None:
        return Remote(url.rstrip("/"), _token(token_file))
    if home is not None:
        return _at_home(home, token_file)
    for path in sorted(HOMES.glob("*/*/address"), key=lambda p: p.stat().st_mtime, reverse=True):
        remote = _at_home(path.parent, token_file)
        if remote.answers():
            return remote
    raise absent(f"no manager answers under {HOMES}/", "no run goes on here")


def _at_home(home: Path, token_file: Path | None) -> Remote:
    from understudy.runtime.home import Home

    address = Home(home).address()
    if address is None:
        raise absent(f"no manager runs in {home}", "it has no file 'address'")
    own = home / "token"
    return Remote(address, _token(token_file or (own if own.exists() else None)))


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
        view = json.loads(replace(find(None, None, None), timeout_s=COMPLETE_S).get("/api/v1/view"))
    except (UnderstudyError, ValueError):
        return []
    return [entry[field] for entry in view[part] if entry[field].startswith(incomplete)]
