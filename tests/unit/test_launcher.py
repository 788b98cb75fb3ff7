"""The launcher beside a manager that hangs or fails, and what it does for those it has frozen."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from tests.builders import word_count

from understudy.errors import InvalidInput, Unavailable
from understudy.model.config import DEFAULTS
from understudy.model.faults import Fault
from understudy.model.run import RunSpec
from understudy.runtime import faults
from understudy.runtime.home import Home
from understudy.runtime.launcher import Launcher
from understudy.runtime.manager_restarts import Measure, Vigil
from understudy.runtime.prepare import check, prepare
from understudy.runtime.processes import Child, spawn

CALM_S = DEFAULTS.manager.calm_s
HUNG_S = DEFAULTS.manager.hung_s
MAX_RESTARTS = DEFAULTS.manager.max_restarts
START_S = DEFAULTS.manager.start_s


def beats(vigil: Vigil, begin: float, seconds: float, **seen: Any) -> list[Measure]:
    """One look a second."""
    usual = {"exit_code": None, "answers": True}
    return [vigil.judge(begin + second, **(usual | seen)) for second in range(1, round(seconds) + 1)]


# -- the rules


def test_a_manager_that_answers_is_left_alone() -> None:
    assert set(beats(Vigil(0.0), 0.0, 100)) == {Measure.KEEP}


def test_one_that_stops_answering_is_replaced() -> None:
    vigil = Vigil(0.0)
    beats(vigil, 0.0, 10)
    found = beats(vigil, 10.0, HUNG_S + 1, answers=False)
    assert found[-1] is Measure.REPLACE
    assert set(found[:-1]) == {Measure.KEEP}


def test_one_that_reads_its_memory_gets_more_time() -> None:
    vigil = Vigil(0.0)
    beats(vigil, 0.0, 10)
    vigil.started(20.0)
    found = beats(vigil, 20.0, START_S + 1, answers=False)
    assert found[-1] is Measure.REPLACE
    assert set(found[:-1]) == {Measure.KEEP}


def test_one_that_was_killed_is_started_again_without_end() -> None:
    vigil = Vigil(0.0)
    assert {vigil.judge(0.1 * n, exit_code=-9, answers=False) for n in range(100)} == {Measure.RESTART}


def test_one_that_ends_with_an_error_before_it_ever_answered_would_do_so_again() -> None:
    assert Vigil(0.0).judge(1.0, exit_code=1, answers=False) is Measure.GIVE_UP


def test_errors_and_hangs_are_forgiven_a_few_times() -> None:
    vigil, now, found = Vigil(0.0), 0.0, []
    for _ in range(MAX_RESTARTS + 1):
        beats(vigil, now, 5)
        now += 10
        found.append(vigil.judge(now, exit_code=1, answers=False))
        vigil.started(now)
    assert found == [Measure.RESTART] * MAX_RESTARTS + [Measure.GIVE_UP]


def test_after_a_calm_time_they_no_longer_count() -> None:
    vigil, now = Vigil(0.0), 0.0
    for _ in range(3 * MAX_RESTARTS):
        beats(vigil, now, CALM_S + 1)
        now += CALM_S + 2
        assert vigil.judge(now, exit_code=1, answers=False) is Measure.RESTART
        vigil.started(now)


# -- processes


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[Launcher]:
    home = Home(tmp_path)
    prepare(home, RunSpec(id="r", app="app.py"))
    with Launcher(home, RunSpec(id="r", app="app.py"), 0) as made:
        yield made


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Child]:
    """A process as a manager or node is one: it ends with us."""
    made = sleep(tmp_path, "sleeper")
    yield made
    made.kill()


def sleep(directory: Path, name: str) -> Child:
    module = directory / "sleeper.py"
    # Once: a sleeper that starts while the file is written again would read an empty one, and end.
    if not module.exists():
        module.write_text("import sys\nprint('I sleep', flush=True)\nsys.stdin.read()\n")
    return spawn(name, "sleeper", [], directory / f"{name}.log", {"PYTHONPATH": str(directory)})


def test_a_manager_that_hangs_is_killed_and_started_again(
    launcher: Launcher, sleeper: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[bool] = []
    monkeypatch.setattr(launcher, "_start_manager", lambda: started.append(sleeper.alive))
    faults.freeze(sleeper.process.pid)
    launcher._vigil.judge(time.monotonic(), exit_code=None, answers=True)
    launcher._keep_manager(sleeper, answers=False)
    assert started == [], "not at the first answer that does not come"
    launcher._vigil.answered_at = time.monotonic() - HUNG_S - 1
    launcher._keep_manager(sleeper, answers=False)
    assert started == [False], "the one that hung was ended first, although it was frozen"


def test_a_manager_that_keeps_failing_ends_the_run_with_its_message(launcher: Launcher, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("raise SystemExit('the disk is on fire')\n")
    failed = spawn("manager", "wrong", [], tmp_path / "wrong.log", {"PYTHONPATH": str(tmp_path)})
    assert failed.process.wait(60) == 1
    launcher._vigil.ever_answered, launcher._vigil.failures = True, MAX_RESTARTS
    with pytest.raises(Unavailable, match="again and again") as caught:
        launcher._keep_manager(failed, answers=False)
    assert "the disk is on fire" in caught.value.why
    assert "--resume" in caught.value.fix


def test_a_frozen_manager_thaws_although_it_cannot_answer(
    launcher: Launcher, sleeper: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launcher used to thaw only after an answer, which a frozen manager never gives."""
    process = psutil.Process(sleeper.process.pid)
    launcher._lasting.freeze(sleeper.process.pid, time.monotonic(), 0.0)
    monkeypatch.setattr(launcher, "_start_manager", lambda: None)
    monkeypatch.setattr(launcher, "_start_node", lambda: None)
    monkeypatch.setattr(launcher._client, "state", lambda: None)
    turns = iter(range(3))

    def turn(_: object) -> None:
        if next(turns, None) is None:
            launcher.interrupt()

    monkeypatch.setattr(launcher, "_keep_alive", turn)
    with pytest.raises(KeyboardInterrupt):
        launcher.run()
    assert process.status() != psutil.STATUS_STOPPED
    assert not launcher._lasting.lasting


