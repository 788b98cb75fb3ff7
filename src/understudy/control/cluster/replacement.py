"""When a lost node is replaced."""

from __future__ import annotations

from understudy.model.config import ClusterSection
from understudy.model.view import RunState, SliceState


def may_replace(state: RunState, missing_s: float, running: int, limits: ClusterSection) -> bool:
    """First those who are left bring the slices back, and protect them again as well as they can.

    A JVM that starts beside them would only delay that. With one node left nobody can stand by, and with none nothing
    would ever come back.

    Nodes that were given up and still run (`running` counts them) are frozen, or the machine is full. On a full machine
    every new node silences others, which would be replaced in turn, without end: so their number is limited.
    """
    if running >= limits.replace_factor * limits.all_nodes:
        return False
    ready = sum(node.ready and node.connected for node in state.nodes)
    back = all(one.state == "running" and (ready < 2 or _protected(one)) for one in state.slices)
    return back or ready == 0 or missing_s >= limits.replace_after_s


def _protected(one: SliceState) -> bool:
    """As well as there is room for."""
    return one.throttled or one.protection == one.scheme
