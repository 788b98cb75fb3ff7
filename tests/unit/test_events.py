"""Every kind of event has a record: it is written down, read again, and shown by the page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.simulated.cluster import Cluster

from understudy.model.events import (
    BY_KIND,
    RECORDS,
    SUMMED,
    Assigned,
    Event,
    Happening,
    Recovered,
    Tone,
    Unknown,
    read,
)
from understudy.model.messages import Steps
from understudy.model.names import SliceId
from understudy.reporting.chronicle import Chronicle
from understudy.reporting.recoveries import past_recoveries, recoveries
from understudy.web.hub import Hub

PAGE = Path(__file__).parents[2] / "src" / "understudy" / "web" / "page"
COUNTS = SliceId("counts", 0)
VALUES: dict[str, Any] = {
    "slice": "counts[0]",
    "scheme": "deployed",
    "before": "none",
    "phase": "running",
    "predicted_s": {"deployed": 1.5},
    "predicted": {"replay": 0.5},
    "reason": "because",
}


def example(record: type[Happening]) -> Happening:
    """A record with some value in every field."""
    fields = {}
    for name, field in record.model_fields.items():
        kind = str(field.annotation)
        usual: Any = 1 if "int" in kind or "float" in kind or "bool" in kind else "x"
        if kind.startswith("tuple"):
            usual = ["counts[1]"]
        fields[name] = VALUES.get(name, usual)
    return record.model_validate(fields)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.kind)
def test_what_is_written_down_is_read_again(record: type[Happening]) -> None:
    made = example(record)
    assert made.text
    fields = json.loads(json.dumps(made.to_fields()))
    assert read(record.kind, made.text, fields) == made


def test_every_kind_has_one_record() -> None:
    assert len(BY_KIND) == len(RECORDS)
    assert set(SUMMED) <= set(BY_KIND)
    for kind, fields in SUMMED.items():
        assert set(fields) <= set(BY_KIND[kind].model_fields)


def test_a_slice_is_written_as_its_name() -> None:
    assert Assigned(slice=COUNTS, node="n", generation=1, reason="x").to_fields() == {
        "slice": "counts[0]",
        "node": "n",
        "generation": 1,
        "standing_in": False,
    }


@pytest.mark.parametrize(("kind", "fields"), [("of-tomorrow", {"a": 1}), ("recovered", {"slice": "no slice"})])
def test_what_cannot_be_read_is_unknown_and_breaks_nothing(kind: str, fields: dict[str, Any]) -> None:
    strange = Event(number=1, at=1.0, kind=kind, text="something", fields=fields)
    assert strange.what == Unknown(reason="something")
    assert strange.tone is (Tone.PLAIN if kind not in BY_KIND else Tone.GOOD)
    assert recoveries(Chronicle([strange])) == ()


def test_a_page_shows_a_kind_that_nobody_knows(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.until(lambda: cluster.delivered > 2)
    cluster.store.note(1.0, "of-tomorrow", "something new", {"slice": 3}, None)
    hub = Hub(cluster.manager.view, CollectorRegistry())
    assert any(event.kind == "of-tomorrow" for event in hub.everything().events)
    assert cluster.manager.report().verdict == "exact"


def test_the_page_knows_no_kind_that_does_not_exist() -> None:
    script = (PAGE / "timeline.js").read_text()
    lanes = re.search(r"LANE_OF = \{(.*?)\}", script, re.DOTALL)
    assert lanes is not None
    named = set(re.findall(r"(\w+):", lanes[1]))
    for name in ("BAD", "GOOD"):
        listed = re.search(rf"const {name} = new Set\(\[(.*?)\]\)", script)
        assert listed is not None
        named |= set(re.findall(r'"(\w+)"', listed[1]))
        tones = {kind for kind in re.findall(r'"(\w+)"', listed[1]) if kind in BY_KIND}
        assert all(BY_KIND[kind].tone is Tone(name.lower()) for kind in tones)
    assert named <= set(BY_KIND)


def test_a_recovery_is_told_once_for_report_and_page() -> None:
    steps = Steps(deploy=0.5, replay=0.25, replayed=3, done_at=14.0)
    made = Recovered(slice=COUNTS, generation=2, **steps.model_dump())
    event = Event(number=1, at=14.0, kind=made.kind, text=made.text, fields=made.to_fields())
    (one,), (shown,) = recoveries(Chronicle([event])), past_recoveries([event])
    assert (shown.slice, shown.total_s, shown.replayed) == (str(one.slice), one.actual_s, one.replayed)
    assert shown.steps == {name: seconds for name, seconds in one.steps.items() if seconds}
