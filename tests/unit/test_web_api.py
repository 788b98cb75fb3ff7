"""The manager's port: who may ask what, and what the answers are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from tests.simulated.cluster import Cluster
from tests.theatre import TOKEN, StageHands

from understudy.model.events import GoalSet
from understudy.model.faults import Fault
from understudy.runtime.serve import compose
from understudy.web.hub import Hub

BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    made = Cluster(tmp_path, allow_faults=True)
    made.until(lambda: made.delivered > 2)
    return made


@pytest.fixture
def hands(cluster: Cluster) -> StageHands:
    return StageHands(cluster)


@pytest.fixture
def client(cluster: Cluster, hands: StageHands) -> TestClient:
    """A program on this machine. What the server does by itself is not started: it would read the run on a thread of
    its own, while a test lets the run go on here."""
    app = compose(cluster.manager, TOKEN, hands)
    return TestClient(app, client=("127.0.0.1", 5000), base_url="http://127.0.0.1:8787")


def refreshed(cluster: Cluster) -> TestClient:
    return TestClient(compose(cluster.manager, TOKEN), client=("127.0.0.1", 5000), base_url="http://127.0.0.1")


# -- who may ask


@pytest.mark.parametrize("path", ["state", "view", "plan", "events", "recoveries", "report"])
def test_reading_needs_no_token_on_this_machine(client: TestClient, path: str) -> None:
    assert client.get(f"/api/v1/{path}").status_code == 200


@pytest.mark.parametrize("path", ["/api/v1/state", "/api/v1/view", "/api/v1/events", "/metrics"])
def test_reading_from_elsewhere_needs_the_token(cluster: Cluster, path: str) -> None:
    far = TestClient(compose(cluster.manager, TOKEN), client=("192.0.2.7", 5000), base_url="http://192.0.2.1:8787")
    assert far.get(path).status_code == 401
    assert far.get(path, headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert far.get(path, headers=BEARER).status_code == 200


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "http://127.0.0.1:9999"}]
)
def test_a_page_from_elsewhere_cannot_read_through_a_browser_here(client: TestClient, headers: dict[str, str]) -> None:
    assert client.get("/api/v1/view", headers=headers).status_code == 401
    with client.websocket_connect("/api/v1/live", headers=headers) as socket:
        socket.send_json({})
        with pytest.raises(WebSocketDisconnect):
            socket.receive_json()


@pytest.mark.parametrize("path", ["nodes/node-1/kill", "nodes/node-1/freeze", "nodes/node-1/drain", "stop", "faults"])
def test_commands_need_the_token_even_here(client: TestClient, hands: StageHands, path: str) -> None:
    for word in (b"", b"Bearer wrong", "Bearer ü".encode(), TOKEN.encode()):
        answer = client.post(f"/api/v1/{path}", json={}, headers=[(b"Authorization", word)])
        assert answer.status_code == 401
    assert hands.done == []


# -- health


def test_health_is_told_by_the_status_code(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    with refreshed(cluster) as client:
        assert client.get("/health/live").status_code == 200
        answer = client.get("/health/ready")
        assert (answer.status_code, answer.json()["reasons"]) == (503, ["the run is gathering"])
    cluster.until(lambda: cluster.delivered > 2)
    with refreshed(cluster) as client:
        assert client.get("/health/ready").json() == {"ready": True, "reasons": []}
    cluster.kill("node-2")
    with refreshed(cluster) as client:
        answer = client.get("/health/ready")
        assert answer.status_code == 503
        assert "node-2 is gone" in " ".join(answer.json()["reasons"])


def test_a_slice_that_is_far_behind_is_not_ready(tmp_path: Path) -> None:
    """Its node answers and nothing is down, but the run does not keep up."""
    cluster = Cluster(tmp_path, nodes=7, misses=1000)
    cluster.until(lambda: cluster.delivered > 2)
    host = next(a.node for a in cluster.store.assignments() if str(a.slice) == "counts[0]")
    cluster.nodes[host].frozen = True
    cluster.steps(4.0)
    with refreshed(cluster) as client:
        answer = client.get("/health/ready")
        assert answer.status_code == 503
        late = [reason for reason in answer.json()["reasons"] if reason.startswith("counts[0]")]
        assert len(late) == 1
        assert "epochs behind the newest, and 30 are allowed" in late[0]
        looks = {entry["slice"]: entry for entry in client.get("/api/v1/view").json()["slices"]}
        assert looks["counts[0]"]["health"] == "degraded"


# -- the view


def test_the_view_shows_slices_nodes_and_costs(client: TestClient, cluster: Cluster) -> None:
    view = client.get("/api/v1/view").json()
    assert {entry["slice"] for entry in view["slices"]} == {str(slice_id) for slice_id in cluster.layout.slices}
    assert {entry["health"] for entry in view["slices"]} == {"healthy"}
    assert [node["name"] for node in view["nodes"]] == ["node-1", "node-2", "node-3"]
    assert sum(len(node["replicas"]) for node in view["nodes"]) == len(cluster.layout.slices)
    assert [line["resource"] for line in view["costs"]] == ["CPU", "state in memory", "network", "nodes"]
    assert view["allow_faults"] is True


def test_the_plan_has_the_graph_and_the_slices(client: TestClient, cluster: Cluster) -> None:
    plan = client.get("/api/v1/plan").json()
    assert [(v["name"], v["column"]) for v in plan["vertices"]] == [
        ("lines", 0),
        ("words", 1),
        ("counts", 2),
        ("out", 3),
    ]
    assert {"upstream": "words", "reader": "counts", "how": "by word"} in plan["edges"]
    assert len(plan["slices"]) == len(cluster.layout.slices)


def test_events_are_those_after_a_number(client: TestClient) -> None:
    everything = client.get("/api/v1/events").json()
    assert client.get("/api/v1/events", params={"after": everything[2]["number"]}).json() == everything[3:]
    assert client.get("/api/v1/events", params={"after": -1}).status_code == 422
    assert client.get("/api/v1/events", params={"after": 2**70}).status_code == 422


def test_recoveries_lead_back_to_the_fault(cluster: Cluster) -> None:
    cluster.manager.note_fault("kill:node-2@9s", "node-2", cluster.now)
    hosted = {str(s) for s, hosts in cluster.hosts().items() if hosts[0][0] == "node-2"}
    cluster.kill("node-2")
    cluster.until(cluster.settled)
    cluster.now += 1.0  # as long as the steps that are made up here
    cluster.steps(1.0)
    with refreshed(cluster) as client:
        client.get("/api/v1/view")
        recoveries = client.get("/api/v1/recoveries").json()
    assert {recovery["slice"] for recovery in recoveries} == hosted
    assert {recovery["cause"] for recovery in recoveries} == {"kill:node-2@9s"}
    assert all(recovery["steps"]["detect"] > 0 for recovery in recoveries)


# -- the live feed


def test_a_page_is_told_everything_first_and_then_what_is_new(cluster: Cluster) -> None:
    with (
        refreshed(cluster) as client,
        client.websocket_connect("/api/v1/live", headers={"Host": "127.0.0.1"}) as socket,
    ):
        socket.send_json({})
        first = socket.receive_json()
        assert (first["kind"], first["plan"]["app"]) == ("everything", "wordcount")
        cluster.manager.journal.note(GoalSet(epochs=1, reason="something new"))
        news: list[dict[str, Any]] = []
        while not any(frame["events"] for frame in news):
            news.append(socket.receive_json())
        assert {frame["kind"] for frame in news} == {"news"}
        assert [e["text"] for frame in news for e in frame["events"]] == ["something new"]


def test_a_page_elsewhere_says_the_token_first(cluster: Cluster) -> None:
    far = TestClient(compose(cluster.manager, TOKEN), client=("192.0.2.7", 5000), base_url="http://192.0.2.1:8787")
    with far.websocket_connect("/api/v1/live") as socket:
        socket.send_text(json.dumps({"token": TOKEN}))
        assert socket.receive_json()["kind"] == "everything"
    for word in ("{}", '{"token": "wrong"}', "[]", "not json", '{"token": 3}'):
        with far.websocket_connect("/api/v1/live") as socket:
            socket.send_text(word)
            with pytest.raises(WebSocketDisconnect):
                socket.receive_json()


def test_a_page_that_does_not_read_is_let_go(cluster: Cluster) -> None:
    from prometheus_client import CollectorRegistry

    hub = Hub(cluster.manager.view, CollectorRegistry())
    slow, quick = hub.join(), hub.join()
    for _ in range(100):
        hub._publish("frame")
        while not quick.empty():
            quick.get_nowait()
    assert hub.pages == 1
    assert (slow.get_nowait(), slow.empty()) == ("", True), "its last word ends the connection"


def test_what_the_hub_remembers_is_bounded(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    from prometheus_client import CollectorRegistry

    from understudy.web import hub as module

    monkeypatch.setattr(module, "MAX_SAMPLES", 60)
    monkeypatch.setattr(module, "MAX_EVENTS", 50)
    hub = Hub(cluster.manager.view, CollectorRegistry())
    for number in range(150):
        cluster.now += 0.5
        cluster.manager.journal.note(GoalSet(epochs=1, reason=f"{number}"))
        hub.refresh()
    frame = hub.everything()
    assert (len(frame.events), len(frame.samples)) == (module.MAX_EVENTS, module.MAX_SAMPLES)
    assert frame.events[-1].text == f"{number}"


# -- commands


def test_kill_notes_the_fault_and_its_number(client: TestClient, hands: StageHands, cluster: Cluster) -> None:
    number = client.post("/api/v1/nodes/node-2/kill", headers=BEARER).json()["number"]
    assert hands.done == [("kill", "node-2")]
    event = cluster.manager.events(number - 1)[0]
    assert (event.kind, event.fields["target"]) == ("fault", "node-2")
    assert event.fields["spec"].startswith("kill:node-2@")


def test_the_jvm_alone_is_killed_or_frozen(client: TestClient, hands: StageHands, cluster: Cluster) -> None:
    number = client.post("/api/v1/nodes/node-2/kill", json={"jvm": True}, headers=BEARER).json()["number"]
    client.post("/api/v1/nodes/node-1/freeze", json={"seconds": 500, "jvm": True}, headers=BEARER)
    assert hands.done == [("kill jvm", "node-2"), ("freeze jvm", "node-1")]
    kill, freeze = (event for event in cluster.manager.events(number - 1) if event.kind == "fault")
    assert Fault.parse(kill.fields["spec"]).jvm
    assert (Fault.parse(freeze.fields["spec"]).jvm, freeze.fields["target"]) == (True, "node-1")


def test_freeze_thaws_after_its_time(cluster: Cluster, hands: StageHands) -> None:
    with TestClient(compose(cluster.manager, TOKEN, hands)) as client:
        assert client.post("/api/v1/nodes/node-1/freeze", json={"seconds": 0.02}, headers=BEARER).status_code == 200
        while ("thaw", "node-1") not in hands.done:
            client.get("/health/live")
    assert hands.done == [("freeze", "node-1"), ("thaw", "node-1")]


def test_nobody_stays_frozen_when_the_manager_ends(cluster: Cluster, hands: StageHands) -> None:
    with TestClient(compose(cluster.manager, TOKEN, hands)) as client:
        client.post("/api/v1/nodes/node-1/freeze", json={"seconds": 500}, headers=BEARER)
    assert hands.done[-1] == ("thaw", "node-1")


@pytest.mark.parametrize("verb", ["kill", "freeze", "drain"])
def test_commands_name_what_is_wrong(client: TestClient, cluster: Cluster, hands: StageHands, verb: str) -> None:
    answer = client.post(f"/api/v1/nodes/node-9/{verb}", json={}, headers=BEARER)
    assert (answer.status_code, "node-1, node-2, node-3" in answer.json()["detail"]) == (404, True)
    cluster.manager.memory.run = cluster.manager.run.changed(allow_faults=False)
    answer = client.post(f"/api/v1/nodes/node-1/{verb}", json={}, headers=BEARER)
    if verb == "drain":
        assert answer.status_code == 200, "a drain interrupts nothing, so it is no fault"
    else:
        assert (answer.status_code, "--allow-faults" in answer.json()["detail"]) == (403, True)
    assert hands.done == []


def test_a_slice_is_moved_and_a_node_given_notice(client: TestClient, cluster: Cluster) -> None:
    hosts = {one.slice: one.primary for one in cluster.manager.state().slices}
    target = next(name for name in sorted(cluster.nodes) if name != hosts["counts[0]"])
    body = {"slice": "counts[0]", "node": target}
    assert client.post("/api/v1/move", json=body).status_code == 401
    assert client.post("/api/v1/move", json=body, headers=BEARER).json() == body | {"legacy": False}
    cluster.until(lambda: {one.slice: one.primary for one in cluster.manager.state().slices}["counts[0]"] == target)
    refused = client.post("/api/v1/move", json=body, headers=BEARER)
    assert refused.status_code == 409
    assert "its primary is there already; name one of" in refused.json()["detail"]
    assert client.post(f"/api/v1/nodes/{target}/drain", json={"within_s": -1}, headers=BEARER).status_code == 422
    assert client.post(f"/api/v1/nodes/{target}/drain", json={"within_s": 20}, headers=BEARER).status_code == 200
    cluster.until(lambda: target not in cluster.nodes)


def shipped(cluster: Cluster, slice_name: str) -> int:
    """The epoch of the newest checkpoint its primary has shipped."""
    replicas = [replica for node in cluster.manager.state().nodes for replica in node.replicas if replica.primary]
    return next(replica.shipped_to for replica in replicas if str(replica.slice) == slice_name)


def test_slices_ship_what_they_have(client: TestClient, cluster: Cluster) -> None:
    """Right after a checkpoint, when the next one is far from being due."""
    newest = shipped(cluster, "counts[1]")
    cluster.until(lambda: shipped(cluster, "counts[1]") > newest)
    cluster.steps(0.2)
    before = shipped(cluster, "counts[1]")
    assert client.post("/api/v1/checkpoint", json={}).status_code == 401
    answer = client.post("/api/v1/checkpoint", json={"slices": ["counts[1]"]}, headers=BEARER).json()
    assert answer["slices"]["counts[1]"] > before
    cluster.steps(0.2)
    assert shipped(cluster, "counts[1]") >= answer["slices"]["counts[1]"]
    every = client.post("/api/v1/checkpoint", json={}, headers=BEARER).json()["slices"]
    assert set(every) == {"words[0]", "words[1]", "counts[0]", "counts[1]"}


@pytest.mark.parametrize("name", ["lines[0]", "counts[7]", "nothing[0]"])
def test_a_slice_that_keeps_nothing_ships_nothing(client: TestClient, name: str) -> None:
    refused = client.post("/api/v1/checkpoint", json={"slices": [name]}, headers=BEARER)
    assert refused.status_code == 409
    assert f"{name} cannot ship a checkpoint" in refused.json()["detail"]
    assert "name one of words[0], words[1], counts[0], counts[1]" in refused.json()["detail"]


@pytest.mark.parametrize("seconds", [0, -1, 1e9, "soon"])
def test_a_freeze_has_a_sensible_length(client: TestClient, hands: StageHands, seconds: object) -> None:
    answer = client.post("/api/v1/nodes/node-1/freeze", json={"seconds": seconds}, headers=BEARER)
    assert (answer.status_code, hands.done) == (422, [])


def test_only_processes_that_are_connected_to_us_are_signalled(cluster: Cluster) -> None:
    """The simulated nodes claim to be process 1."""
    with TestClient(compose(cluster.manager, TOKEN)) as client:
        answer = client.post("/api/v1/nodes/node-1/kill", headers=BEARER)
    assert answer.status_code == 409


# -- nodes


def test_a_node_whose_name_is_taken_is_told_so(client: TestClient) -> None:
    hello = {"kind": "hello", "node": "node-9", "token": TOKEN, "pid": 7, "instance": "first"}
    with client.websocket_connect("/nodes") as first:
        first.send_json(hello)
        assert first.receive_json()["kind"] == "welcome"
        with client.websocket_connect("/nodes") as second:
            second.send_json(hello | {"instance": "second"})
            answer = second.receive_json()
            assert answer["kind"] == "refused"
            assert "there is a node node-9 already" in answer["failure"]["what"]
            with pytest.raises(WebSocketDisconnect):
                second.receive_json()
