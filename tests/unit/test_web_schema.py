"""Every answer of the API is what its own schema says, whatever it is asked (schemathesis makes the questions)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from tests.simulated.cluster import Cluster
from tests.theatre import TOKEN, StageHands

from understudy.runtime.serve import compose

BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run that has seen a fault and is back."""
    home: Path = tmp_path_factory.mktemp("home")
    cluster = Cluster(home, nodes=4, allow_faults=True)
    cluster.until(lambda: cluster.delivered > 2)
    cluster.kill("node-2")
    cluster.until(cluster.settled)
    cluster.steps(1.0)
    app = compose(cluster.manager, TOKEN, StageHands(cluster))
    return schemathesis.openapi.from_asgi("/openapi.json", app, headers=BEARER)


def test_answers_match_the_schema(api: Any) -> None:
    """One after the other instead of by parameters: the schema exists only once there is a run."""
    asked: list[str] = []
    for result in api.get_all_operations():
        operation = result.ok()
        asked.append(operation.label)

        @settings(max_examples=15, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            # A run that was told to finish, or whose nodes were drained meanwhile, is not ready: 503 says so.
            known = [not_a_server_error] if case.operation.label == "GET /health/ready" else []
            case.call_and_validate(headers=BEARER, excluded_checks=known)

        ask()
    assert {"GET /api/v1/view", "GET /api/v1/plan", "GET /api/v1/events", "GET /api/v1/recoveries"} <= set(asked)
    assert {"POST /api/v1/nodes/{node}/kill", "GET /health/ready", "GET /metrics"} <= set(asked)
