"""Jars of services: pinned, verified before use, fetched only when they are not there."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from understudy.errors import InvalidInput, Unavailable
from understudy.stream.java import Java
from understudy.testing.services import ivy, jars, kafka, zookeeper
from understudy.testing.services.ivy import Coordinates

ONE, TWO = Coordinates("org.example", "one", "1.0"), Coordinates("org.example", "two_2.13", "2.0")
CONTENT = {ONE: b"first jar", TWO: b"second jar"}


class Central:
    """Stands in for Ivy and what it reaches; remembers what was asked."""

    def __init__(self, content: dict[Coordinates, bytes]) -> None:
        self.content = content
        self.asked: list[list[Coordinates]] = []

    def retrieve(self, java: Java, wanted: Sequence[Coordinates], into: Path) -> None:
        self.asked.append(list(wanted))
        for name in wanted:
            (into / name.file).write_bytes(self.content[name])


@pytest.fixture
def central(monkeypatch: pytest.MonkeyPatch) -> Central:
    made = Central(dict(CONTENT))
    monkeypatch.setattr(ivy, "retrieve", made.retrieve)
    return made


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> jars.Bundle:
    monkeypatch.setattr(jars, "LOCKS", tmp_path)
    made = jars.Bundle("example", "1.0", (ONE,))
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENT.items()}
    made.lock.write_text(jars.write_lock(made, digests))
    return made


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "example-1.0"


def test_install_fetches_all_and_then_nothing(bundle: jars.Bundle, home: Path, central: Central) -> None:
    assert jars.install(bundle, home)
    assert [path.read_bytes() for path in jars.verified(bundle, home)] == [b"first jar", b"second jar"]
    assert not jars.install(bundle, home)
    assert central.asked == [[ONE, TWO]]


def test_a_full_cache_needs_neither_java_nor_network(
    bundle: jars.Bundle, home: Path, central: Central, monkeypatch: pytest.MonkeyPatch
) -> None:
    jars.install(bundle, home)

    def refuse(*arguments: object) -> None:
        raise AssertionError("nothing may be asked of the outside")

    monkeypatch.setattr(ivy, "retrieve", refuse)
    monkeypatch.setattr("understudy.stream.java.find", refuse)
    assert not jars.install(bundle, home)
    assert len(jars.verified(bundle, home)) == 2


def test_a_damaged_jar_is_refused_and_only_it_is_fetched_again(
    bundle: jars.Bundle, home: Path, central: Central
) -> None:
    jars.install(bundle, home)
    (home / TWO.file).write_bytes(b"something else")
    with pytest.raises(jars.Damaged, match="not what the lock file describes") as refused:
        jars.verified(bundle, home)
    assert str(TWO) in refused.value.why
    assert "make services" in refused.value.fix
    jars.install(bundle, home)
    assert central.asked[1:] == [[TWO]]
    assert len(jars.verified(bundle, home)) == 2


def test_what_is_missing_is_told_with_the_way_to_get_it(bundle: jars.Bundle, home: Path) -> None:
    with pytest.raises(Unavailable, match=r"example 1\.0 is not installed") as missing:
        jars.verified(bundle, home)
    assert not isinstance(missing.value, jars.Damaged)
    assert "2 of 2 jars" in missing.value.why
    assert "make services" in missing.value.fix


def test_other_content_than_the_lock_says_is_never_installed(bundle: jars.Bundle, home: Path, central: Central) -> None:
    central.content[ONE] = b"changed on the way"
    with pytest.raises(jars.Damaged, match="could not be installed"):
        jars.install(bundle, home)
    assert list(home.glob("*.jar")) == []


def test_a_failed_fetch_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "\t\tmodule not found: org.example#one;1.0\n", "")

    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(Unavailable, match="could not be fetched") as failed:
        ivy.retrieve(Java(tmp_path, "17"), [ONE], tmp_path)
    assert failed.value.why == "module not found: org.example#one;1.0"


@pytest.mark.parametrize("bundle", [kafka.BUNDLE, zookeeper.BUNDLE], ids=lambda bundle: bundle.name)
def test_the_lock_files_hold_what_the_services_ask_for(bundle: jars.Bundle) -> None:
    locked = jars.read_lock(bundle.lock.read_text())
    assert set(bundle.roots) <= set(locked)
    assert all(len(digest) == 64 for digest in locked.values())
    assert len({name.file for name in locked}) == len(locked)


def test_a_lock_file_that_cannot_be_read_says_which_line() -> None:
    with pytest.raises(InvalidInput, match="lock file of jars") as wrong:
        jars.read_lock("# fine\norg.example:one 0000\n")
    assert "org.example:one" in wrong.value.why


def test_the_cache_is_the_users_and_not_the_checkouts() -> None:
    assert kafka.BUNDLE.home({"XDG_CACHE_HOME": "/c"}) == Path(f"/c/understudy/services/kafka-{kafka.BUNDLE.version}")
