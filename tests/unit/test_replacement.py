"""A lost node is replaced when that delays nobody, or when waiting helps nobody."""

from __future__ import annotations

from typing import Any

import pytest

from understudy.control.cluster.replacement import may_replace
from understudy.model.config import DEFAULTS
from understudy.model.snapshot import Phase
from understudy.model.view import NodeState, RunState, SliceState

PATIENCE_S = DEFAULTS.cluster.replace_after_s


def state(nodes: int, **changes: Any) -> RunState:
    usual: dict[str, Any] = {"state": "running", "scheme": "deployed", "protection": "deployed"}
    one = SliceState(slice="counts[0]", kind="operator", primary="node-0", **(usual | changes))
    ready = [
        NodeState(
            name=f"node-{number}",
            connected=True,
            ready=True,
            pid=1,
            domain="",
            cpu_s=0.0,
            memory_bytes=0,
            replicas=(),
        )
        for number in range(nodes)
    ]
    return RunState(
        run="r",
        app="a",
        phase=Phase.RUNNING,
        elapsed_s=1.0,
        goal=None,
        delivered={},
        rows={},
        nodes=tuple(ready),
        lost=(),
        replacements=1,
        failure=None,
        slices=(one,),
    )


@pytest.mark.parametrize(
    ("nodes", "changes", "missing_s", "expected"),
    [
        (2, {}, 0.0, True),
        (2, {"state": "recovering"}, 0.0, False),
        (2, {"state": "recovering"}, PATIENCE_S, True),
        (2, {"protection": "passive_replication"}, 0.0, False),
        (1, {"protection": "passive_replication"}, 0.0, True),
        (1, {"state": "starting"}, 0.0, False),
        (0, {"state": "lost"}, 0.0, True),
    ],
)
def test_replacing(nodes: int, changes: dict[str, Any], missing_s: float, expected: bool) -> None:
    assert may_replace(state(nodes, **changes), missing_s, running=nodes, limits=DEFAULTS.cluster) is expected


@pytest.mark.parametrize("nodes", [0, 2])
def test_no_more_nodes_run_at_once_than_twice_as_many_as_are_wanted(nodes: int) -> None:
    """Nodes that are given up and still run show that the machine is full: another one would not help."""
    assert may_replace(state(nodes), PATIENCE_S, running=5, limits=DEFAULTS.cluster)
    assert not may_replace(state(nodes), PATIENCE_S, running=6, limits=DEFAULTS.cluster)
