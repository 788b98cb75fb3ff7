"""What a node's JVM is told, before any JVM starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from understudy.stream import launch
from understudy.stream.java import Java
from understudy.stream.overlay import Overlay
from understudy.stream.profile import FULL, QUICK
from understudy.stream.settings import settings


@pytest.fixture
def overlay(tmp_path: Path) -> Overlay:
    return Overlay(tmp_path, ("/a.jar", "/b.jar"), ("--add-opens=x",))


def test_without_an_archive_nothing_is_shared(overlay: Overlay) -> None:
    chosen = launch.arguments(overlay, QUICK, {}, Path("/t"))
    assert not [option for option in chosen if "Shared" in option or "Archive" in option]


def test_an_archive_is_used_but_never_insisted_on(overlay: Overlay) -> None:
    overlay.archive.touch()
    chosen = launch.arguments(overlay, QUICK, {}, Path("/t"))
    assert f"-XX:SharedArchiveFile={overlay.archive}" in chosen
    assert "-Xshare:auto" in chosen


def test_only_the_quick_profile_gives_up_the_optimising_compiler(overlay: Overlay) -> None:
    level = "-XX:TieredStopAtLevel=1"
    assert level in launch.arguments(overlay, QUICK, {}, Path("/t"))
    assert level not in launch.arguments(overlay, FULL, {}, Path("/t"))


def test_what_users_add_comes_after_what_the_archive_knows(overlay: Overlay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", "/conf")
    extra = {
        "spark.driver.extraClassPath": "/mine.jar",
        "spark.driver.extraJavaOptions": '-Da="b c" -Dd=e',
        "spark.driver.memory": "3g",
    }
    chosen = launch.arguments(overlay, QUICK, extra, Path("/t"))
    assert chosen[-1].split(os.pathsep)[:3] == ["/a.jar", "/b.jar", "/mine.jar"]
    assert "/conf" in chosen[-1].split(os.pathsep)
    assert {"-Da=b c", "-Dd=e", "-Xmx3g"} <= set(chosen)


def test_arguments_with_blanks_quotes_and_backslashes_survive_the_file() -> None:
    assert launch.argument_file(['-Da=b "c" \\d', "-cp"]) == '"-Da=b \\"c\\" \\\\d"\n"-cp"\n'


def test_the_environment_is_given_back(overlay: Overlay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/before")
    monkeypatch.delenv("UNDERSTUDY_JAVA", raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", "/mine")
    with launch.environment(Java(Path("/java"), "17"), overlay, ["-Xmx1g"], local=True):
        assert os.environ["SPARK_HOME"] == str(overlay.path)
        assert Path(os.environ["UNDERSTUDY_JVM_ARGUMENTS"]).read_text() == '"-Xmx1g"\n'
        assert os.environ["PYSPARK_PYTHON"] == "/mine"
    assert os.environ["SPARK_HOME"] == "/before"
    assert "UNDERSTUDY_JAVA" not in os.environ


def test_a_local_session_stays_on_loopback_and_a_cluster_is_left_to_choose(tmp_path: Path) -> None:
    local = settings("n", "local[2]", QUICK, tmp_path, {})
    assert local["spark.driver.host"] == local["spark.driver.bindAddress"] == "127.0.0.1"
    assert "spark.driver.host" not in settings("n", "spark://x:7077", QUICK, tmp_path, {})


def test_the_caller_has_the_last_word(tmp_path: Path) -> None:
    chosen = settings("n", "local[2]", QUICK, tmp_path, {"spark.sql.shuffle.partitions": "4"})
    assert chosen["spark.sql.shuffle.partitions"] == "4"
