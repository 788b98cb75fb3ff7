"""Logs by address: found by name, refused with a reason, and without a word about credentials."""

from __future__ import annotations

import importlib.util
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.builders import WORDS, a_bag, word_count

from understudy.config import effective, from_environment
from understudy.errors import InvalidInput, Unavailable
from understudy.log import kafka_open, registry
from understudy.log.disk import Disk
from understudy.log.kafka_settings import settings_of
from understudy.log.place import LogPlace
from understudy.model.address import parse
from understudy.model.config import LogSection
from understudy.model.run import RunSpec
from understudy.runtime.home import Home
from understudy.runtime.prepare import check_same, prepare

SECRET = "hunter2-and-more"
NOBODY = "kafka://127.0.0.1:1/p"


def place(url: str, directory: Path) -> LogPlace:
    return LogPlace(LogSection(url=url), directory / "home", directory / "local", "run-1", (WORDS,), Disk())


def test_files_lie_in_the_home_or_below_a_path(tmp_path: Path) -> None:
    for url, root in (("file:", tmp_path / "home"), (f"file:{tmp_path}/shared", tmp_path / "shared" / "run-1")):
        registry.check(url)
        log = registry.open_log(place(url, tmp_path))
        log.publish(a_bag(0), durable=False)
        assert (root / "words" / "0" / "0000000000.bag").exists()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("cassandra://host/x", "there is no log called 'cassandra'"),
        ("file://host/path", "files have no host"),
        ("file:?copies=3", "no such option"),
        ("kafka:", "it names no broker"),
        ("kafka:///p", "it names no broker"),
        ("kafka://a:1/p?replica=3", "no such option"),
        ("kafka://a:1/p?replicas=three", "whole number"),
        ("kafka://a:1/a/b", "begins the names of topics"),
        ("kafka://a:1/p?properties=/no/such/file", "No such file"),
    ],
)
def test_an_address_that_cannot_be_meant_is_refused(url: str, why: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        registry.check(url)
    assert why in refused.value.why
    assert refused.value.fix


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    monkeypatch.setattr("understudy.extras.find_spec", lambda *_: None)
    with pytest.raises(Unavailable) as refused:
        registry.check(NOBODY)
    assert refused.value.what == f"log.url = {NOBODY} cannot be used here"
    assert refused.value.fix == "pip install 'understudy[kafka]'"


# -- credentials


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    file = tmp_path / "kafka.properties"
    file.write_text(f"# of the cluster\n\nsasl.username = app\nsasl.password = {SECRET}=\n")
    return file


def test_settings_come_from_a_file_and_the_environment_which_wins(secret_file: Path) -> None:
    address = parse(f"kafka://a:1,b:2/p?properties={secret_file}&replicas=3&insync=2&patience_s=9", "log.url")
    found = settings_of(address, "r", {"UNDERSTUDY_KAFKA_SASL_USERNAME": "other", "UNDERSTUDY_KAFKA_X": ""})
    assert found.options == {"sasl.username": "other", "sasl.password": f"{SECRET}="}
    assert (found.servers, found.bags, found.facts) == ("a:1,b:2", "p.r.bags", "p.r.facts")
    assert (found.replicas, found.insync, found.patience_s) == (3, 2, 9.0)
    assert SECRET not in repr(found)


@pytest.mark.parametrize("line", [SECRET, f"={SECRET}", f"acks={SECRET}"])
def test_a_line_that_is_wrong_is_not_repeated(tmp_path: Path, line: str) -> None:
    file = tmp_path / "kafka.properties"
    file.write_text(f"sasl.password={SECRET}\n{line}\n")
    with pytest.raises(InvalidInput) as refused:
        settings_of(parse(f"kafka://a:1/p?properties={file}", "log.url"), "r", {})
    assert SECRET not in str(refused.value)


def test_brokers_that_do_not_respond_give_one_error_without_credentials(
    secret_file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    pytest.importorskip("confluent_kafka")
    monkeypatch.setattr(kafka_open, "CHECK_S", 0.3)
    monkeypatch.setattr("understudy.clients.kafka._CALL_S", 0.2)
    monkeypatch.setenv("UNDERSTUDY_KAFKA_SECURITY_PROTOCOL", "SASL_PLAINTEXT")
    monkeypatch.setenv("UNDERSTUDY_KAFKA_SASL_MECHANISM", "PLAIN")
    with caplog.at_level(logging.DEBUG), pytest.raises(Unavailable) as refused:
        registry.check(f"{NOBODY}?properties={secret_file}")
    assert "the log: Kafka at 127.0.0.1:1 cannot be used" in refused.value.what
    assert "check the brokers" in refused.value.fix
    said = capfd.readouterr()
    assert SECRET not in str(refused.value) + caplog.text + said.out + said.err


def test_a_credential_in_the_address_is_refused_wherever_it_is_given() -> None:
    url = f"kafka://user:{SECRET}@a:1/p"
    with pytest.raises(InvalidInput) as refused:
        effective(from_environment({"UNDERSTUDY_LOG_URL": url}))
    assert SECRET not in str(refused.value)
    assert "must not hold credentials" in refused.value.why


# -- a run that goes on


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        ("file:", "file:", True),
        ("file:", "kafka://a:1/p", False),
        ("kafka://a:1/p", "kafka://b:2,c:3/p?patience_s=300", True),
        ("kafka://a:1/p", "kafka://a:1/q", False),
    ],
)
def test_a_run_goes_on_only_with_its_own_log(tmp_path: Path, before: str, now: str, same: bool) -> None:
    home = Home(tmp_path)
    spec = RunSpec(id="r", app="app.py", config={"log": {"url": before}})  # type: ignore[arg-type]
    prepare(home, spec)
    changed = spec.changed(config={"log": {"url": now}})
    if same:
        check_same(home, changed, word_count())
    else:
        with pytest.raises(InvalidInput, match=r"log\.url"):
            check_same(home, changed, word_count())