# -- directories of nodes


def test_a_name_belongs_to_one_process(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with home.hold_node("node-1"), home.hold_node("node-2"):
        with pytest.raises(Exception, match="there is a node node-1 already") as caught:
            home.hold_node("node-1")
        assert str(tmp_path / "nodes" / "node-1") in str(caught.value)
    home.hold_node("node-1").close()


def test_only_the_directories_of_processes_that_are_gone_are_removed(launcher: Launcher, sleeper: Child) -> None:
    home = launcher.home
    for name in ("node-1", "node-2"):
        (home.nodes / name / "checkpoint").mkdir(parents=True)
    with home.hold_node("node-1"):
        launcher._nodes = {"node-1": sleeper, "node-2": sleeper}
        launcher._sweep(None)
        assert sorted(path.name for path in home.nodes.iterdir() if path.is_dir()) == ["node-1"]
    state: Any = SimpleNamespace(lost=("node-1",))
    launcher._sweep(state)
    assert [path.name for path in home.nodes.iterdir() if path.is_dir()] == []


def test_a_killed_process_gives_its_directory_back(tmp_path: Path) -> None:
    """The lock is given back by the system, however the process ends."""
    home = Home(tmp_path)
    (home.nodes / "node-1").mkdir(parents=True)
    (tmp_path / "holder.py").write_text(
        "import sys\nfrom pathlib import Path\nfrom understudy.runtime.home import Home\n"
        "held = Home(Path(sys.argv[1])).hold_node('node-1')\nprint('held', flush=True)\nsys.stdin.read()\n"
    )
    output = tmp_path / "holder.log"
    path = {"PYTHONPATH": f"{tmp_path}:{':'.join(sys.path)}"}
    child = spawn("node-1", "holder", [str(tmp_path)], output, path)
    while "held" not in output.read_text():
        assert child.alive, output.read_text()
        time.sleep(0.01)
    assert home.sweep_nodes() == []
    child.process.send_signal(signal.SIGKILL)
    child.process.wait()
    assert home.sweep_nodes() == ["node-1"]


# -- faults of a domain


def test_a_fault_of_a_domain_hits_all_its_nodes_that_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed together, thawed together; the report is told once."""
    spec = RunSpec.of("r", "app.py", nodes=4, domains=2).changed(config={"cluster": {"stop_s": 0.1}})
    home = Home(tmp_path)
    prepare(home, spec)
    with Launcher(home, spec, 0) as launcher:
        monkeypatch.setattr("understudy.runtime.launcher.spawn", lambda name, *_: sleep(tmp_path, name))
        for _ in range(4):
            launcher._start_node()
        one, other = (launcher._victims(Fault.parse(f"kill:domain-{number}@1s")) for number in (1, 2))
        assert ([child.name for child in one], [child.name for child in other]) == (
            ["node-1", "node-3"],
            ["node-2", "node-4"],
        )
        launcher._cause(Fault.parse("freeze:domain-2@1s+60s"))
        while {psutil.Process(child.process.pid).status() for child in other} != {psutil.STATUS_STOPPED}:
            time.sleep(0.01)
        launcher._cause(Fault.parse("kill:domain-1@1s"))
        for child in one:
            child.process.wait()
        assert [child.alive for child in (*one, *other)] == [False, False, True, True]
        assert [fault.target for fault, _ in launcher._unsaid] == ["domain-2", "domain-1"]
        with pytest.raises(InvalidInput, match="domain-1 is not running"):
            launcher._cause(Fault.parse("kill:domain-1@2s"))


def test_a_node_that_vanishes_stands_still_until_it_is_given_up(launcher: Launcher, tmp_path: Path) -> None:
    """It closes no connection; its disk is gone at once."""
    first, second = (sleep(tmp_path, name) for name in ("node-1", "node-2"))
    launcher._nodes = {"node-1": first, "node-2": second}
    (launcher.home.node("node-1") / "checkpoint").mkdir(parents=True)
    launcher._cause(Fault.parse("vanish:node-1@1s"))
    while psutil.Process(first.process.pid).status() != psutil.STATUS_STOPPED:
        time.sleep(0.01)
    assert not launcher.home.node("node-1").exists()
    lost: Any = SimpleNamespace(lost=())
    launcher._bury(lost)
    assert first.alive
    lost.lost = ("node-1",)
    launcher._bury(lost)
    assert (first.alive, second.alive) == (False, True)
    launcher._cause(Fault.parse("vanish:node-2@2s"))
    launcher._end_all()
    assert not second.alive


def test_faults_name_nodes_standby_nodes_and_domains_of_the_run() -> None:
    spec = RunSpec.of("r", "app.py", nodes=2, domains=2, standby_nodes=1)
    for target in ("node-2", "node-3", "domain-2", "manager"):
        check(spec, word_count(), [Fault.parse(f"kill:{target}@1s")])
    for target in ("node-4", "domain-3"):
        with pytest.raises(InvalidInput, match=f"there is no {target}"):
            check(spec, word_count(), [Fault.parse(f"kill:{target}@1s")])
