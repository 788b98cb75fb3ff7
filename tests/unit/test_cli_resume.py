"""A run that goes on is the run that was stopped: its options hold, and its application is the same."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from understudy import settings
from understudy.cli.main import app
from understudy.coordination.sqlite import SqliteStore
from understudy.errors import InvalidInput
from understudy.model.fingerprint import of_application
from understudy.model.messages import Failure
from understudy.model.report import Report
from understudy.model.run import RunSpec
from understudy.runtime import launcher, prepare
from understudy.runtime.application import load
from understudy.runtime.home import Home
from understudy.runtime.prepare import versions

APP = """import understudy as us

def make(epoch, slice_index, rows, rng):
    return None

app = us.Topology("resumable", epoch=us.setting("epoch", "1 second"))
rate, seed = us.setting("rate", 100), us.setting("seed", 0)
rows = app.source("rows", us.sources.Generator(make, "user long, shop long", rate=rate, seed=seed))

@app.operator(rows, key="user", slices=2, output_mode="update")
def counts(frame):
    return frame

app.sink("out", counts, us.sinks.Parquet("out"))
"""
OPTIONS = ["--nodes", "5", "--set", "rate=50", "--set", "seed=7", "--scheme", "passive_standby_hot", "--replace"]
OPTIONS += [
    "--profile",
    "full",
    "--domains",
    "2",
    "--reaction",
    "speculative",
    "--epochs",
    "40",
    "--heartbeat",
    "200ms",
]
OPTIONS += ["--misses", "9", "--port", "0", "--detector", "benchmark", "--master", "local[2]", "--allow-faults"]


class Stopped(launcher.Launcher):
    """Starts nothing; somebody presses Ctrl-C at once."""

    specs: list[RunSpec] = []  # noqa: RUF012 - what the last commands would have run

    def run(self) -> Any:
        self.specs.append(self.spec)
        raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[RunSpec]]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(launcher, "Launcher", Stopped)
    monkeypatch.chdir(tmp_path)
    Stopped.specs = []
    yield Stopped.specs
    for name in [name for name in sys.modules if name.startswith(("application_", "wrong_"))]:
        del sys.modules[name]
    settings.give({})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my resumable app.py"
    path.write_text(APP)
    return path


def call(*arguments: str, code: int = 130) -> str:
    result = CliRunner().invoke(app, ["run", *arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def let_data_flow(home: Path, path: Path, **values: str) -> None:
    """What the manager writes down when it starts."""
    store = SqliteStore(home / "manager.db")
    store.keep({"fingerprint": of_application(load(path, values), versions())})
    store.close()


def test_the_command_printed_goes_on_with_the_same_run(file: Path, stopped: list[RunSpec]) -> None:
    printed = call(str(file), *OPTIONS, "--home", "a home")
    command = shlex.split(printed[printed.index("understudy run") :])
    let_data_flow(Path("a home"), file, rate="50", seed="7")
    call(*command[2:])
    assert stopped[0] == stopped[1]
    assert stopped[0].nodes == 5
    assert stopped[0].settings == {"rate": "50", "seed": "7"}


def test_the_newest_run_is_found_with_its_settings(file: Path, stopped: list[RunSpec]) -> None:
    call(str(file), *OPTIONS)
    call(str(file), "--resume")
    assert stopped[0] == stopped[1]


def test_options_given_anew_replace_those_stored(file: Path, stopped: list[RunSpec]) -> None:
    call(str(file), *OPTIONS, "--home", "home")
    call(str(file), "--home", "home", "--resume", "--nodes", "2", "--no-replace", "--for", "30s", "--set", "seed=9")
    first, second = stopped
    changed = {"nodes": 2, "replace": False, "epochs": None, "for_s": 30.0, "settings": {"rate": "50", "seed": "9"}}
    assert second == first.changed(**changed)


def test_a_default_that_is_written_down_counts_as_given(file: Path, stopped: list[RunSpec]) -> None:
    call(str(file), *OPTIONS, "--home", "home")
    call(str(file), "--home", "home", "--resume", "--nodes", "3", "--profile", "quick")
    assert (stopped[1].nodes, stopped[1].profile, stopped[1].domains) == (3, "quick", 2)


@pytest.mark.parametrize("broken", ["check_port", "reopen"])
def test_a_run_that_is_refused_leaves_its_home_unlocked(
    file: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def refuse(*_: object) -> None:
        raise InvalidInput("no", why="no", fix="no")

    call(str(file), *OPTIONS, "--home", "home")
    monkeypatch.setattr(prepare, broken, refuse)
    result = CliRunner().invoke(app, ["run", str(file), "--home", "home", "--resume"])
    assert result.exit_code == 2
    Home(Path("home")).lock().close()
    assert result.exception is not None, "it holds the frames that held the lock"


def test_stored_options_are_checked_together_with_new_ones(file: Path) -> None:
    call(str(file), *OPTIONS, "--home", "home")
    assert "--domains 2" in call(str(file), "--home", "home", "--resume", "--nodes", "1", code=2)


def test_a_run_is_configured_by_file_environment_and_options(
    file: Path, stopped: list[RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("understudy.toml").write_text("[cluster]\nnodes = 4\ndomains = 2\n[detector]\nmisses = 20\n")
    monkeypatch.setenv("UNDERSTUDY_CLUSTER_DOMAINS", "3")
    call(str(file), "--port", "0", "--misses", "7")
    config = stopped[0].config
    assert (config.cluster.nodes, config.cluster.domains, config.detector.misses) == (4, 3, 7)


def test_a_resumed_run_holds_its_configuration(
    file: Path, stopped: list[RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("understudy.toml").write_text("[cluster]\nnodes = 4\n[shipping]\nmax_failures = 9\n")
    call(str(file), "--port", "0", "--home", "home")
    Path("understudy.toml").write_text("[cluster]\nnodes = 2\n")
    monkeypatch.setenv("UNDERSTUDY_CLUSTER_NODES", "1")
    call(str(file), "--home", "home", "--resume")
    assert stopped[1] == stopped[0], "neither the file beside the application nor the environment count"
    call(str(file), "--home", "home", "--resume", "--config", "understudy.toml", "--misses", "7")
    assert stopped[2] == stopped[0].changed(nodes=2, misses=7)
    call(str(file), "--home", "home", "--resume")
    assert stopped[3] == stopped[2], "what was given anew is stored"


def test_a_resumed_run_checks_what_it_is_given(file: Path) -> None:
    call(str(file), "--port", "0", "--home", "home")
    assert "--misses none" in call(str(file), "--home", "home", "--resume", "--misses", "none", code=2)
    assert "--config" in call(str(file), "--home", "home", "--resume", "--config", "nowhere.toml", code=2)


CHANGES = {
    "fewer slices": (("slices=2", "slices=1"), "operator 'counts' has slices=1, and had 2"),
    "another key": (('key="user"', 'key="shop"'), "operator 'counts' has key=shop, and had user"),
    "another mode": (('"update"', '"append"'), "output_mode=append, and had update"),
    "a renamed sink": (('"out", counts', '"result", counts'), "sink 'out' is gone"),
    "another path": (('Parquet("out")', 'Parquet("more")'), "sink 'out' has path=more, and had out"),
    "another epoch": (('"1 second"', '"2 seconds"'), "epoch=2.0, and had 1.0"),
    "another rate": (('"rate", 100', '"rate", 10'), "source 'rows' has rate=10, and had 100"),
    "another schema": (("shop long", "shop int"), "source 'rows' has schema="),
}


@pytest.mark.parametrize(("change", "said"), CHANGES.values(), ids=CHANGES.keys())
def test_an_application_that_changed_is_refused_by_name(
    change: tuple[str, str], said: str, file: Path, stopped: list[RunSpec]
) -> None:
    call(str(file), "--home", "home", "--port", "0")
    let_data_flow(Path("home"), file)
    file.write_text(APP.replace(*change))
    output = call(str(file), "--home", "home", "--resume", code=2)
    assert said in output
    assert "another --home" in output
    assert len(stopped) == 1, "nothing was started"
    file.write_text(APP)
    call(str(file), "--home", "home", "--resume")


def test_a_setting_that_changes_the_application_is_refused_by_name(file: Path) -> None:
    call(str(file), "--home", "home", "--port", "0")
    let_data_flow(Path("home"), file)
    assert "seed=3, and had 0" in call(str(file), "--home", "home", "--resume", "--set", "seed=3", code=2)


def test_a_run_whose_data_never_flowed_goes_on_with_any_application(file: Path) -> None:
    call(str(file), "--home", "home", "--port", "0")
    file.write_text(APP.replace("slices=2", "slices=1"))
    call(str(file), "--home", "home", "--resume")


def test_a_run_of_a_version_that_kept_no_record_is_not_guessed_at(file: Path) -> None:
    call(str(file), "--home", "home", "--port", "0")
    store = SqliteStore(Path("home") / "manager.db")
    store.keep({"operators": {}})
    store.close()
    assert "older version" in call(str(file), "--home", "home", "--resume", code=2)


def test_a_home_that_is_not_there_is_not_made(file: Path) -> None:
    call(str(file), "--home", "home", "--resume", code=2)
    assert not Path("home").exists()
    call(str(file), "--home", "home", "--port", "0")


class Refused(Stopped):
    """Spark finds a mistake before data flows."""

    flowed = False

    def run(self) -> Report:
        self.begun = self.flowed
        failure = Failure(what="operator 'counts' groups by shop", why="it parts", fix="give it slices=1", final=True)
        costs = {"bytes_received": 0, "bytes_pulled": 0, "bytes_published": 0, "bytes_shipped": 0}
        return Report.model_validate(
            {"app": "a", "run": "r", "epoch_s": 1.0, "epochs": 0, "elapsed_s": 0.0, "nodes": (), "slices": {}}
            | {"faults": (), "transitions": (), "decisions": (), "sinks": {}, "diverged": (), "verdict": "failed"}
            | {"failure": failure, "costs": {"cpu_s": {}, "peak_memory_bytes": {}, **costs}}
        )


@pytest.mark.parametrize(("begun", "code"), [(False, 2), (True, 1)])
def test_a_mistake_that_spark_finds_is_an_error_and_no_failed_run(
    begun: bool, code: int, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "Launcher", Refused)
    monkeypatch.setattr(Refused, "flowed", begun)
    output = call(str(file), "--home", "home", "--port", "0", code=code)
    assert "groups by shop" in output
    assert "fix: give it slices=1" in output
    assert ("error operator" in output) is not begun


def test_a_check_starts_nothing_and_finds_what_a_run_would(file: Path, stopped: list[RunSpec]) -> None:
    assert "would run on 2 nodes" in call(str(file), "--check", "--nodes", "2", "--home", "home", code=0)
    assert not Path("home").exists()
    assert "--domains 2" in call(str(file), "--check", "--nodes", "1", "--domains", "2", code=2)
    call(str(file), "--home", "home", "--port", "0")
    let_data_flow(Path("home"), file)
    call(str(file), "--home", "home", "--resume", "--check", code=0)
    file.write_text(APP.replace("slices=2", "slices=1"))
    assert "slices=1, and had 2" in call(str(file), "--home", "home", "--resume", "--check", code=2)
    assert len(stopped) == 1
