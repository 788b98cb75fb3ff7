"""Where parts of an expression share tasks, and what to decide to get them apart."""

from __future__ import annotations

from collections import Counter
from functools import reduce

from understudy.planning.replication.exact.expressions import Algebra, Term, bits


def tangle_in(algebra: Algebra, term: Term) -> list[Term] | None:
    """The topmost parts that share tasks."""
    factors = [Term(1.0, 0, (s,)) for s in dict.fromkeys(term.sums)]
    for group in algebra.groups(factors):
        if len(group) > 1:
            return group
    for s in dict.fromkeys(term.sums):
        for group in algebra.groups(algebra.terms[s]):
            if len(group) > 1:
                return group
        for inner in algebra.terms[s]:
            found = tangle_in(algebra, inner)
            if found:
                return found
    return None


def best_task(supports: list[int]) -> tuple[int, int]:
    """Among the tasks in several parts, the one whose removal leaves the smallest largest group."""
    uses = Counter(task for support in supports for task in bits(support))
    shared = [task for task, count in uses.items() if count > 1]
    shared.sort(key=lambda task: (-uses[task], task))
    step = max(1, len(shared) // 8)
    candidates = shared[:8] + shared[8::step]
    ranked = [(largest_group(supports, 1 << task), -uses[task], task) for task in candidates]
    left, _, task = min(ranked)
    return task, left


def shared_sums(algebra: Algebra, term: Term, supports: list[int]) -> list[tuple[int, ...]]:
    """Sums that several parts use, with tasks that appear nowhere else; constant companions go together."""
    places: dict[int, set[tuple[int, int]]] = {}
    queue: list[tuple[int, tuple[Term, ...]]] = [(-1, (term,))]
    seen: set[int] = set()
    while queue:
        number, terms = queue.pop()
        for index, inner in enumerate(terms):
            for s in inner.sums:
                places.setdefault(s, set()).add((number, index))
                if s not in seen:
                    seen.add(s)
                    queue.append((s, algebra.terms[s]))
    together: dict[frozenset[tuple[int, int]], list[int]] = {}
    for s, where in places.items():
        if sum(bool(algebra.support[s] & support) for support in supports) > 1:
            together.setdefault(frozenset(where), []).append(s)
    found = [tuple(sorted(sums)) for sums in together.values()]
    return [sums for sums in found if sums != term.sums and not _used_elsewhere(algebra, term, sums)]


def _used_elsewhere(algebra: Algebra, term: Term, sums: tuple[int, ...]) -> bool:
    own = reduce(lambda mask, s: mask | algebra.support[s], sums, 0)
    stack, seen = [term], set(sums)
    while stack:
        current = stack.pop()
        if current.tasks & own or len(set(current.sums) & set(sums)) != current.sums.count(sums[0]) * len(sums):
            return True
        for s in current.sums:
            if s not in seen:
                seen.add(s)
                stack += algebra.terms[s]
    return False


def largest_group(supports: list[int], without: int) -> int:
    groups: list[int] = []
    for support in supports:
        mask = support & ~without
        apart = []
        for group in groups:
            if group & mask:
                mask |= group
            else:
                apart.append(group)
        groups = [*apart, mask]
    return max(group.bit_count() for group in groups)
