"""A metric as an expression in binary variables, kept factored.

Every quantity is a `Term`: a coefficient, a set of tasks that must all be replicated (a bit mask) and some
sums, all multiplied. A sum is a list of terms with coefficients that add up to 1, so its largest value is 1.
Three identities do all the work, and each removes variables that two parts share:

* a common factor of all terms of a sum is taken out of it: x·a + y·a = (x + y)·a;
* a task that multiplies a sum counts as replicated inside it: x·s(x) = x·s(1);
* terms without shared tasks are grouped: only what is really entangled stays together.

Equal sums are stored once; a `full` stream therefore gives all its readers the same sum.
"""

from __future__ import annotations

from collections import Counter
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Term(NamedTuple):
    coefficient: float
    tasks: int  # bit mask
    sums: tuple[int, ...] = ()


ZERO = Term(0.0, 0)
ONE = Term(1.0, 0)


def bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class Algebra:
    """Builds and stores sums; the numbers in `Term.sums` are positions in `terms`.

    With `only_scalars`, nothing but sums marked as scalars (what a full stream hands to all its readers) is
    taken out of other sums. Curves need everything factored; a programme is better with a task times a sum, which
    is linear, to a product of two sums, which is not.
    """

    def __init__(self, *, only_scalars: bool = False) -> None:
        self._only_scalars = only_scalars
        self._scalars: set[int] = set()
        self.terms: list[tuple[Term, ...]] = []
        self.support: list[int] = []
        self._known: dict[object, int] = {}
        self._restricted: dict[tuple[int, int, int], Term] = {}
        self._replaced: dict[tuple[int, tuple[tuple[int, float], ...]], Term] = {}

    def support_of(self, term: Term) -> int:
        return reduce(lambda mask, s: mask | self.support[s], term.sums, term.tasks)

    def product(self, factors: Iterable[Term]) -> Term:
        coefficient, tasks, sums = 1.0, 0, list[int]()
        for factor in factors:
            coefficient *= factor.coefficient
            tasks |= factor.tasks
            sums += factor.sums
        if coefficient == 0:
            return ZERO
        clash = next((s for s in sums if self.support[s] & tasks), None)
        if clash is None:
            return Term(coefficient, tasks, tuple(sorted(sums)))
        sums.remove(clash)
        given = self.restrict(clash, ones=self.support[clash] & tasks)
        return self.product((Term(coefficient, tasks, tuple(sums)), given))

    def sum(self, terms: Iterable[Term]) -> Term:
        merged: dict[tuple[int, tuple[int, ...]], float] = {}
        for term in terms:
            if term.coefficient:
                key = (term.tasks, term.sums)
                merged[key] = merged.get(key, 0.0) + term.coefficient
        parts = [Term(c, tasks, sums) for (tasks, sums), c in merged.items()]
        if len(parts) < 2:
            return parts[0] if parts else ZERO
        factor = self._common(parts)
        if factor != ONE:
            return self.product((factor, self.sum([_divide(part, factor) for part in parts])))
        groups = self.groups(parts)
        if len(groups) == 1:
            return self._tangled(parts)
        return self._store([self.sum(group) for group in groups])

    def _common(self, parts: list[Term]) -> Term:
        tasks = reduce(lambda mask, part: mask & part.tasks, parts, -1)
        sums = reduce(lambda count, part: count & Counter(part.sums), parts[1:], Counter(parts[0].sums))
        return Term(1.0, tasks, tuple(sorted(s for s in sums.elements() if self._movable(s))))

    def _movable(self, number: int) -> bool:
        return not self._only_scalars or number in self._scalars

    def mark_scalars(self, term: Term) -> Term:
        self._scalars.update(term.sums)
        return term

    def value(self, sums: Iterable[int], tasks: int, known: dict[int, float] | None = None) -> float:
        """The product of these sums when exactly these tasks are replicated."""
        known = {} if known is None else known
        result = 1.0
        for number in sums:
            if number not in known:
                known[number] = sum(
                    t.coefficient * self.value(t.sums, tasks, known)
                    for t in self.terms[number]
                    if t.tasks & tasks == t.tasks
                )
            result *= known[number]
        return result

    def groups(self, parts: Iterable[Term]) -> list[list[Term]]:
        """Terms that share tasks, directly or through others, end up in one group."""
        groups: list[tuple[int, list[Term]]] = []
        for part in parts:
            mask, members = self.support_of(part), [part]
            apart = []
            for group in groups:
                if group[0] & mask:
                    mask |= group[0]
                    members = group[1] + members
                else:
                    apart.append(group)
            groups = [*apart, (mask, members)]
        return [members for _, members in groups]

    def _tangled(self, parts: list[Term]) -> Term:
        """Open what hides a shared sum: plain sums, and x·(a + r) + y·(a + s) = (x + y)·a + x·r + y·s.

        Left closed, `a` would be gated by every task apart, and a relaxation would see the smaller of the
        two where their product is right.
        """
        shared = self._shared_inside(parts)
        opened, changed = list[Term](), False
        for part in parts:
            plain = not part.tasks and not self._only_scalars
            if len(part.sums) == 1 and (plain or self._inside(part) & shared):
                changed = True
                outer = Term(part.coefficient, part.tasks)
                opened += [self.product((outer, term)) for term in self.terms[part.sums[0]]]
            else:
                opened.append(part)
        if changed:
            return self.sum(opened)
        return self._store(self._gathered(parts))

    def _inside(self, part: Term) -> set[int]:
        """Sums that stand alone, as a summand, in the only sum of this term."""
        terms = self.terms[part.sums[0]]
        return {t.sums[0] for t in terms if not t.tasks and len(t.sums) == 1 and self._movable(t.sums[0])}

    def _shared_inside(self, parts: list[Term]) -> set[int]:
        uses = Counter(s for part in parts if len(part.sums) == 1 for s in self._inside(part))
        return {s for s, count in uses.items() if count > 1}

    def _gathered(self, parts: list[Term]) -> list[Term]:
        """Take the sum that most terms share out of those terms."""
        uses = Counter(s for part in parts for s in set(part.sums) if self._movable(s))
        if not uses:
            return parts
        number, count = max(uses.items(), key=lambda item: (item[1], self.support[item[0]].bit_count()))
        if count < 2:
            return parts
        factor = Term(1.0, 0, (number,))
        inner = [_divide(part, factor) for part in parts if number in part.sums]
        rest = [part for part in parts if number not in part.sums]
        return [self.product((factor, self.sum(inner))), *self._gathered(rest)]

    def _store(self, parts: list[Term]) -> Term:
        total = sum(part.coefficient for part in parts)
        parts = sorted(
            (part._replace(coefficient=part.coefficient / total) for part in parts),
            key=lambda part: (part.tasks, part.sums),
        )
        # Rounded, so that the same mix reached along two ways is recognised despite the last digit.
        key = tuple((round(part.coefficient, 12), part.tasks, part.sums) for part in parts)
        if key not in self._known:
            self._known[key] = len(self.terms)
            self.terms.append(tuple(parts))
            self.support.append(reduce(lambda mask, part: mask | self.support_of(part), parts, 0))
        return Term(total, 0, (self._known[key],))

    def restrict(self, number: int, *, ones: int = 0, zeros: int = 0) -> Term:
        """The sum once some tasks are known to be replicated and others not."""
        ones, zeros = ones & self.support[number], zeros & self.support[number]
        if not (ones or zeros):
            return Term(1.0, 0, (number,))
        key = (number, ones, zeros)
        if key not in self._restricted:
            self._restricted[key] = self.sum(
                [self.restrict_term(term, ones=ones, zeros=zeros) for term in self.terms[number]]
            )
        return self._restricted[key]

    def replaced(self, number: int, values: tuple[tuple[int, float], ...]) -> Term:
        """The sum once some sums inside it are known numbers."""
        known = dict(values)
        if number in known:
            return Term(known[number], 0)
        if not any(self.support[s] & self.support[number] for s in known):
            return Term(1.0, 0, (number,))
        key = (number, values)
        if key not in self._replaced:
            self._replaced[key] = self.sum([self.replaced_term(t, values) for t in self.terms[number]])
        return self._replaced[key]

    def replaced_term(self, term: Term, values: tuple[tuple[int, float], ...]) -> Term:
        outer = Term(term.coefficient, term.tasks)
        return self.product([outer, *(self.replaced(s, values) for s in term.sums)])

    def restrict_term(self, term: Term, *, ones: int = 0, zeros: int = 0) -> Term:
        if term.tasks & zeros:
            return ZERO
        outer = Term(term.coefficient, term.tasks & ~ones)
        return self.product([outer, *(self.restrict(s, ones=ones, zeros=zeros) for s in term.sums)])


def _divide(part: Term, factor: Term) -> Term:
    left = Counter(part.sums) - Counter(factor.sums)
    return Term(part.coefficient, part.tasks & ~factor.tasks, tuple(sorted(left.elements())))
