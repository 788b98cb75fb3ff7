"""The first real batch of a secondary is not the first ever."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from understudy.model.capabilities import ROWS
from understudy.model.layout import Kind, Vertex
from understudy.model.recovery import Scheme
from understudy.stream.query import QueryReplica


class Trial:
    """Runs whatever is announced at once, and keeps the epochs."""

    def __init__(self, batch: Any) -> None:
        self.batch, self.ran, self.retired = batch, [], False  # type: ignore[var-annotated]

    def start(self, *_: object) -> None:
        pass

    def announce(self, epoch: int, lines: list[str]) -> None:
        assert lines == []
        self.batch(epoch, SimpleNamespace(toArrow=lambda: self.ran.append(epoch)))


def trials(scheme: Scheme, *, stateful: bool, deterministic: bool = True) -> list[Trial]:
    made: list[Trial] = []

    def new_query(batch: Any) -> Trial:
        made.append(Trial(batch))
        return made[-1]

    replica: Any = SimpleNamespace(
        _ask=SimpleNamespace(capabilities=ROWS[scheme]),
        vertex=Vertex("sums", Kind.OPERATOR, 1, stateful=stateful, deterministic=deterministic),
        operators=[],
        schemas=[],
        check_stop=lambda: None,
        _new_query=new_query,
        _retire=lambda query: setattr(query, "retired", True),
    )
    QueryReplica._exercise(replica)
    return made


@pytest.mark.parametrize(
    ("scheme", "stateful"),
    [
        (Scheme.DEPLOYED, True),
        (Scheme.DEPLOYED, False),
        (Scheme.PASSIVE_STANDBY_COLD, False),
        (Scheme.PASSIVE_STANDBY_HOT, False),
    ],
)
def test_a_plan_that_would_not_have_run_is_exercised(scheme: Scheme, stateful: bool) -> None:
    (trial,) = trials(scheme, stateful=stateful)
    assert trial.ran == [0]
    assert trial.retired


@pytest.mark.parametrize(
    ("scheme", "stateful"),
    [
        (Scheme.ACTIVE_REPLICATION, True),
        (Scheme.ACTIVE_STANDBY, False),
        (Scheme.PASSIVE_STANDBY_HOT, True),
        (Scheme.PASSIVE_STANDBY_COLD, True),
    ],
)
def test_one_that_runs_real_rows_in_a_moment_is_not(scheme: Scheme, stateful: bool) -> None:
    assert trials(scheme, stateful=stateful) == []


def test_one_whose_last_batch_must_not_run_again_is_exercised() -> None:
    (trial,) = trials(Scheme.PASSIVE_STANDBY_COLD, stateful=True, deterministic=False)
    assert trial.ran == [0]
