"""The smallest set of tasks that keeps output alive, against all trees."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.property.replication_problems import problems
from understudy.planning.replication import mc_trees
from understudy.planning.replication.problem import ReplicationProblem


@settings(max_examples=60, deadline=None)
@given(problem=problems())
def test_it_is_the_smallest_of_all_trees(problem: ReplicationProblem) -> None:
    tree, proven = mc_trees.smallest_tree(problem)
    if proven:
        assert len(tree) == min(map(len, mc_trees.enumerate_trees(problem)))


@settings(max_examples=60, deadline=None)
@given(problem=problems())
def test_what_is_not_proven_is_a_tree_all_the_same(problem: ReplicationProblem) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mc_trees, "MOST_LISTED", -1)
        tree, proven = mc_trees.smallest_tree(problem)
    assert not proven
    assert tree in set(mc_trees.enumerate_trees(problem)) or mc_trees.count(problem) > 10_000
