"""Checkpoints by address: found by name, refused with a reason, and without a word about credentials."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from tests.builders import COUNTS, word_count

from understudy.checkpoints import registry
from understudy.checkpoints.interface import Shipped
from understudy.checkpoints.place import URL, CheckpointsPlace
from understudy.clients import object_address
from understudy.clients.object_address import open_folder, settings_of
from understudy.clients.objects import Folder
from understudy.config import effective, from_environment
from understudy.errors import Away, InvalidInput, Unavailable
from understudy.log.disk import Disk
from understudy.model.address import parse
from understudy.model.run import RunSpec
from understudy.runtime.home import Home
from understudy.runtime.prepare import check_same, prepare

SECRET = "hunter2-and-more"
NOBODY = "s3://bucket/folder?endpoint=http://127.0.0.1:1"


def place(url: str, directory: Path) -> CheckpointsPlace:
    return CheckpointsPlace(url, directory / "home", "run-1", Disk())


def test_files_lie_in_the_home_or_below_a_path(tmp_path: Path) -> None:
    for url, root in (("file:", tmp_path / "home"), (f"file:{tmp_path}/shared", tmp_path / "shared" / "run-1")):
        registry.check(url)
        checkpoints = registry.open_checkpoints(place(url, tmp_path))
        checkpoints.of(COUNTS).ship(None, 3, 1, Shipped())
        assert (root / "counts/0/markers/0000000003-1.json").exists()
        checkpoints.close()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("hbase://host/x", "there is no store of checkpoints called 'hbase'"),
        ("file://host/path", "files have no host"),
        ("file:?copies=3", "no such option"),
        ("s3:", "it names no bucket"),
        ("s3:///folder", "it names no bucket"),
        ("s3://host:9000/folder", "it names no bucket"),
        ("s3://one,two/folder", "it names no bucket"),
        ("s3://bucket/folder?regoin=x", "no such option"),
        ("s3://bucket/folder?patience_s=long", "whole number"),
        ("gs://bucket/folder?endpoint=http://x", "no such option"),
        ("az://container/folder?properties=/no/such/file", "No such file"),
    ],
)
def test_an_address_that_cannot_be_meant_is_refused(url: str, why: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        registry.check(url)
    assert why in refused.value.why
    assert refused.value.fix


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("understudy.extras.find_spec", lambda *_: None)
    with pytest.raises(Unavailable) as refused:
        registry.check(NOBODY)
    assert refused.value.what == f"{URL} = s3://bucket/folder cannot be used here"
    assert refused.value.fix == "pip install 'understudy[objects]'"


# -- credentials


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    file = tmp_path / "s3.properties"
    file.write_text(f"# of the bucket\n\naccess_key_id = app\nsecret_access_key = {SECRET}\n")
    return file


@pytest.mark.parametrize(
    ("url", "config"),
    [
        ("s3://b/f/g?region=eu-central-1", {"bucket": "b", "region": "eu-central-1"}),
        ("gs://b/f?service_account=/etc/key.json", {"bucket": "b", "service_account": "/etc/key.json"}),
        ("az://b/f?account=me", {"container_name": "b", "account_name": "me"}),
    ],
)
def test_what_an_address_says(url: str, config: dict[str, str]) -> None:
    found = settings_of(parse(url, URL), URL)
    assert found.config == config
    assert found.shown == url.partition("?")[0]


@pytest.mark.parametrize("url", ["s3://b/f?region=x", "az://b/f?account=me"])
def test_every_kind_of_store_can_be_opened_without_asking_it(url: str) -> None:
    pytest.importorskip("obstore")
    folder = open_folder(settings_of(parse(url, URL), URL), URL)
    assert (folder.prefix, folder.shown) == ("f", url.partition("?")[0])


def test_settings_come_from_a_file_and_are_not_shown(secret_file: Path) -> None:
    found = settings_of(parse(f"s3://b/f?properties={secret_file}", URL), URL)
    assert found.config == {"bucket": "b", "access_key_id": "app", "secret_access_key": SECRET}
    assert SECRET not in repr(found)
    assert SECRET in found.secrets


@pytest.mark.parametrize("line", [SECRET, f"={SECRET}", f"no_such_setting={SECRET}"])
def test_a_line_that_is_wrong_is_not_repeated(tmp_path: Path, line: str) -> None:
    pytest.importorskip("obstore")
    file = tmp_path / "s3.properties"
    file.write_text(f"secret_access_key={SECRET}\n{line}\n")
    with pytest.raises(InvalidInput) as refused:
        registry.check(f"s3://b/f?properties={file}")
    assert SECRET not in str(refused.value)


def test_a_store_that_does_not_respond_gives_one_error_without_credentials(
    secret_file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    pytest.importorskip("obstore")
    monkeypatch.setattr(object_address, "RETRY_S", 0.3)
    with caplog.at_level(logging.DEBUG), pytest.raises(Away) as refused:
        registry.check(f"{NOBODY}&properties={secret_file}")
    assert "s3://bucket/folder does not respond" in refused.value.what
    assert "check the address" in refused.value.fix
    said = capfd.readouterr()
    assert SECRET not in str(refused.value) + caplog.text + said.out + said.err


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        (
            f"Error performing GET https://x/b?sig={SECRET}&se=1 in 3ms - 403",
            "Error performing GET https://x/b in 3ms - 403",
        ),
        (f"bad key {SECRET} given\nand more", "bad key … given"),
        ("status code: 403 Forbidden: <?xml version><Error>all of it", "status code: 403 Forbidden"),
    ],
)
def test_what_a_store_says_is_cleaned(raw: str, clean: str) -> None:
    folder = Folder(None, "f", "s3://b/f", (SECRET,))
    assert folder._cleaned(Exception(raw)) == clean


def test_a_credential_in_the_address_is_refused_wherever_it_is_given() -> None:
    for url in (f"s3://key:{SECRET}@bucket/f", f"s3://bucket/f?secret_access_key={SECRET}"):
        with pytest.raises(InvalidInput) as refused:
            effective(from_environment({"UNDERSTUDY_CHECKPOINTS_URL": url}))
        assert SECRET not in str(refused.value)
        assert "must not hold credentials" in refused.value.why


# -- a run that goes on


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        ("file:", "file:", True),
        ("file:", "s3://b/f", False),
        ("s3://b/f?region=x", "s3://b/f?patience_s=300", True),
        ("s3://b/f", "s3://c/f", False),
        ("s3://b/f", "s3://b/g", False),
    ],
)
def test_a_run_goes_on_only_with_its_own_checkpoints(tmp_path: Path, before: str, now: str, same: bool) -> None:
    home = Home(tmp_path)
    spec = RunSpec(id="r", app="app.py", config={"checkpoints": {"url": before}})  # type: ignore[arg-type]
    prepare(home, spec)
    changed = spec.changed(config={"checkpoints": {"url": now}})
    if same:
        check_same(home, changed, word_count())
    else:
        with pytest.raises(InvalidInput, match=r"checkpoints\.url"):
            check_same(home, changed, word_count())
