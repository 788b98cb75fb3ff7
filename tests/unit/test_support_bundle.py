"""A support bundle tells what somebody needs to help, and none of the secrets that a run can hold."""

from __future__ import annotations

import gzip
import json
import re
import tarfile
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from understudy.cli.main import app
from understudy.coordination.sqlite import SqliteStore
from understudy.model.run import RunSpec
from understudy.model.secrets import hide
from understudy.runtime import checkup, support
from understudy.runtime.home import Home
from understudy.runtime.prepare import prepare

PLANTED = {
    "dsn": "dsnHunter2x",
    "setting": "settingHunter2x",
    "sasl": "saslHunter2x",
    "jaas": "jaasHunter2x",
    "s3": "s3Hunter2x",
    "environment": "environmentHunter2x",
    "bearer": "bearerHunter2x",
    "pem": "pemHunter2x",
    "quoted": "quotedHunter2x",
    "nested": "nestedHunter2x",
    "reported": "reportedHunter2x",
    "bare": "bareHunter2x",
}
LOG = f"""INFO connecting to postgresql://loader:{PLANTED["dsn"]}@db:5432/shop
ERROR could not connect: host=db user=loader password='{PLANTED["quoted"]} and more' dbname=shop
INFO properties: security.protocol=SASL_SSL, sasl.mechanism=PLAIN, sasl.password={PLANTED["sasl"]}, acks=all
INFO sasl.jaas.config=org.apache.kafka.PlainLoginModule required username="u" password="{PLANTED["jaas"]}";
DEBUG > Authorization: Bearer {PLANTED["bearer"]}
DEBUG body {json.dumps(json.dumps({"client_secret": PLANTED["nested"], "rows": 3}))}
-----BEGIN RSA PRIVATE KEY-----
{PLANTED["pem"]}
-----END RSA PRIVATE KEY-----
WARN the server answered: {PLANTED["bare"]} is not accepted
INFO epoch 12 is delivered
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(checkup, "check_java", lambda: checkup.Check("Java", checkup.Finding.GOOD, "17"))
    monkeypatch.setenv("SPARK_AUTH_SECRET", PLANTED["environment"])
    monkeypatch.setenv("DATABASE_PASSWORD", PLANTED["bare"])
    place = Home(tmp_path / ".understudy" / "clicks" / "run-1")
    spark = {"spark.hadoop.fs.s3a.secret.key": PLANTED["s3"], "spark.executor.memory": "2g"}
    settings = {"dsn": f"postgresql://loader:{PLANTED['dsn']}@db/shop", "api_key": PLANTED["setting"], "rate": "50"}
    prepare(place, RunSpec.of("r", "app.py", nodes=2, settings=settings, config={"jvm": {"spark": spark}}))
    (place.logs / "node-1.log").write_text(LOG)
    (place.logs / "manager.log").write_text(f"asked with {place.token()} and {PLANTED['setting']}\n")
    event = {"number": 1, "at": 0.0, "kind": "failed", "text": f"no answer from postgresql://x:{PLANTED['dsn']}@db"}
    (place.path / "events.jsonl").write_text(json.dumps(event | {"fields": {}, "cause": None}) + "\n")
    return place


def bundle(*arguments: str) -> dict[str, str]:
    said = CliRunner().invoke(app, ["support-bundle", "b.tar.gz", *arguments])
    assert said.exit_code == 0, (said.output, said.exception)
    with tarfile.open("b.tar.gz") as tar:
        members = [(member, tar.extractfile(member)) for member in tar]
        return {
            member.name.removeprefix("understudy-support/"): content.read().decode()
            for member, content in members
            if content is not None
        }


def test_no_secret_gets_into_a_bundle(home: Home) -> None:
    report = Path("mine.json")
    report.write_text(json.dumps({"verdict": "exact", "sinks": {"out": {"dsn_password": PLANTED["reported"]}}}))
    parts = bundle("--report", str(report))
    whole = gzip.decompress(Path("b.tar.gz").read_bytes()).decode()
    assert [name for name, secret in PLANTED.items() if secret in whole] == []
    assert home.token() not in whole
    assert "and more" not in whole, "a password with spaces"
    assert Path("b.tar.gz").stat().st_mode & 0o777 == 0o600
    assert "***" in parts["logs/node-1.log"]


def test_a_bundle_holds_what_somebody_needs(home: Home) -> None:
    parts = bundle()
    versions = json.loads(parts["versions.json"])["packages"]
    assert re.match(r"\d", versions["understudy"])
    assert re.match(r"4\.", versions["pyspark"])
    assert json.loads(parts["run.json"])["settings"] == {
        "dsn": "postgresql://***@db/shop",
        "api_key": "***",
        "rate": "50",
    }
    assert 'spark.executor.memory" = "2g"' in parts["configuration.toml"]
    assert re.search(r"nodes = 2 +# this run", parts["configuration.toml"])
    assert json.loads(parts["events.jsonl"])["text"] == "no answer from postgresql://***@db"
    assert "INFO epoch 12 is delivered" in parts["logs/node-1.log"]
    assert {check["name"] for check in json.loads(parts["doctor.json"])} >= {"Python", "Java", "disk"}
    assert "manager.db" in parts["files.txt"]
    assert "report.json" not in parts, "no manager answers"


def test_a_running_manager_adds_its_report(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.announce("http://127.0.0.1:1")

    def answer(_: object, method: str, url: str, **__: object) -> httpx.Response:
        text = {"/health/live": "{}", "/api/v1/report": '{"verdict": "exact"}'}.get(url.partition(":1")[2], "something")
        return httpx.Response(200, text=text, request=httpx.Request(method, url))

    monkeypatch.setattr(httpx.Client, "request", answer)
    parts = bundle("--home", str(home.path))
    assert json.loads(parts["report.json"])["verdict"] == "exact"
    assert {"view.json", "metrics.txt"} <= parts.keys()


def test_what_cannot_be_read_is_said_and_the_rest_is_there(home: Home) -> None:
    home.database.write_text("this is no database, and so the run cannot be read from it" * 99)
    parts = bundle("--home", str(home.path))
    assert parts["run.json"].startswith("not collected: InvalidInput")
    assert "INFO epoch 12 is delivered" in parts["logs/node-1.log"]


def test_without_a_run_the_machine_is_described(tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path.parent)
    parts = bundle()
    Path("b.tar.gz").unlink()
    assert {"versions.json", "machine.json", "doctor.json", "configuration.toml"} <= parts.keys()
    assert "run.json" not in parts


@pytest.mark.parametrize("arguments", [["b.zip"], ["b.tar.gz", "--home", "nowhere"], ["no/such/place/b.tar.gz"]])
def test_mistakes_are_answered_in_three_parts(home: Home, arguments: list[str]) -> None:
    said = CliRunner().invoke(app, ["support-bundle", *arguments])
    assert said.exit_code == 2
    assert "why:" in said.output
    assert "fix:" in said.output


def test_a_tail_never_begins_within_a_line(tmp_path: Path) -> None:
    """A password that lost its name would not be recognised."""
    path = tmp_path / "log"
    path.write_text("".join(f"password=Hunter{number:04d}\n" for number in range(100)))
    for limit in range(1, 60):
        assert "Hunter" not in hide(support.tail(path, limit))


def test_a_value_on_the_line_after_its_name_is_hidden() -> None:
    assert hide("a: 1\npassword:\n  Hunter2\nb: 2") == "a: 1\npassword:\n  ***\nb: 2"


def test_half_a_key_is_hidden_too() -> None:
    text = "before\n-----BEGIN PRIVATE KEY-----\nabc\ndef\n-----END PRIVATE KEY-----\nafter"
    assert hide(text) == "before\n***\nafter"
    assert "def" not in hide(text.partition("abc")[2])
    assert "abc" not in hide(text.partition("def")[0])


def test_a_long_line_takes_no_longer_than_its_length() -> None:
    """A regular expression that tries every beginning of a word would need minutes for it."""
    assert hide("a" * 100_000 + " password=abc") == "a" * 100_000 + " password=***"


WORD = st.text("abcdefghijklmnopqrstuvwxyzABCDEFG0123456789!$%+-_", min_size=6, max_size=20)
FORMS = ["password={}", "token: {}", '"secret": "{}"', "https://u:{}@h/", "AWS_SECRET_ACCESS_KEY={}", "api-key = '{}'"]


@given(WORD, st.sampled_from(FORMS), st.text(max_size=30), st.text(max_size=30))
def test_a_secret_with_a_name_is_hidden_in_any_surroundings(secret: str, form: str, left: str, right: str) -> None:
    marked = f"Q9{secret}9Q"
    text = f"{left} {form.format(marked)} {right}"
    assert marked not in hide(text)


def test_a_fact_of_the_run_is_there(home: Home) -> None:
    store = SqliteStore(home.database)
    store.keep({"phase": "failed", "failure": {"what": "it broke", "why": "the disk is full", "fix": "free some"}})
    store.close()
    assert json.loads(bundle()["facts.json"])["failure"]["why"] == "the disk is full"
