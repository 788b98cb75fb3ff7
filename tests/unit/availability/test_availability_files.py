from __future__ import annotations

from pathlib import Path

import pytest

from understudy.errors import InvalidInput
from understudy.planning.availability.files import parse

EXAMPLE = Path(__file__).parents[3] / "examples" / "availability" / "stocks.yaml"
HOSTS = "hosts: [{name: h, count: 3, crash: 0.1}]"
QUERY = "queries: [{name: q, operators: [{name: s, type: source, rate: 10, cost: 0.01}, %s]}]"
GOOD = QUERY % "{name: d, type: destination, inputs: [s], cost: 0.02}"


def test_the_example_shares_what_its_queries_have_in_common() -> None:
    content = parse(EXAMPLE.read_text(), "example")
    workload, cluster = content.workload(), content.cluster()
    assert len(workload.operators) == 9, "twelve operators are written, three of them twice"
    assert workload.degree.max() == 3
    assert [host.name for host in cluster.hosts] == ["a1", "a2", "b1", "b2"]
    assert cluster.group_crash == (0.001, 0.001)
    assert content.primary(workload, cluster) is None


def test_spare_load_is_what_primaries_leave() -> None:
    content = parse(f"{GOOD}\n{HOSTS}", "f")
    workload, cluster = content.workload(), content.cluster()
    assert content.spare_load(workload, cluster) == pytest.approx(3 - 0.3)
    assert parse(f"{GOOD}\n{HOSTS}\nspare: 1.5", "f").spare_load(workload, cluster) == 1.5


def test_given_primaries_are_taken() -> None:
    content = parse(f"{GOOD}\n{HOSTS}\nprimaries: {{q.s: h2, q.d: h1}}", "f")
    assert content.primary(content.workload(), content.cluster()) == (1, 0)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "while parsing"),
        ("[]", "valid dictionary"),
        (HOSTS, "queries"),
        (f"{GOOD}\nhosts: [{{name: h, colour: red}}]", "hosts.0.colour"),
        (f"{GOOD}\nhosts: [{{name: h, crash: 2}}]", "hosts.0.crash"),
        (f"{GOOD.replace(']}]', ']}, {name: q, operators: []}]')}\n{HOSTS}", "occurs twice"),
    ],
)
def test_a_file_that_means_nothing_says_where(text: str, why: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(text, "plan.yaml")
    assert "plan.yaml" in caught.value.what
    assert why in caught.value.why


@pytest.mark.parametrize("primaries", ["{q.s: h2}", "{q.s: h2, q.d: h9}", "{q.s: h2, q.d: h1, q.x: h1}"])
def test_half_a_placement_is_refused(primaries: str) -> None:
    content = parse(f"{GOOD}\n{HOSTS}\nprimaries: {primaries}", "f")
    with pytest.raises(InvalidInput, match="primaries"):
        content.primary(content.workload(), content.cluster())
