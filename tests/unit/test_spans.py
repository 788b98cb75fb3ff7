"""Runs of epochs take a few bytes, however many epochs they are."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.snapshots import COUNTS, replica

from understudy.model.messages import Heartbeat
from understudy.model.snapshot import Assignment
from understudy.model.spans import members, span, union
from understudy.reporting.report import slice_reports

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)).map(lambda pair: (pair[0], sum(pair))))


@given(SPANS)
def test_a_union_holds_the_same_epochs_in_the_fewest_spans(spans: list[tuple[int, int]]) -> None:
    found = union(spans)
    assert list(members(found)) == sorted(set(members(spans)))
    assert all(later[0] > earlier[1] + 1 for earlier, later in pairwise(found))


def test_an_empty_range_is_no_span() -> None:
    assert span(range(5, 5)) == ()
    assert span(range(5, 8)) == ((5, 7),)


def test_a_heartbeat_stays_small_when_a_million_epochs_are_forgotten() -> None:
    status = replica(COUNTS, forgotten=span(range(1_000_000)), gaps=span(range(1_000_000, 1_100_000)))
    assert len(Heartbeat(ready=True, replicas=(status,)).model_dump_json()) < 2_000


def test_the_report_unites_what_all_replicas_have_lost() -> None:
    replicas = [
        replica(COUNTS, 1, forgotten=((0, 4),), gaps=((5, 6),)),
        replica(COUNTS, 2, forgotten=((3, 9),), gaps=((8, 8),)),
    ]
    report = slice_reports([Assignment(COUNTS, "node-1", 2)], replicas, {})[str(COUNTS)]
    assert (report.forgotten, report.gaps) == (((0, 9),), (5, 6, 8))
