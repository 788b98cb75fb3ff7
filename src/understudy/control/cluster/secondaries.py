"""Secondaries: who needs one, where it goes, whether it can take over, and how well a slice is protected by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from understudy.control.cluster.placement import candidates, weight
from understudy.control.cluster.suggestions import Origin, Suggestion
from understudy.model.capabilities import OFF, ROWS, rank, reached
from understudy.model.config import RecoverySection
from understudy.model.layout import Kind, Layout, Vertex
from understudy.model.messages import ReplicaStatus, State
from understudy.model.recovery import Guarantee, Scheme
from understudy.model.snapshot import Alarms, Assignment, NodeView, Secondary

# What a secondary costs its node, against 1 for a slice that works.
WEIGHTS = {
    Scheme.ACTIVE_REPLICATION: 1.0,
    Scheme.ACTIVE_STANDBY: 1.0,
    Scheme.PASSIVE_STANDBY_HOT: 0.3,
    Scheme.PASSIVE_STANDBY_COLD: 0.2,
    Scheme.DEPLOYED: 0.1,
}


def strongest(vertex: Vertex, passive: bool) -> Scheme:
    """The scheme an operator can have at most; `passive`: its replicas have disagreed.

    Two replicas may work only where both come to the same result. Loading a state ahead runs the last batch again, so
    that too needs an operator that comes to the same state.
    """
    if vertex.deterministic and not passive:
        return Scheme.ACTIVE_REPLICATION
    return Scheme.PASSIVE_STANDBY_COLD if vertex.stateful else Scheme.PASSIVE_STANDBY_HOT


def allowed(scheme: Scheme, vertex: Vertex, passive: bool) -> Scheme:
    """The scheme itself, or the strongest the slice can have; only operators have secondaries."""
    if vertex.kind is not Kind.OPERATOR:
        return Scheme.PASSIVE_REPLICATION
    return min(scheme, strongest(vertex, passive), key=rank)


def initial_scheme(vertex: Vertex, for_all: Scheme | None) -> Scheme:
    """A slice with an objective starts with the strongest scheme; the controller lowers it when it has measured it."""
    own = Scheme.ACTIVE_REPLICATION if vertex.recovery.objective_s is not None else vertex.recovery.scheme
    return allowed(Scheme(for_all or own), vertex, passive=False)


def effective(assignment: Assignment) -> Scheme:
    """The scheme a slice gets now: a throttled secondary stays deployed and does nothing more."""
    scheme = assignment.scheme
    return Scheme.DEPLOYED if assignment.throttle.on and rank(scheme) > rank(Scheme.DEPLOYED) else scheme


def healthy_secondary(assignment: Assignment, nodes: Mapping[str, NodeView]) -> ReplicaStatus | None:
    """The secondary, as far as it is known to be there and well."""
    placed = assignment.secondary
    node = nodes.get(placed.node) if placed else None
    if placed is None or node is None or not node.connected:
        return None
    found = node.hosting(assignment.slice, placed.generation)
    return found if found is not None and found.state is not State.FAILED else None


def promote(assignment: Assignment, reason: str, origin: Origin = Origin.RECOVERY) -> Suggestion:
    """The secondary becomes the primary as it is, under the generation it has."""
    placed = assignment.secondary
    if placed is None:
        raise ValueError(f"{assignment.slice} has no secondary")
    promoted = replace(assignment.alone(), node=placed.node, generation=placed.generation, alarms=Alarms())
    return Suggestion(origin, promoted, f"{assignment.slice} is taken over by {placed.node}, which stood by: {reason}")


def protection(assignment: Assignment, nodes: Mapping[str, NodeView]) -> Scheme:
    """The scheme that protects a slice right now, whatever was asked for."""
    if assignment.scheme is Scheme.NONE:
        return Scheme.NONE
    secondary = healthy_secondary(assignment, nodes)
    if secondary is None:
        return Scheme.PASSIVE_REPLICATION
    found = [reached(secondary.capabilities)]
    if secondary.throttled or secondary.late:
        # One that works and is behind would have to catch up first, as one that waits.
        found.append(Scheme.PASSIVE_STANDBY_HOT)
    if assignment.standing_in:
        # A reaction to one missed heartbeat is not a better scheme.
        found.append(assignment.scheme)
    return min(found, key=rank)


def look_after(
    assignments: Iterable[Assignment], nodes: Mapping[str, NodeView], layout: Layout, limits: RecoverySection
) -> Iterator[Suggestion]:
    """Places secondaries that are missing, removes those that failed or are not wanted, forgives those that made it."""
    known = list(assignments)
    burden = burdens(known)
    for assignment in known:
        changed = _looked_after(assignment, nodes, limits)
        if changed is None:
            continue
        wanted = changed.secondary is None and ROWS[changed.scheme] != OFF
        if wanted and _may_start(changed, nodes):
            changed = _place_secondary(changed, nodes, known, layout, burden) or changed
        if changed != assignment:
            yield Suggestion(Origin.SECONDARY, changed, _why(assignment, changed, limits.rest_epochs))


def _may_start(assignment: Assignment, nodes: Mapping[str, NodeView]) -> bool:
    """Starting a secondary takes its host a second or two of CPU; the primary must be back first."""
    primary = _primary(assignment, nodes)
    return primary is not None and primary.is_back and primary.epoch >= assignment.rests_until


def _primary(assignment: Assignment, nodes: Mapping[str, NodeView]) -> ReplicaStatus | None:
    node = nodes.get(assignment.node)
    return node.hosting(assignment.slice, assignment.generation) if node else None


def _looked_after(assignment: Assignment, nodes: Mapping[str, NodeView], limits: RecoverySection) -> Assignment | None:
    """The assignment without a secondary that is no good; None if its secondary is all right."""
    placed, row = assignment.secondary, ROWS[effective(assignment)]
    if row == OFF:
        return assignment.alone() if placed else None
    if placed is None:
        return assignment
    node = nodes.get(placed.node)
    if node is None or placed.node == assignment.node:
        return assignment.alone()
    replica = node.hosting(assignment.slice, placed.generation)
    if replica is None:
        return None
    if replica.state is State.FAILED:
        return _after_mishap(assignment, nodes, limits)
    if assignment.mishaps and replica.capabilities == row:
        return replace(assignment, mishaps=0, rests_until=0)
    return None


def _after_mishap(assignment: Assignment, nodes: Mapping[str, NodeView], limits: RecoverySection) -> Assignment:
    mishaps, primary = assignment.mishaps + 1, _primary(assignment, nodes)
    too_many = mishaps >= limits.max_secondary_failures
    rests_until = primary.epoch + limits.rest_epochs if primary and too_many else assignment.rests_until
    return replace(assignment.alone(), mishaps=mishaps, rests_until=rests_until)


def _place_secondary(
    assignment: Assignment,
    nodes: Mapping[str, NodeView],
    known: list[Assignment],
    layout: Layout,
    burden: dict[str, float],
) -> Assignment | None:
    """On another node, in another domain if there is one, where there is the least to do."""
    own = nodes.get(assignment.node)
    able = [node for node in candidates(nodes.values()) if node.name != assignment.node]
    apart = [node for node in able if own is None or not node.domain or node.domain != own.domain]
    if not able:
        return None

    def load(node: NodeView) -> tuple[float, str]:
        primaries = sum(weight(other.slice, layout) for other in known if other.node == node.name)
        return primaries + burden.get(node.name, 0.0), node.name

    chosen = min(apart or able, key=load).name
    burden[chosen] = burden.get(chosen, 0.0) + WEIGHTS[assignment.scheme]
    generation = assignment.next_generation
    return replace(assignment, secondary=Secondary(chosen, generation), issued=generation)


def burdens(assignments: Iterable[Assignment]) -> dict[str, float]:
    """What secondaries cost every node."""
    found: dict[str, float] = {}
    for assignment in assignments:
        if assignment.secondary is not None:
            name = assignment.secondary.node
            found[name] = found.get(name, 0.0) + WEIGHTS.get(assignment.scheme, 0.0)
    return found


def _why(before: Assignment, after: Assignment, rest_epochs: int) -> str:
    name, scheme = before.slice, after.scheme.replace("_", " ")
    if after.secondary is not None and after.secondary != before.secondary:
        return f"{name}: {after.secondary.node} stands by, {scheme}"
    if after.mishaps > before.mishaps and after.rests_until > before.rests_until:
        return f"{name} goes without a secondary for {rest_epochs} epochs: {after.mishaps} of them failed in a row"
    if before.secondary is not None and after.secondary is None:
        return f"{name}: {before.secondary.node} stands by no longer"
    return f"{name}: its secondary is all right"


def distrust(
    assignments: Iterable[Assignment], layout: Layout, replicas: Sequence[ReplicaStatus]
) -> Iterator[Suggestion]:
    """Two replicas of a slice disagreed: from now on only one of them works, whatever was asked for."""
    diverged = {replica.slice for replica in replicas if replica.diverged is not None}
    for assignment in assignments:
        vertex = layout[assignment.slice.operator]
        expected = vertex.recovery.guarantee == Guarantee.ROLLBACK or not vertex.deterministic
        if assignment.passive or expected or assignment.slice not in diverged:
            continue
        scheme = allowed(assignment.scheme, vertex, passive=True)
        yield Suggestion(
            Origin.DISTRUST,
            replace(assignment, passive=True, scheme=scheme),
            f"{assignment.slice} is not deterministic, so only one of its replicas may work",
        )
