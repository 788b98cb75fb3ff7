"""Talks to a manager over its API."""

from __future__ import annotations

import time

import httpx

from understudy.model.view import RunState
from understudy.reporting.report import Report

TIMEOUT_S = 5.0
STATE_S = 2.0
"""Asked for twenty times a second; whoever waits for a frozen manager has other things to do."""


class Client:
    """Answers None where the manager does not answer: it may be on its way back."""

    def __init__(self, url: str, token: str = "") -> None:
        self._http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=TIMEOUT_S)

    def state(self) -> RunState | None:
        text = self._get("/api/v1/state", STATE_S)
        return None if text is None else RunState.model_validate_json(text)

    def report(self) -> Report | None:
        text = self._get("/api/v1/report")
        return None if text is None else Report.model_validate_json(text)

    def note_fault(self, spec: str, target: str, at: float | None = None) -> bool:
        return self._post("/api/v1/faults", {"spec": spec, "target": target, "at": at or time.time()})

    def switch(self, slice_name: str, scheme: str) -> str | None:
        """Asks for another scheme; answers why not, if it is refused."""
        try:
            answer = self._http.post("/api/v1/switch", json={"slice": slice_name, "scheme": scheme})
        except httpx.HTTPError as error:
            return f"the manager does not answer: {error}"
        return None if answer.is_success else str(answer.json().get("detail", answer.text))

    def finish(self) -> bool:
        return self._post("/api/v1/finish", {})

    def stop(self) -> bool:
        return self._post("/api/v1/stop", {})

    def close(self) -> None:
        self._http.close()

    def _get(self, path: str, timeout_s: float = TIMEOUT_S) -> str | None:
        try:
            answer = self._http.get(path, timeout=timeout_s)
        except httpx.HTTPError:
            return None
        return answer.text if answer.is_success else None

    def _post(self, path: str, body: dict[str, object]) -> bool:
        try:
            return self._http.post(path, json=body).is_success
        except httpx.HTTPError:
            return False
