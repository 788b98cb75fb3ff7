"""Tentative branches: when one opens, what it does without, which forks it has, and when it is dropped.

A slice whose primary does not work for longer than the topology's `tentative_after` is missing. Then every slice that
reads from it, directly or not, gets a fork beside its primary, and the sinks write what the forks make as tentative
output (Su and Zhou 2016, §II; delay, process, correct: Balazinska et al. 2008). Stable replicas are not touched:
nothing here changes an assignment, so exactness does not depend on these rules.

A missing slice that is back and has caught up joins the branch. When none is missing and the stable sinks have caught
up with the tentative ones, the branch is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from understudy.control.cluster.branch_view import View
from understudy.control.cluster.instructions import SetBranch
from understudy.control.cluster.snapshot import Memory
from understudy.model.branch import Branch, Fork
from understudy.model.layout import Kind
from understudy.model.messages import ReplicaStatus, State
from understudy.model.names import SliceId
from understudy.model.snapshot import Assignment

CAUGHT_UP = 1
"""Epochs a slice that is back may be behind its input when the branch begins to wait for it."""
MOST_FAILURES = 3
"""A fork that fails more often is given up; its slice then counts as missing until the branch is dropped."""


def branch(view: View) -> tuple[list[SetBranch], Memory]:
    """The change of the branch, if there is one, and the memory of who is absent since when."""
    snapshot = view.snapshot
    if snapshot.tentative_s is None:
        return [], snapshot.memory
    absent = _absent(view)
    memory = replace(snapshot.memory, absent=MappingProxyType(absent))
    current = snapshot.branch
    changed = _opened(view, absent) if current is None else _gone_on(view, current, absent)
    if changed == current:
        return [], memory
    away_s = max((snapshot.age_s - since for since in absent.values()), default=0.0) if current is None else None
    return [SetBranch(changed, _why(current, changed, snapshot.age_s), away_s)], memory


# -- who is missing


def _absent(view: View) -> dict[SliceId, float]:
    """Slices that do not work now, and since which age of the run."""
    now, known = view.snapshot.age_s, view.snapshot.memory.absent
    found = {}
    for slice_id, assignment in view.assigned.items():
        if view.layout[slice_id.operator].kind is not Kind.SINK:
            silent_s = _not_working_s(view, assignment)
            if silent_s is not None:
                found[slice_id] = min(known.get(slice_id, now), now - silent_s)
    return found


def _not_working_s(view: View, assignment: Assignment) -> float | None:
    """For how long its node is known to be silent if the primary of a slice does not work; None if it works."""
    node = view.nodes.get(assignment.node)
    silent_s = max(node.silent_s, node.jvm_silent_s) if node else 0.0
    if view.is_covered(assignment):
        return None
    replica = view.primary(assignment.slice)
    if replica is None or replica.state is State.FAILED or not replica.capabilities.processes:
        return silent_s
    if not replica.steps.done and replica.behind > 0:
        # It is back and replays.
        return silent_s
    return silent_s if node is not None and view.is_silent(node) else None


def _missing(view: View, current: Branch | None, absent: Mapping[SliceId, float]) -> tuple[SliceId, ...]:
    """Who is missing from now on: absent for too long, back and not caught up yet, or its fork was given up."""
    limit = view.snapshot.age_s - (view.snapshot.tentative_s or 0.0)
    found = {slice_id for slice_id, since in absent.items() if since <= limit}
    if current is not None:
        found |= {one for one in current.missing if one in absent or not _has_caught_up(view, one)}
        found |= {one for one, failures in current.failed if failures > MOST_FAILURES}
    return tuple(sorted(found))


def _has_caught_up(view: View, slice_id: SliceId) -> bool:
    replica = view.primary(slice_id)
    return replica is not None and replica.behind <= CAUGHT_UP


# -- opening, going on, dropping


def _opened(view: View, absent: Mapping[SliceId, float]) -> Branch | None:
    missing = _missing(view, None, absent)
    if not missing or not view.is_worthwhile(missing) or not view.has_begun():
        return None
    opened = Branch(view.snapshot.last_branch + 1, view.snapshot.age_s, missing, missing)
    return _forked(view, opened)


def _gone_on(view: View, current: Branch, absent: Mapping[SliceId, float]) -> Branch | None:
    missing = _missing(view, current, absent)
    if not missing and _have_caught_up(view, current):
        return None
    return _forked(view, current.without(missing) if missing != current.missing else current)


def _have_caught_up(view: View, current: Branch) -> bool:
    """Whether every stable sink has delivered all but the newest of what its fork has written."""
    for fork in current.forks:
        if view.layout[fork.slice.operator].kind is Kind.SINK:
            replica = _fork_of(view, current, fork)
            if replica is not None and view.snapshot.delivered.get(fork.slice.operator, 0) < replica.epoch:
                return False
    return True


# -- forks


def _forked(view: View, current: Branch) -> Branch:
    """The branch with the forks it needs: lost ones begin anew, and slices that are missing have none."""
    known, failed, issued = current.by_slice, dict(current.failed), dict(current.issued)
    forks = []
    for slice_id in sorted(_wanted(view, current)):
        fork = known.get(slice_id)
        replica = _fork_of(view, current, fork) if fork else None
        if replica is not None and replica.state is State.FAILED:
            failed[slice_id] = failed.get(slice_id, 0) + 1
        elif fork is not None and fork.node in view.nodes:
            forks.append(fork)
            continue
        host = _host(view, slice_id)
        if host is not None and failed.get(slice_id, 0) <= MOST_FAILURES:
            issued[slice_id] = issued.get(slice_id, 0) + 1
            forks.append(Fork(slice_id, host, issued[slice_id]))
    return replace(
        current, forks=tuple(forks), failed=tuple(sorted(failed.items())), issued=tuple(sorted(issued.items()))
    )


def _wanted(view: View, current: Branch) -> set[SliceId]:
    """Slices that have to work without what is missing; operators only where their primary's node is heard."""
    operators = view.forkable(current.named)
    # A sink that gets nothing has nothing to show.
    sinks = view.fed(current.missing).intersection(view.sinks(current.named))
    return (operators - set(current.missing)) | sinks


def _host(view: View, slice_id: SliceId) -> str | None:
    """Where its primary is; for a sink whose node is silent, the node with the least to do."""
    if view.is_heard(slice_id):
        return view.assigned[slice_id].node
    others = sorted(view.hosts, key=lambda node: (len(node.replicas) + len(node.forks), node.name))
    return others[0].name if others else None


def _fork_of(view: View, current: Branch, fork: Fork) -> ReplicaStatus | None:
    node = view.nodes.get(fork.node)
    return node.forking(current.number, fork.slice, fork.generation) if node else None


# -- sentences


def _why(before: Branch | None, after: Branch | None, now: float) -> str:
    if before is None and after is not None:
        return f"tentative output begins: {_named(after.missing)} missing"
    if before is not None and after is None:
        return f"the stable output has caught up: tentative output ends after {now - before.opened_s:.1f} s"
    if before is None or after is None or before.missing == after.missing:
        return "a fork begins or ends"
    if not after.missing:
        return "nothing is missing any more: the stable output catches up"
    return f"tentative output goes on without {_names(after.missing)}"


def _named(slices: tuple[SliceId, ...]) -> str:
    return f"{_names(slices)} {'is' if len(slices) == 1 else 'are'}"


def _names(slices: tuple[SliceId, ...]) -> str:
    return ", ".join(map(str, slices))
