"""Every mistake is found before Spark starts; the error names the operator, the reason and the fix."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from tests.builders import Input, Output, one, stateful, two, word_count

from understudy.control.application.fusion import lay_out
from understudy.errors import InvalidInput
from understudy.model.faults import Fault, FaultKind
from understudy.model.names import SliceId, valid_name
from understudy.model.recovery import Recovery
from understudy.model.topology import Topology, seconds
from understudy.sinks import JsonLines, Parquet


def base(name: str = "app", epoch: str | float = "1 second") -> Topology:
    app = Topology(name, epoch)
    app.source("in", Input())
    app.operator("in", name="good")(one)
    app.sink("out", "good", Output())
    return app


def with_operator(*inputs: Any, function: Callable[..., Any] = one, **options: Any) -> Callable[[], Topology]:
    def make() -> Topology:
        app = base()
        app.operator(*(inputs or ("in",)), **({"name": "bad"} | options))(function)
        return app

    return make


def cycle() -> Topology:
    app = base()
    app.operator("bad", name="worse")(one)
    app.operator("worse", name="bad")(one)
    return app


def lacking(what: str) -> Callable[[], Topology]:
    def make() -> Topology:
        app = base()
        getattr(app, what).clear()
        return app

    return make


def with_sink(name: str, stream: str) -> Callable[[], Topology]:
    def make() -> Topology:
        app = base()
        app.sink(name, stream, Output())
        return app

    return make


def with_source(name: str, slices: Any = 1) -> Callable[[], Topology]:
    def make() -> Topology:
        app = base()
        app.source(name, Input(), slices=slices)
        return app

    return make


MISTAKES: dict[str, tuple[Callable[[], Topology], str]] = {
    "cycle": (cycle, "bad"),
    "reads itself": (with_operator("bad"), "bad"),
    "unknown input": (with_operator("nowhere"), "bad"),
    "reads a sink": (with_operator("out"), "bad"),
    "a function as input": (with_operator(one), "bad"),
    "sink of nothing": (with_sink("bad", "nowhere"), "bad"),
    "sink of a sink": (with_sink("bad", "out"), "bad"),
    "operator twice": (with_operator(name="good"), "good"),
    "operator like source": (with_operator(name="in"), "in"),
    "sink like operator": (with_sink("good", "in"), "good"),
    "no inputs": (lambda: _operator_without_inputs(), "bad"),
    "too few parameters": (with_operator("in", "good"), "bad"),
    "too many parameters": (with_operator("in", function=two), "bad"),
    "keyword only": (with_operator("in", function=lambda *, rows: rows), "bad"),
    "no such output mode": (with_operator(output_mode="never"), "bad"),
    "no such input": (with_operator(input="both"), "bad"),
    "no such order": (with_operator(order="random"), "bad"),
    "strict without time": (with_operator(order="strict"), "bad"),
    "no slices": (with_operator(slices=0), "bad"),
    "negative slices": (with_operator(slices=-2), "bad"),
    "slices as text": (with_operator(slices="2"), "bad"),
    "half a slice": (with_operator(slices=1.5), "bad"),
    "source without slices": (with_source("bad", 0), "bad"),
    "name with a blank": (with_operator(name="my words"), "my words"),
    "name with a slash": (with_operator(name="a/b"), "a/b"),
    "lambda": (with_operator(name=None, function=lambda rows: rows), "<lambda>"),
    "source with a bad name": (with_source("1st"), "1st"),
    "sink with a bad name": (with_sink("", "in"), "''"),
    "no sink": (lacking("sinks"), "app"),
    "no source": (lacking("sources"), "app"),
    "nothing at all": (lambda: Topology("app"), "app"),
    "name of the topology": (lambda: base("my app"), "my app"),
    "no time": (lambda: base(epoch=0), "app"),
    "negative time": (lambda: base(epoch=-1.0), "app"),
    "not a time": (lambda: base(epoch=math.nan), "app"),
    "endless time": (lambda: base(epoch=math.inf), "app"),
}


def _operator_without_inputs() -> Topology:
    app = base()
    app.operator(name="bad")(lambda: None)
    return app


@pytest.mark.parametrize(("make", "name"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_named_with_reason_and_fix(make: Callable[[], Topology], name: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        make().validate()
    assert name in raised.value.what
    assert raised.value.why
    assert raised.value.fix
    assert f"why: {raised.value.why}" in str(raised.value)


def test_state_in_several_slices_needs_a_key() -> None:
    app = base()
    app.operator("in", name="bad", slices=2)(one)
    app.sink("more", "bad", Output())
    app.validate()
    assert lay_out(app, stateful(of=app))["bad"].slices == 2
    with pytest.raises(InvalidInput, match="bad") as raised:
        lay_out(app, stateful("bad", of=app))
    assert "key" in raised.value.fix


def test_a_right_topology_passes() -> None:
    app = word_count()
    app.validate()
    assert [operator.name for operator in app.in_order()] == ["words", "counts"]
    assert app.operators[0]("rows") == "rows", "an operator can still be called"


def test_operators_come_after_those_they_read() -> None:
    app = Topology("app")
    app.source("in", Input())
    app.operator("b", "a", name="c")(two)
    app.operator("a", name="b")(one)
    app.operator("in", name="a")(one)
    app.sink("out", "c", Output())
    app.validate()
    assert [operator.name for operator in app.in_order()] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 second", 1.0),
        ("500 ms", 0.5),
        ("250ms", 0.25),
        ("2 s", 2.0),
        (" 1.5 minutes ", 90.0),
        ("1 min", 60.0),
        ("3 m", 180.0),
        ("10 milliseconds", 0.01),
        (2, 2.0),
        (0.25, 0.25),
    ],
)
def test_durations(text: str | float, expected: float) -> None:
    assert seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "second", "1", "-1 s", "1 hour of work", "1 fortnight", "one second", "1,5 s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(InvalidInput, match="duration") as raised:
        seconds(text)
    assert raised.value.fix


@pytest.mark.parametrize("options", [{"ship_every": 0}, {"ship_every": -1}, {"scheme": "magic"}, {"guarantee": "some"}])
def test_a_recovery_that_means_nothing(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as raised:
        Recovery(**options)
    assert str(next(iter(options.values()))) in raised.value.what


@pytest.mark.parametrize(
    ("name", "valid"),
    [("a", True), ("node-1", True), ("a_b", True), ("1a", False), ("", False), ("a b", False), ("ä", False)],
)
def test_names(name: str, valid: bool) -> None:
    assert valid_name(name) is valid
    if valid:
        assert SliceId.parse(f"{name}[12]") == SliceId(name, 12)
        assert str(SliceId(name, 12)) == f"{name}[12]"


@pytest.mark.parametrize("text", ["counts", "counts[]", "counts[-1]", "counts[1]x", "[1]", "a b[1]", ""])
def test_what_is_no_slice(text: str) -> None:
    with pytest.raises(InvalidInput, match="slice"):
        SliceId.parse(text)


def test_slices_sort_by_number() -> None:
    assert sorted([SliceId("a", 10), SliceId("b", 0), SliceId("a", 2)]) == [
        SliceId("a", 2),
        SliceId("a", 10),
        SliceId("b", 0),
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("kill:node-2@10s", (FaultKind.KILL, "node-2", 10.0, None, 0.0)),
        ("kill:node-2@0.5s", (FaultKind.KILL, "node-2", 0.5, None, 0.0)),
        ("kill:node-2@epoch12", (FaultKind.KILL, "node-2", None, 12, 0.0)),
        ("vanish:node-2@10s", (FaultKind.VANISH, "node-2", 10.0, None, 0.0)),
        ("vanish:domain-1@epoch3", (FaultKind.VANISH, "domain-1", None, 3, 0.0)),
        ("kill:manager@5s", (FaultKind.KILL, "manager", 5.0, None, 0.0)),
        ("freeze:node-1@8s+3s", (FaultKind.FREEZE, "node-1", 8.0, None, 3.0)),
        ("freeze:node-1@epoch0+1.5s", (FaultKind.FREEZE, "node-1", None, 0, 1.5)),
    ],
)
def test_faults(spec: str, expected: tuple[Any, ...]) -> None:
    fault = Fault.parse(spec)
    assert (fault.kind, fault.target, fault.at_s, fault.at_epoch, fault.length_s) == expected
    assert fault.spec == spec
    if fault.at_s is not None:
        assert not fault.due(fault.at_s - 0.01, 10**6)
        assert fault.due(fault.at_s, -1)
    elif fault.at_epoch is not None:
        assert not fault.due(10**6, fault.at_epoch - 1)
        assert fault.due(0.0, fault.at_epoch)


@pytest.mark.parametrize(
    "spec",
    [
        *("", "kill", "kill:node-1", "kill:node-1@", "kill:node-1@10", "kill:node-1@10s+3s", "freeze:node-1@10s"),
        *("melt:node-1@1s", "kill:node-1@epoch", "kill:node-1@-1s", "freeze:node-1@1s+", "kill:node-1@1s ", "kill:@1s"),
    ],
)
def test_what_is_no_fault(spec: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        Fault.parse(spec)
    assert spec in raised.value.what
    assert "kill:NODE@10s" in raised.value.fix


@pytest.mark.parametrize("paths", [("out", "out"), ("out", "./out/"), ("a/b", "a/x/../b"), ("/tmp/x", "/tmp/x")])
def test_two_sinks_in_one_directory_are_refused(paths: tuple[str, str]) -> None:
    app = word_count()
    for name, path in zip(("first", "second"), paths, strict=True):
        app.sink(name, "counts", JsonLines(path) if name == "first" else Parquet(path))
    with pytest.raises(InvalidInput, match="sinks 'first' and 'second' both write to"):
        app.validate()


def test_sinks_in_directories_of_their_own_are_fine() -> None:
    app = word_count()
    for name, path in (("first", "out"), ("second", "out/second")):
        app.sink(name, "counts", JsonLines(path))
    app.validate()


def test_a_hot_standby_of_a_state_that_a_replay_would_not_meet_is_refused() -> None:
    app = Topology("dice")
    rows = app.source("rows", Input())
    app.operator(rows, name="rolls", deterministic=False, recovery=Recovery(scheme="passive_standby_hot"))(one)
    app.sink("out", "rolls", Output())
    app.validate()
    assert lay_out(app, {"rolls": False})["rolls"].recovery.scheme == "passive_standby_hot"
    with pytest.raises(InvalidInput, match="keeps state, is not deterministic and asks for passive_standby_hot"):
        lay_out(app, {"rolls": True})
