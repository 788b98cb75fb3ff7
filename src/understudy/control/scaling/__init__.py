"""How many nodes a run should have: policies by name, one file each, and what limits them.

- `sample.py` is what policies read: how busy the nodes were, at some moments.
- `target_cpu`, `lag`, `schedule`, `predictive` are the policies. A new one is a file here and a line in `POLICIES`.
- `limits.py` keeps what they suggest between bounds, and calm.

May import `model` and `errors`. `control/cluster/scaling.py` carries it out. Start with `target_cpu`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from understudy.control.scaling import lag, predictive, schedule, target_cpu
from understudy.control.scaling.sample import Policy
from understudy.errors import InvalidInput
from understudy.model.config import ScalingSection

POLICIES: Mapping[str, Policy] = MappingProxyType(
    {
        "target_cpu": target_cpu.suggest,
        "lag": lag.suggest,
        "schedule": schedule.suggest,
        "predictive": predictive.suggest,
    }
)


def named(name: str) -> Policy:
    """The policy of this name; raises InvalidInput if there is none."""
    if name not in POLICIES:
        raise InvalidInput(
            f"no scaling policy is called {name!r}",
            why="scaling.policy names who suggests the number of nodes",
            fix=f"choose one of: {', '.join(POLICIES)}",
        )
    return POLICIES[name]


def check(limits: ScalingSection) -> None:
    """Raises InvalidInput where the section makes no sense."""
    if limits.policy is None:
        return
    if named(limits.policy) is schedule.suggest:
        schedule.parse(limits.schedule)
    if limits.min_nodes > limits.max_nodes:
        raise InvalidInput(
            f"scaling.min_nodes = {limits.min_nodes} with scaling.max_nodes = {limits.max_nodes}",
            why="no number of nodes is between them",
            fix="give a smaller least number, or a larger largest one",
        )
    given = [bool(one) for one in (limits.start_command, limits.stop_command, limits.list_command)]
    if any(given) and not all(given):
        raise InvalidInput(
            "only some of scaling.start_command, stop_command and list_command are given",
            why="nodes that are started elsewhere must also be found and stopped there",
            fix="give all three, or none to start processes of this machine",
        )
