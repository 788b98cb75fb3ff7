"""The cached Spark home: made once, raced safely, removed when nobody wants it."""

from __future__ import annotations

import json
import os
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from understudy.stream import overlay
from understudy.stream.java import Java


@pytest.fixture
def pyspark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "site" / "pyspark"
    for folder in ("bin", "sbin", "jars"):
        (home / folder).mkdir(parents=True)
    for script in ("spark-submit", "spark-class"):
        (home / "bin" / script).write_text("theirs")
    for name, entries in {"plain.jar": ["a"], "signed.jar": ["a", "META-INF/X.SF", "META-INF/X.DSA"]}.items():
        with zipfile.ZipFile(home / "jars" / name, "w") as jar:
            for entry in entries:
                jar.writestr(entry, entry)
    monkeypatch.setattr(overlay, "pyspark_home", lambda: home)
    monkeypatch.setattr(overlay, "_module_options", lambda *_: ["--add-opens=x"])
    return home


@pytest.fixture
def java(tmp_path: Path) -> Java:
    (tmp_path / "java").mkdir()
    return Java(tmp_path / "java", "17.0.1")


def test_workers_find_no_zip_and_submit_is_ours(pyspark: Path, java: Java, tmp_path: Path) -> None:
    made = overlay.prepare(java, tmp_path / "cache")
    assert list((made.path / "python" / "lib").iterdir()) == []
    assert "SparkSubmit" in (made.path / "bin" / "spark-submit").read_text()
    assert os.access(made.path / "bin" / "spark-submit", os.X_OK)
    assert (made.path / "bin" / "spark-class").read_text() == "theirs"
    assert (made.path / "jars" / "plain.jar").exists()
    assert made.options == ("--add-opens=x",)


def test_signed_jars_are_replaced_in_place_on_the_class_path(pyspark: Path, java: Java, tmp_path: Path) -> None:
    made = overlay.prepare(java, tmp_path / "cache")
    unsigned = made.path / "unsigned" / "signed.jar"
    ours = str(made.path / "understudy.jar")
    assert made.classpath == (ours, str(pyspark / "jars" / "plain.jar"), str(unsigned))
    assert zipfile.ZipFile(unsigned).namelist() == ["a"]


def test_many_at_once_make_one(pyspark: Path, java: Java, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: overlay.prepare(java, tmp_path / "cache"), range(8)))
    assert len(set(made)) == 1
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [made[0].path.name]


def test_another_java_or_other_jars_mean_another_overlay(pyspark: Path, java: Java, tmp_path: Path) -> None:
    first = overlay.prepare(java, tmp_path / "cache")
    second = overlay.prepare(Java(java.home, "17.0.2"), tmp_path / "cache")
    (pyspark / "jars" / "more.jar").write_bytes((pyspark / "jars" / "plain.jar").read_bytes())
    third = overlay.prepare(java, tmp_path / "cache")
    assert len({first.path, second.path, third.path}) == 3


def _age(made: overlay.Overlay, seconds: float) -> None:
    long_ago = time.time() - seconds
    os.utime(made.path / "facts.json", (long_ago, long_ago))


def test_superseded_overlays_go_unless_something_runs_from_them(pyspark: Path, java: Java, tmp_path: Path) -> None:
    idle, used = (overlay.prepare(Java(java.home, version), tmp_path / "cache") for version in ("17.0.2", "17.0.3"))
    descriptor = overlay.hold(used)
    _age(idle, overlay.SUPERSEDED_AFTER_SECONDS + 60)
    _age(used, overlay.SUPERSEDED_AFTER_SECONDS + 60)
    current = overlay.prepare(java, tmp_path / "cache")
    assert not idle.path.exists()
    assert used.path.exists()
    os.close(descriptor)
    assert overlay.remove_stale(tmp_path / "cache", keep=current.path) == [used.path]


def test_an_overlay_of_a_java_that_is_gone_goes_at_once(pyspark: Path, java: Java, tmp_path: Path) -> None:
    made = overlay.prepare(java, tmp_path / "cache")
    facts = json.loads((made.path / "facts.json").read_text())
    (made.path / "facts.json").write_text(json.dumps(facts | {"java": "/no/such/java"}))
    current = overlay.prepare(Java(java.home, "21"), tmp_path / "cache")
    assert not made.path.exists()
    assert current.path.exists()


def test_the_cache_can_be_put_elsewhere() -> None:
    assert overlay.cache({"UNDERSTUDY_CACHE": "/x"}) == Path("/x")
    assert overlay.cache({"XDG_CACHE_HOME": "/y"}) == Path("/y/understudy")
    assert overlay.cache({}) == Path.home() / ".cache" / "understudy"
