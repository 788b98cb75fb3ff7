"""Where a replica goes, given what every host carries: rules by name, one file each.

- `question.py` is all that a rule reads.
- `interleaved`, `chained`, `least_loaded` are the rules. A new one is a file here and a line in `RULES`.

Live nodes are placed by them (`control/cluster/sites.py`), and so are the hosts of a plan (`planning/availability`).
May import `model` and `errors`. Start with `interleaved`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from understudy.control.placement import chained, interleaved, least_loaded
from understudy.control.placement.question import Question, Rule
from understudy.errors import InvalidInput

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "least_loaded": least_loaded.choose,
        "interleaved": interleaved.choose,
        "chained": chained.choose,
    }
)

__all__ = ["RULES", "Question", "Rule", "named"]


def named(name: str) -> Rule:
    """The rule of this name; raises InvalidInput if there is none."""
    if name not in RULES:
        raise InvalidInput(
            f"no placement is called {name!r}",
            why="cluster.placement names one of the rules by which secondaries are placed",
            fix=f"choose one of: {', '.join(RULES)}",
        )
    return RULES[name]
