"""Who may read the manager's port, under which name, and through what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from tests.simulated.cluster import Cluster
from tests.theatre import TOKEN, StageHands

from understudy.model.report import Report
from understudy.runtime.serve import compose
from understudy.web.docs_page import docs_page

BEARER = {"Authorization": f"Bearer {TOKEN}"}
READING = [
    "/api/v1/state",
    "/api/v1/view",
    "/api/v1/plan",
    "/api/v1/events",
    "/api/v1/recoveries",
    "/api/v1/report",
    "/health/ready",
    "/metrics",
    "/docs",
    "/openapi.json",
]


def port(cluster: Cluster) -> TestClient:
    """A program on this machine asks."""
    app = compose(cluster.manager, TOKEN, StageHands(cluster))
    return TestClient(app, client=("127.0.0.1", 5000), base_url="http://127.0.0.1:8787")


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    made = Cluster(tmp_path, allow_faults=True)
    made.until(lambda: made.delivered > 2)
    return made


@pytest.fixture
def client(cluster: Cluster) -> Iterator[TestClient]:
    with port(cluster) as made:
        yield made


@pytest.mark.parametrize("path", READING)
def test_everything_that_tells_of_the_run_checks_the_name_it_was_asked_by(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 200
    assert client.get(path, headers={"Host": "evil.example"}).status_code == 401
    assert client.get(path, headers={"Host": "evil.example", **BEARER}).status_code == 200


def test_only_what_tells_nothing_is_open_to_everybody(client: TestClient) -> None:
    """A route that is added later is checked, or named here."""
    described = client.get("/openapi.json").json()["paths"]
    gets = {path for path, verbs in described.items() if "get" in verbs}
    hidden = {"/", "/docs", "/redoc", "/openapi.json"}
    reached = {p for p in gets | hidden if client.get(p, headers={"Host": "evil.example"}).status_code == 200}
    assert reached == {"/", "/health/live"}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("path", READING)
def test_a_page_from_elsewhere_cannot_make_the_manager_work(client: TestClient, path: str, site: str) -> None:
    """A plain <img> or <script> sends no Origin; the browser says where it comes from all the same."""
    assert client.get(path, headers={"Sec-Fetch-Site": site}).status_code == 401


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_our_own_page_and_a_typed_address_may_read(client: TestClient, site: str) -> None:
    assert client.get("/api/v1/report", headers={"Sec-Fetch-Site": site}).status_code == 200


def test_the_report_is_computed_once_for_many_who_ask(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[Report] = []
    report = cluster.manager.view.report

    def compute() -> Report:
        computed.append(report())
        return computed[-1]

    monkeypatch.setattr(cluster.manager.view, "report", compute)
    client = port(cluster)
    for _ in range(20):
        assert client.get("/api/v1/report").json()["epochs"] == cluster.delivered
    assert len(computed) == 1
    cluster.steps(1.0)
    client.get("/api/v1/report")
    assert len(computed) == 2, "a second later it is computed again"


def test_the_end_of_a_run_is_reported_at_once(tmp_path: Path) -> None:
    """The launcher asks for the report as soon as the phase says that the run is over."""
    cluster = Cluster(tmp_path, epochs=4)
    cluster.until(lambda: cluster.delivered == 3)
    client = port(cluster)
    assert client.get("/api/v1/report").json()["epochs"] == 3
    now = cluster.now
    cluster.until(lambda: cluster.manager.state().phase.over)
    cluster.now = now
    assert client.get("/api/v1/report").json()["epochs"] == 4


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Forwarded-Host", "X-Real-IP", "Via"])
def test_who_comes_through_a_proxy_is_not_local(client: TestClient, header: str) -> None:
    assert client.get("/api/v1/view", headers={header: "127.0.0.1"}).status_code == 401
    assert client.get("/api/v1/view", headers={header: "127.0.0.1", **BEARER}).status_code == 200


@pytest.mark.parametrize("path", READING)
def test_reading_without_token_can_be_switched_off(tmp_path: Path, path: str) -> None:
    """For a proxy that rewrites Host and says nothing of itself."""
    cluster = Cluster(tmp_path, token_to_read=True)
    cluster.until(lambda: cluster.delivered > 0)
    with port(cluster) as client:
        assert client.get(path).status_code == 401
        assert client.get(path, headers=BEARER).status_code == 200


def test_the_live_feed_needs_the_token_too_then(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, token_to_read=True)
    with port(cluster) as client:
        with client.websocket_connect("/api/v1/live") as socket:
            socket.send_json({})
            with pytest.raises(WebSocketDisconnect):
                socket.receive_json()
        with client.websocket_connect("/api/v1/live") as socket:
            socket.send_json({"token": TOKEN})
            assert socket.receive_json()["kind"] == "everything"


# -- the page that describes the API


def test_the_api_page_loads_nothing_from_elsewhere_and_runs_nothing(client: TestClient) -> None:
    answer = client.get("/docs")
    assert "/api/v1/switch" in answer.text
    assert "<script" not in answer.text
    assert not re.findall(r"(?:src|href)=\"?(?:https?:)?//", answer.text)
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert client.get("/redoc").status_code == 404


def test_the_api_page_names_every_path_with_what_it_takes(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()
    text = docs_page(schema)
    for path, verbs in schema["paths"].items():
        for verb in verbs:
            assert f"<b>{verb.upper()}</b> <code>{path}</code>" in text
    assert "<code>seconds</code>" in text, "fields of a body"
    assert "<code>after</code>" in text, "parameters"


def test_the_api_page_escapes_what_it_shows() -> None:
    operation = {"summary": "<script>alert(1)</script>", "responses": {"200": {"description": "<b>"}}}
    text = docs_page({"paths": {"/<x>": {"get": operation}}, "info": {"title": "<t>"}})
    assert "<script" not in text
    assert "<t>" not in text
