"""One list of configured values: the file, the environment, the options and the documentation are made from it."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from tests.simulated.cluster import Cluster
from tests.snapshots import COUNTS, decided, healthy, replica
from typer.testing import CliRunner

from understudy.cli.main import app
from understudy.cli.run import run
from understudy.config import KEYS, Given, ambient, effective, from_environment, from_file, from_options
from understudy.config.keys import Kind, section_types
from understudy.config.sources import value_of
from understudy.config.text import as_data, as_toml, defaults_file, document
from understudy.control.cluster.detector import Detector, stalls
from understudy.control.cluster.instructions import FailRun
from understudy.control.cluster.snapshot import Snapshot
from understudy.control.schemes.objectives import Settings
from understudy.errors import InvalidInput
from understudy.model.config import DEFAULTS, Config, ProfileName, Section
from understudy.model.costs import EVERYTHING
from understudy.model.messages import Steps, Welcome
from understudy.model.run import SHORT, RunSpec
from understudy.model.snapshot import NodeView, Phase
from understudy.runtime.launcher import reachable
from understudy.runtime.manager_restarts import Measure, Vigil
from understudy.runtime.prepare import check
from understudy.stream.profile import PROFILES, chosen
from understudy.stream.settings import FIXED, ROCKSDB

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def file(text: str, name: str = "understudy.toml") -> Path:
    path = Path(name)
    path.write_text(text)
    return path


def of(text: str) -> Config:
    return effective(from_file(file(text))).config


def refusal(given: list[Given] | str) -> str:
    with pytest.raises(InvalidInput) as raised:
        effective(from_file(file(given)) if isinstance(given, str) else given)
    assert raised.value.why
    assert raised.value.fix
    return str(raised.value)


def printed(*arguments: str, code: int = 0, **environment: str) -> str:
    result = CliRunner().invoke(app, ["config", *arguments], env=environment)
    assert result.exit_code == code, result.output
    return result.output


# -- the sections


@pytest.mark.parametrize("name", KEYS)
def test_every_value_has_an_explanation_and_a_valid_default(name: str) -> None:
    key = KEYS[name]
    assert re.fullmatch(r"[A-Z].*\.", key.text), "a sentence"
    if key.default is None:
        assert key.unset, "what holds while it is not given"
        return
    assert value_of(effective([Given(key, key.default, "", "")]).config, key) == key.default


@pytest.mark.parametrize("name", KEYS)
def test_units_are_in_names(name: str) -> None:
    key = KEYS[name]
    assert (key.kind is Kind.TIME) == name.endswith("_s")
    assert (key.kind is Kind.SIZE) == name.endswith("_bytes")


@pytest.mark.parametrize("section", section_types().values(), ids=section_types())
def test_sections_cannot_be_changed(section: type[Section]) -> None:
    made = section()
    with pytest.raises(ValueError, match="frozen"):
        setattr(made, next(iter(section.model_fields)), None)


@pytest.mark.parametrize(
    ("written", "expected"), [("2", 2.0), ("0.5", 0.5), ('"2 s"', 2.0), ('"500 ms"', 0.5), ('"2"', 2.0)]
)
def test_times_are_read_alike_everywhere(written: str, expected: float) -> None:
    assert of(f"[detector]\nheartbeat_s = {written}\n").detector.heartbeat_s == expected
    text = written.strip('"')
    assert (
        effective(from_environment({"UNDERSTUDY_DETECTOR_HEARTBEAT_S": text})).config.detector.heartbeat_s == expected
    )
    assert effective(from_options({"--heartbeat": text})).config.detector.heartbeat_s == expected


@pytest.mark.parametrize(("written", "expected"), [("5000", 5000), ('"64 MiB"', 64 << 20), ('"2 GB"', 2 * 10**9)])
def test_sizes(written: str, expected: int) -> None:
    assert of(f"[retention]\njournal_bytes = {written}\n").retention.journal_bytes == expected


def test_spark_settings_may_be_written_with_and_without_quotes() -> None:
    expected = {"spark.executor.memory": "2g", "spark.executor.cores": "2", "spark.speculation": "true"}
    assert of("[jvm]\nspark.executor = {memory = '2g', cores = 2}\nspark.speculation = true\n").jvm.spark == expected
    quoted = '[jvm.spark]\n"spark.executor.memory" = "2g"\n"spark.executor.cores" = 2\n"spark.speculation" = true\n'
    assert of(quoted).jvm.spark == expected
    found = effective(from_environment({"UNDERSTUDY_JVM_SPARK": json.dumps(expected)}))
    assert found.config.jvm.spark == expected


# -- who wins


def test_later_sources_win(monkeypatch: pytest.MonkeyPatch) -> None:
    file("[cluster]\nnodes = 4\ndomains = 2\nreplace = true\n[detector]\nmisses = 20\n")
    monkeypatch.setenv("UNDERSTUDY_CLUSTER_NODES", "5")
    monkeypatch.setenv("UNDERSTUDY_CLUSTER_DOMAINS", "3")
    monkeypatch.setenv("UNDERSTUDY_DETECTOR_MISSES", "")
    found = effective([*ambient(Path(), None), *from_options({"--nodes": "6", "--replace": False, "--master": None})])
    cluster = found.config.cluster
    assert (cluster.nodes, cluster.domains, cluster.replace, cluster.master) == (6, 3, False, "local[1]")
    assert found.config.detector.misses == 20, "an empty variable was not given"
    names = ["cluster.nodes", "cluster.domains", "detector.misses", "cluster.master"]
    expected = ["--nodes", "UNDERSTUDY_CLUSTER_DOMAINS", "understudy.toml", "default"]
    assert [found.origin(name) for name in names] == expected
    assert found.given()["cluster"] == {"nodes": 6, "domains": 3, "replace": False}


def test_a_file_that_was_named_replaces_the_one_beside_the_application(monkeypatch: pytest.MonkeyPatch) -> None:
    file("[cluster]\nnodes = 4\ndomains = 2\n")
    other = file("[cluster]\nnodes = 5\n", "other.toml")
    assert effective(ambient(Path(), other)).config.cluster.domains == 0
    assert effective(ambient(Path(), other)).origin("cluster.nodes") == "other.toml"
    assert effective(ambient(Path("elsewhere"), None)).config == DEFAULTS


def test_variables_that_are_no_configuration_are_left_alone() -> None:
    others = {"UNDERSTUDY_TOKEN": "t", "UNDERSTUDY_CACHE": "c", "UNDERSTUDY_JVM_ARGUMENTS": "a", "HOME": "/"}
    assert from_environment(others) == []


# -- what is refused


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("[detector]\nheartbeats_s = 1\n", "detector.heartbeat_s"),
        ("[detektor]\nmisses = 1\n", "detector"),
        ("[detector]\nport = 1\n", "web.port"),
        ("heartbeat_s = 1\n", "detector.heartbeat_s"),
        ("detector = 1\n", "detector"),
        ("[web]\nhots = 'x'\n", "web.host"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(text: str, nearest: str) -> None:
    said = refusal(text)
    assert "understudy.toml" in said
    assert f"'{nearest}'" in said


def test_an_unknown_variable_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="UNDERSTUDY_DETECTOR_HEARTBEAT") as raised:
        from_environment({"UNDERSTUDY_DETECTOR_HEARTBEAT": "1"})
    assert "UNDERSTUDY_DETECTOR_HEARTBEAT_S" in raised.value.fix


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("detector.heartbeat_s", "soon"),
        ("detector.heartbeat_s", "61 s"),
        ("detector.heartbeat_s", "0"),
        ("detector.misses", "many"),
        ("detector.misses", "0"),
        ("detector.misses", "1.5"),
        ("detector.kind", "nose"),
        ("recovery.scheme", "magic"),
        ("cluster.replace", "perhaps"),
        ("controller.gain_share", "nan"),
        ("controller.gain_share", "inf"),
        ("web.port", "65536"),
        ("jvm.heap", "much"),
        ("jvm.spark", "spark.executor.memory=2g"),
        ("retention.journal_bytes", "1 kb"),
        ("retention.journal_bytes", "5 parsecs"),
    ],
)
def test_a_wrong_value_is_refused_from_every_origin(name: str, value: str) -> None:
    key = KEYS[name]
    from_a_file = refusal(f"[{key.section}]\n{key.key} = {json.dumps(value)}\n")
    assert f"{name} = " in from_a_file
    assert "understudy.toml" in from_a_file
    assert f"{key.variable}={value}" in refusal(from_environment({key.variable: value}))
    if key.option is not None:
        assert f"{key.option} {value}" in refusal(from_options({key.option: value}))


def test_a_wrong_value_is_refused_even_where_a_later_one_wins() -> None:
    path = file("[detector]\nmisses = 0\n")
    assert "understudy.toml" in refusal([*from_file(path), *from_options({"--misses": "3"})])


@pytest.mark.parametrize("written", ["misses = true", "misses = []", "heartbeat_s = false", "kind = 3"])
def test_values_of_another_type_are_refused(written: str) -> None:
    refusal(f"[detector]\n{written}\n")


@pytest.mark.parametrize("content", [b"[detector\n", b"\xff\xfe"])
def test_a_file_that_is_no_toml_is_refused(content: bytes) -> None:
    Path("understudy.toml").write_bytes(content)
    with pytest.raises(InvalidInput, match="cannot be read"):
        from_file(Path("understudy.toml"))


def test_a_file_that_is_not_there_is_refused() -> None:
    assert "--config" in printed("--config", "nowhere.toml", code=2)


@pytest.mark.parametrize(
    "options",
    [
        {"config": {"overload": {"behind_epochs": 1, "caught_up_epochs": 1}}},
        *({"config": {"jvm": {"spark": {name: "x"}}}} for name in sorted(FIXED)),
    ],
)
def test_values_that_contradict_each_other_are_refused(options: dict[str, Any]) -> None:
    topology: Any = None
    with pytest.raises(InvalidInput):
        check(RunSpec.of("r", "app.py", **options), topology, [])
    assert set(ROCKSDB) <= FIXED


@given(st.sampled_from(sorted(KEYS)), st.one_of(st.text(max_size=20), st.integers(), st.floats(), st.booleans()))
def test_no_value_is_a_traceback(name: str, raw: Any) -> None:
    key = KEYS[name]
    try:
        found = value_of(effective([Given(key, raw, "", "")]).config, key)
    except InvalidInput:
        return
    assert value_of(effective([Given(key, found, "", "")]).config, key) == found, "what was read is read again"


# -- what a run stores


def test_a_run_carries_its_configuration_to_its_nodes() -> None:
    spec = RunSpec.of("r", "app.py", nodes=2, scheme="deployed", config={"shipping": {"max_failures": 9}})
    welcome = Welcome.model_validate_json(Welcome(run=spec, home="h").model_dump_json())
    assert welcome.run == spec
    assert (welcome.run.config.shipping.max_failures, welcome.run.nodes, welcome.run.scheme) == (9, 2, "deployed")


def test_a_run_that_was_stored_with_short_names_is_read() -> None:
    stored = {"id": "r", "app": "a", "port": 0, "settings": {}, "nodes": 5, "master": "local[2]", "epochs": None}
    stored |= {"for_s": None, "fast": True, "replace": True, "backlog": 8, "heartbeat_s": 0.2, "misses": 9}
    stored |= {"wake_misses": 2, "reaction": "speculative", "detector": "benchmark", "primaries_first": False}
    stored |= {"profile": "full", "scheme": None, "domains": 2, "allow_faults": True, "token_to_read": True}
    stored |= {"standby_nodes": 1, "budget": 4}
    spec = RunSpec.model_validate(stored)
    for short, name in SHORT.items():
        assert value_of(spec.config, KEYS[name]) == stored[short]
        if hasattr(spec, short):
            assert getattr(spec, short) == stored[short]


def test_a_resumed_run_keeps_what_is_not_given_anew() -> None:
    stored = RunSpec.of("r", "a", nodes=5, config={"detector": {"stall_s": 3}, "web": {"host": "::"}})
    again = stored.resumed({"config": {"detector": {"misses": 7}}})
    assert again == stored.changed(misses=7)
    assert (again.nodes, again.config.detector.stall_s, again.config.web.host) == (5, 3, "::")


def test_the_backlog_follows_the_clock_unless_it_is_given() -> None:
    assert [RunSpec.of("r", "a", fast=fast).backlog for fast in (False, True)] == [100, 8]
    assert RunSpec.of("r", "a", fast=True, backlog=20).backlog == 20


def test_a_run_refuses_names_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="nods"):
        RunSpec.of("r", "a", nods=3)


# -- what it is good for


@pytest.mark.parametrize("name", KEYS)
def test_every_value_is_read_by_somebody(name: str) -> None:
    section, key = name.split(".")
    places = {"config": rf"\.{section}\.{key}\b", "limits": rf"(limits|section|jvm|kept)\.{key}\b"}
    source = ROOT / "src" / "understudy"
    others = [path for path in source.rglob("*.py") if path != source / "model" / "config.py"]
    used = [path for path in others if re.search("|".join(places.values()), path.read_text())]
    assert used, f"{name} would have no effect"


def test_decisions_go_by_the_configuration_of_the_run() -> None:
    def configured(snapshot: Snapshot, **sections: Any) -> Snapshot:
        return replace(snapshot, config=RunSpec.of("r", "a", config=sections).config)

    waiting = replace(healthy(), phase=Phase.GATHERING, nodes=(), waited_s=60.0)
    assert decided(waiting) == ()
    (ended,) = decided(configured(waiting, cluster={"start_s": 59}))
    assert isinstance(ended, FailRun)
    assert "59 s" in ended.failure.why


def test_the_manager_hands_the_configuration_to_its_decisions(tmp_path: Path) -> None:
    given = {"detector": {"stuck_s": 99}, "controller": {"every_s": 3}, "recovery": {"max_failures": 1}}
    manager = Cluster(tmp_path, config=given).manager
    seen = manager._observe()
    assert seen.config == manager.run.config
    assert (seen.detector.limits.stuck_s, seen.controller.every_s, seen.config.recovery.max_failures) == (99, 3, 1)


def test_a_detector_goes_by_its_section() -> None:
    node = NodeView("node-1", connected=True, ready=True, silent_s=2.0)
    assert not Detector().dead(node)
    assert Detector(DEFAULTS.detector.model_copy(update={"misses": 19})).dead(node)
    slow = replica(COUNTS, stalled_s=5.0, steps=Steps(done=True))
    assert not stalls(slow, DEFAULTS.detector)
    assert stalls(slow, DEFAULTS.detector.model_copy(update={"stall_s": 4.0}))


def test_the_controller_goes_by_its_section() -> None:
    assert Settings.of(DEFAULTS.controller, EVERYTHING) == Settings()
    section = DEFAULTS.controller.model_copy(update={"cool_down_s": 7.0, "margin_limit": 3.0})
    changed = Settings.of(section, EVERYTHING)
    assert (changed.cool_down_s, changed.caution.limit, changed.every_s) == (7.0, 3.0, 0.5)


def test_the_launcher_goes_by_its_section() -> None:
    vigil = Vigil(0.0, DEFAULTS.manager.model_copy(update={"hung_s": 3.0}))
    assert vigil.judge(1.0, exit_code=None, answers=True) is Measure.KEEP
    assert vigil.judge(5.0, exit_code=None, answers=False) is Measure.REPLACE


@pytest.mark.parametrize(
    ("host", "called"),
    [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("::1", "[::1]"), ("box", "box")],
)
def test_a_manager_that_listens_everywhere_is_called_by_loopback(host: str, called: str) -> None:
    assert reachable(host) == called


# -- what is shown


def test_the_effective_configuration_is_printed_with_origins() -> None:
    file("[detector]\nmisses = 20\n")
    text = printed(UNDERSTUDY_CLUSTER_NODES="5")
    assert re.search(r"^misses = 20 +# understudy\.toml$", text, re.MULTILINE)
    assert re.search(r"^nodes = 5 +# UNDERSTUDY_CLUSTER_NODES$", text, re.MULTILINE)
    assert re.search(r"^port = 8787 +# default$", text, re.MULTILINE)
    file(text)
    assert of(text).cluster.nodes == 5, "it can be read again"


def test_the_configuration_is_printed_as_json() -> None:
    file("[recovery]\nscheme = 'deployed'\n")
    found = json.loads(printed("--json"))
    assert found["recovery"]["scheme"] == {"value": "deployed", "origin": "understudy.toml"}
    assert found["recovery"]["reaction"] == {"value": None, "origin": "default"}
    assert {f"{section}.{key}" for section, keys in found.items() for key in keys} == set(KEYS)
    assert json.loads(printed("--json", "--defaults")) == json.loads(json.dumps(as_data(effective([]))))


def test_the_application_s_directory_is_looked_at() -> None:
    Path("apps").mkdir()
    file("[cluster]\nnodes = 7\n", "apps/understudy.toml")
    assert "nodes = 7" in printed("apps/app.py")
    assert "nodes = 3" in printed()


def test_the_file_to_start_from_holds_the_defaults() -> None:
    text = printed("--defaults")
    assert text == defaults_file()
    assert of(text) == DEFAULTS, "all values are commented out"
    lines = [re.sub(r"^#(\w+ = )", r"\1", line) for line in text.splitlines()]
    tables = tomllib.loads("\n".join(lines))
    assert {f"{section}.{key}" for section, keys in tables.items() for key in keys} == set(KEYS)
    config = of("\n".join(lines))
    assert all(value_of(config, key) == key.default for key in KEYS.values() if key.default is not None)


def test_what_is_printed_is_read_again() -> None:
    spark = {"spark.a": 'a "quoted" \\ value', "spark.b": "ä\n"}
    config = RunSpec.of("r", "a", config={"jvm": {"spark": spark, "heap": "3g"}, "cluster": {"replace": True}}).config
    every = [Given(key, value_of(config, key), "", "") for key in KEYS.values() if value_of(config, key) is not None]
    assert of(as_toml(effective(every))) == config


def test_the_documentation_is_that_of_the_sections() -> None:
    stored = (ROOT / "docs" / "configuration.md").read_text()
    assert stored == document(), "run 'python -m understudy.config > docs/configuration.md'"


def test_options_and_sections_agree() -> None:
    command = typer.main.get_command(app).commands["run"]  # type: ignore[attr-defined]
    options = {parameter.opts[0]: parameter for parameter in command.params if parameter.opts[0].startswith("--")}
    configured = {key.option: key for key in KEYS.values() if key.option is not None}
    others = {
        "--epochs",
        "--for",
        "--fast",
        "--home",
        "--resume",
        "--fault",
        "--set",
        "--config",
        "--report",
        "--plan",
        "--check",
    }
    assert set(options) == configured.keys() | others | {"--quiet", "--json"}
    assert {name: options[name].help for name in configured} == {name: key.text for name, key in configured.items()}
    assert all(options[name].default is None for name in configured), "what was not given is None"
    source = inspect.getsource(run)
    assert all(f'"{name}": ' in source for name in configured), "every option is handed on"


def test_every_profile_has_its_name() -> None:
    assert set(PROFILES) == set(ProfileName)
    assert chosen(DEFAULTS.jvm) is PROFILES["quick"]
    assert chosen(DEFAULTS.jvm.model_copy(update={"heap": "3g"})).heap == "3g"
