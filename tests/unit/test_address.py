"""Addresses of services: taken apart, put together again, and without credentials."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.errors import InvalidInput
from understudy.model.address import Address, parse

WORDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_. %&=/ü", min_size=1, max_size=12)
NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
HOSTS = st.builds(lambda name, port: f"{name}:{port}" if port else name, NAMES, st.integers(0, 65535))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("file:", Address("file")),
        ("file:/data/log", Address("file", (), "/data/log")),
        ("file:///data/log", Address("file", (), "/data/log")),
        ("file:here/log", Address("file", (), "here/log")),
        ("kafka://a:1,b:2/p", Address("kafka", ("a:1", "b:2"), "/p")),
        ("kafka://a:1", Address("kafka", ("a:1",))),
        ("kafka://[::1]:9092/p", Address("kafka", ("[::1]:9092",), "/p")),
        ("s3://bucket/a/b?region=eu&endpoint=http://h:1", None),
        ("s3+x://bucket/a%20b", Address("s3+x", ("bucket",), "/a b")),
    ],
)
def test_an_address_is_taken_apart(text: str, found: Address | None) -> None:
    where = parse(text, "log.url")
    if found is not None:
        assert where == found
    else:
        assert where.options == (("region", "eu"), ("endpoint", "http://h:1"))
        assert (where.name, where.option("region"), where.option("none", "x")) == ("a/b", "eu", "x")
    assert parse(str(where), "log.url") == where


@given(NAMES, st.lists(HOSTS, min_size=1, max_size=3), WORDS, st.dictionaries(NAMES, WORDS, max_size=3))
def test_what_was_put_together_is_taken_apart_again(
    scheme: str, hosts: list[str], path: str, options: dict[str, str]
) -> None:
    where = Address(scheme, tuple(hosts), f"/{path}", tuple(options.items()))
    assert parse(str(where), "log.url") == where


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "does not begin with a scheme"),
        ("/data/log", "does not begin with a scheme"),
        ("Kafka://a:1", "does not begin with a scheme"),
        ("kafka://a:1,,b:2/p", "is no host"),
        ("kafka://a:b/p", "is no host"),
        ("kafka://a:70000/p", "is no host"),
        ("kafka://a:0/p", "is no host"),
        ("kafka://a:1/p?x=1&x=2", "given twice"),
        ("kafka://a:1/p#here", "does not begin with a scheme"),
    ],
)
def test_what_is_no_address_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(text, "log.url")
    assert why in refused.value.why
    assert "log.url" in refused.value.what


@pytest.mark.parametrize(
    "text",
    [
        "kafka://user:hunter2@a:1/p",
        "kafka://hunter2@a:1/p",
        "kafka://a:1/p?sasl.password=hunter2",
        "s3://bucket/p?secret_access_key=hunter2",
        "s3://bucket/p?aws-token=hunter2",
        "user:hunter2@a:1/p",
        "//a:1/p?password=hunter2",
        "kafka://a:x/p?password=hunter2",
    ],
)
def test_credentials_are_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(text, "log.url")
    assert "hunter2" not in str(refused.value)


def test_unknown_options_and_wrong_numbers_name_what_was_meant() -> None:
    where = parse("kafka://a:1/p?replica=3&copies=x", "log.url")
    where.only(["replica", "copies"])
    with pytest.raises(InvalidInput, match="did you mean 'replicas'"):
        where.only(["replicas", "copies"])
    with pytest.raises(InvalidInput, match="the options are copies"):
        where.only(["copies"])
    with pytest.raises(InvalidInput, match="leave it away"):
        where.only([])
    assert where.number("replica", 1) == 3
    assert where.number("absent", 7) == 7
    with pytest.raises(InvalidInput, match="copies=x"):
        where.number("copies", 2)
    with pytest.raises(InvalidInput, match="4 or more"):
        where.number("replica", 5, least=4)
