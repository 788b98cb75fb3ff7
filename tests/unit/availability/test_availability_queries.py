from __future__ import annotations

import pytest

from understudy.errors import InvalidInput
from understudy.planning.availability.query import Operator, OperatorType, Query
from understudy.planning.availability.sharing import SharedGraph
from understudy.planning.availability.workload import workload_of

T = OperatorType


def source(rate: float = 100.0) -> Operator:
    return Operator("S1", T.SOURCE, predicate="ticks", cost=0.001, size=10, rate=rate)


def chain(name: str, aggregation: str) -> Query:
    """Grüneberger et al. 2013, Fig. 1: source and filter in common, own aggregation and destination."""
    return Query(
        name,
        (
            source(),
            Operator("F1", T.FILTER, ("S1",), "company = SAP", 0.5, 0.002, 10),
            Operator(aggregation, T.AGGREGATION, ("F1",), aggregation, 0.1, 0.004, 4),
            Operator("D", T.DESTINATION, (aggregation,), name, 1.0, 0.01, 4),
        ),
    )


def test_rates_loads_and_traffic_follow_from_the_source_rate() -> None:
    workload = workload_of(SharedGraph([chain("q1", "A1")]))
    # r1 = 100, r2 = 0.5 · r1, r3 = 0.1 · r2 as in Grüneberger et al. 2013, §2.4.
    assert workload.load.tolist() == pytest.approx([100 * 0.001, 100 * 0.002, 50 * 0.004, 5 * 0.01])
    assert workload.net_in.tolist() == pytest.approx([1000, 1000, 500, 20])
    assert workload.net_out.tolist() == pytest.approx([1000, 500, 20, 20])


def test_a_join_sees_both_inputs() -> None:
    query = Query(
        "q",
        (
            Operator("a", T.SOURCE, predicate="a", rate=30, size=2),
            Operator("b", T.SOURCE, predicate="b", rate=10, size=5),
            Operator("j", T.JOIN, ("a", "b"), "same key", 0.5, 0.01, 7),
            Operator("d", T.DESTINATION, ("j",), "d"),
        ),
    )
    workload = workload_of(SharedGraph([query]))
    assert workload.load[2] == pytest.approx(0.4)
    assert workload.net_in[2] == pytest.approx(30 * 2 + 10 * 5)
    assert workload.net_out[2] == pytest.approx(20 * 7)


def test_a_new_query_reuses_what_runs() -> None:
    graph = SharedGraph([chain("q1", "A1")])
    added = graph.add(chain("q2", "A2"))
    assert added.reused == ("q1.S1", "q1.F1")
    assert added.started == ("q2.A2", "q2.D")
    assert workload_of(graph).degree.tolist() == [2, 2, 1, 1, 1, 1]


def test_removing_a_query_releases_only_what_nobody_else_uses() -> None:
    graph = SharedGraph([chain("q1", "A1"), chain("q2", "A2")])
    assert graph.remove("q1") == ("q1.A1", "q1.D")
    assert {node.name for node in graph.nodes} == {"q1.S1", "q1.F1", "q2.A2", "q2.D"}
    graph.add(Query("q1", (Operator("S1", T.SOURCE, predicate="other"), Operator("D", T.DESTINATION, ("S1",)))))
    assert len({node.name for node in graph.nodes}) == len(graph.nodes) == 6
    graph.remove("q1")
    graph.remove("q2")
    assert len(graph.nodes) == 0, graph.nodes


def test_the_same_operator_twice_in_a_query_is_one() -> None:
    twice = Query(
        "q",
        (
            source(),
            Operator("x", T.FILTER, ("S1",), "p", 0.5),
            Operator("y", T.FILTER, ("S1",), "p", 0.5),
            Operator("j", T.SEQUENCE, ("x", "y"), "x then y"),
            Operator("d", T.DESTINATION, ("j",)),
        ),
    )
    assert len(SharedGraph([twice]).nodes) == 4


def test_contradicting_numbers_are_refused_and_change_nothing() -> None:
    graph = SharedGraph([chain("q1", "A1")])
    before = graph.nodes
    other = Query("q2", (source(rate=7.0), Operator("D", T.DESTINATION, ("S1",), "q2")))
    with pytest.raises(InvalidInput, match="contradicts the running"):
        graph.add(other)
    assert graph.nodes == before
    assert list(graph.queries) == ["q1"]


def test_names_of_queries_are_unique_and_known() -> None:
    graph = SharedGraph([chain("q1", "A1")])
    with pytest.raises(InvalidInput, match="running already"):
        graph.add(chain("q1", "A1"))
    with pytest.raises(InvalidInput, match="not running"):
        graph.remove("q9")


D = Operator("d", T.DESTINATION, ("s",))
S = Operator("s", T.SOURCE)


@pytest.mark.parametrize(
    ("operators", "why"),
    [
        ((S, S, D), "occurs twice"),
        ((S, Operator("j", T.JOIN, ("s",)), D), "join with 1 inputs"),
        ((S, Operator("d", T.DESTINATION, ("x",))), "which it does not contain"),
        ((S, D, Operator("e", T.DESTINATION, ("d",))), "reads the destination"),
        ((Operator("s", T.SOURCE, cost=-1.0), D), "negative number"),
        ((S,), "no destination"),
        ((S, Operator("f", T.FILTER, ("s",)), D), "nobody reads"),
        (
            (
                Operator("f", T.FILTER, ("g",)),
                Operator("g", T.FILTER, ("f",)),
                Operator("d", T.DESTINATION, ("g",)),
            ),
            "circle",
        ),
    ],
)
def test_what_is_no_query_is_refused(operators: tuple[Operator, ...], why: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Query("q", operators).ordered()
    assert why in caught.value.why


def test_any_order_of_operators_will_do() -> None:
    query = chain("q", "A")
    turned = Query("q", query.operators[::-1])
    assert [operator.name for operator in turned.ordered()] == ["S1", "F1", "A", "D"]
