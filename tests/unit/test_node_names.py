"""A node's name becomes a directory, so nobody may choose one that leads elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import ValidationError
from starlette.websockets import WebSocketDisconnect
from tests.simulated.cluster import Cluster
from tests.theatre import TOKEN

from understudy.errors import InvalidInput
from understudy.model.messages import Hello
from understudy.model.names import node_name
from understudy.model.view import NodeState
from understudy.runtime.faults import LocalFaults
from understudy.runtime.home import node_directory
from understudy.runtime.serve import compose

BAD_NAMES = ["../../../x", "..", ".", "", "a/b", "a\\b", "Node-1", "node_1", "node 1", "-x", "node-1\n", "é", "x" * 64]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_node_cannot_introduce_itself_by_a_path(tmp_path: Path, name: str) -> None:
    cluster = Cluster(tmp_path)
    cluster.steps(1.0)
    with pytest.raises(ValidationError):
        Hello(node=name, token=TOKEN, pid=1)
    before = [node.name for node in cluster.manager.state().nodes]
    word: dict[str, Any] = {"kind": "hello", "node": name, "token": TOKEN, "pid": 1}
    with TestClient(compose(cluster.manager, TOKEN)) as client, client.websocket_connect("/nodes") as socket:
        socket.send_json(word)
        with pytest.raises(WebSocketDisconnect) as refused:
            socket.receive_json()
    assert refused.value.code == 1008
    assert [node.name for node in cluster.manager.state().nodes] == before


@pytest.mark.parametrize("name", ["node-1", "a", "0", "web-7-eu-west-1a", "x" * 63])
def test_simple_names_are_welcome(name: str) -> None:
    assert Hello(node=name, token=TOKEN, pid=1).node == name


@pytest.mark.parametrize("name", BAD_NAMES)
def test_no_directory_is_made_from_an_unchecked_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput):
        node_directory(tmp_path, name)


def test_kill_removes_nothing_outside_the_nodes_directory(tmp_path: Path) -> None:
    precious = tmp_path / "x" / "data"
    precious.mkdir(parents=True)
    nodes = tmp_path / "home" / "nodes"
    nodes.mkdir(parents=True)
    state = {"connected": True, "ready": True, "domain": "", "cpu_s": 0.0, "memory_bytes": 0, "replicas": ()}
    with pytest.raises(InvalidInput):
        LocalFaults(nodes).kill(NodeState(name="../../x", pid=2**22 + 1, **state))  # type: ignore[arg-type]
    assert precious.exists()


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("web1", "web1-7"),
        ("Web_1.Example.COM", "web-1-example-com-7"),
        ("-.-", "node-7"),
        ("", "node-7"),
        ("x" * 80, "x" * 61 + "-7"),
    ],
)
def test_the_name_of_a_host_becomes_the_name_of_a_node(host: str, expected: str) -> None:
    assert node_name(host, 7) == expected
    assert Hello(node=node_name(host, 7), token="", pid=7).node == expected
