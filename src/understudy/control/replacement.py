"""When a lost node is replaced."""

from __future__ import annotations

from understudy.model.view import RunState

PATIENCE_S = 20.0


def may_replace(state: RunState, missing_s: float) -> bool:
    """First those who are left bring the slices back, and protect them again as well as they can.

    A JVM that starts beside them would only delay that. With one node left nobody can stand by, and with none nothing
    would ever come back.
    """
    ready = sum(node.ready and node.connected for node in state.nodes)
    back = all(one.state == "running" and (ready < 2 or one.protection == one.scheme) for one in state.slices)
    return back or ready == 0 or missing_s >= PATIENCE_S
