"""The one client of a manager's API: the launcher polls with it, the command line asks with it."""

from __future__ import annotations

import time
from typing import Any

import httpx

from understudy.errors import InvalidInput, NoManager, Unavailable
from understudy.model.report import Report
from understudy.model.view import RunState

TIMEOUT_S = 5.0
STATE_S = 2.0
"""The launcher reads the state twenty times a second; it has other things to do than to wait for a frozen manager."""
_FIXES = {
    401: "name the run's --home, or give its file 'token' with --token-file",
    403: "start the run with --allow-faults",
    404: "look names up with 'understudy status'",
    405: "this manager is of another version; run the same one",
    409: "see 'understudy status', then try again",
    422: "correct what the reason names",
}


class Client:
    """`get` and `post` raise what a person can act on: NoManager if nobody is there, Unavailable for a refusal.

    The methods below them are for polling: they return None or False while the manager does not answer, because it may
    be on its way back.
    """

    def __init__(self, url: str, token: str = "", timeout_s: float = TIMEOUT_S) -> None:
        self.url, self._timeout_s = url, timeout_s
        self._http = httpx.Client(headers={"Authorization": f"Bearer {token}"} if token else {})

    def close(self) -> None:
        self._http.close()

    # -- asking

    def get(self, path: str, **query: Any) -> str:
        return self._ask("GET", path, params=query).text

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._ask("POST", path, json=body).json()

    def answers(self) -> bool:
        """Whether a manager is there."""
        try:
            self.get("/health/live")
        except (NoManager, Unavailable):
            return False
        return True

    def _ask(self, method: str, path: str, timeout_s: float | None = None, **more: Any) -> httpx.Response:
        try:
            answer = self._http.request(method, f"{self.url}{path}", timeout=timeout_s or self._timeout_s, **more)
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

    # -- polling

    def state(self) -> RunState | None:
        text = self._poll("/api/v1/state", STATE_S)
        return None if text is None else RunState.model_validate_json(text)

    def report(self) -> Report | None:
        text = self._poll("/api/v1/report", self._timeout_s)
        return None if text is None else Report.model_validate_json(text)

    def note_fault(self, spec: str, target: str, at: float | None = None) -> bool:
        return self._tell("/api/v1/faults", {"spec": spec, "target": target, "at": at or time.time()})

    def switch(self, slice_name: str, scheme: str) -> str | None:
        """Asks for another scheme. Returns why not, if it is refused."""
        try:
            self.post("/api/v1/switch", {"slice": slice_name, "scheme": scheme})
        except (NoManager, Unavailable) as error:
            return error.why
        return None

    def move(self, slice_name: str, node: str) -> str | None:
        """Asks for another node. Returns why not, if it is refused."""
        try:
            self.post("/api/v1/move", {"slice": slice_name, "node": node})
        except (NoManager, Unavailable) as error:
            return error.why
        return None

    def finish(self) -> bool:
        return self._tell("/api/v1/finish", {})

    def stop(self) -> bool:
        return self._tell("/api/v1/stop", {})

    def _poll(self, path: str, timeout_s: float) -> str | None:
        try:
            return self._ask("GET", path, timeout_s).text
        except (NoManager, Unavailable):
            return None

    def _tell(self, path: str, body: dict[str, Any]) -> bool:
        try:
            self.post(path, body)
        except (NoManager, Unavailable):
            return False
        return True


def absent(what: str, why: str) -> NoManager:
    return NoManager(
        what, why=why, fix="start one with 'understudy run APP.py', or name a running one with --home or --url"
    )


def _reason(answer: httpx.Response) -> str:
    try:
        detail = answer.json()["detail"]
    except (ValueError, KeyError, TypeError):
        return f"status {answer.status_code}"
    if isinstance(detail, list):
        return "; ".join(f"{'.'.join(str(part) for part in entry['loc'])}: {entry['msg']}" for entry in detail)
    return str(detail)
