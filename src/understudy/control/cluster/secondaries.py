"""Secondaries: who needs one, where it goes, whether it can take over, and how well a slice is protected by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from understudy.control.cluster.placement import candidates
from understudy.control.cluster.sites import DEFAULT, Placing, Sites, apart
from understudy.control.cluster.suggestions import Origin, Suggestion
from understudy.control.cluster.weights import Weights
from understudy.model.capabilities import OFF, ROWS, rank, reached
from understudy.model.config import RecoverySection
from understudy.model.layout import Kind, Layout, Vertex
from understudy.model.messages import ReplicaStatus, State
from understudy.model.recovery import Guarantee, Scheme
from understudy.model.snapshot import Alarms, Assignment, NodeView, Secondary

BEST = Scheme.ACTIVE_REPLICATION


def strongest(vertex: Vertex, passive: bool) -> Scheme:
    """The scheme an operator can have at most; `passive`: its replicas have disagreed.

    Two replicas may work only where both come to the same result. Loading a state ahead runs the last batch again, so
    that too needs an operator that comes to the same state. Where no state is kept (`amnesia`), there is nothing that a
    secondary could follow, and one that began to work beside its primary would lack what came before.
    """
    if vertex.stateful and vertex.recovery.guarantee == Guarantee.AMNESIA:
        return Scheme.DEPLOYED
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
    return _healthy(assignment, assignment.secondary, nodes)


def mover(assignment: Assignment) -> Secondary | None:
    """Where a move has a replica already. It can take over as a secondary can."""
    moving = assignment.moving
    return Secondary(moving.node, moving.generation) if moving and moving.generation else None


def healthy_mover(assignment: Assignment, nodes: Mapping[str, NodeView]) -> ReplicaStatus | None:
    return _healthy(assignment, mover(assignment), nodes)


def _healthy(assignment: Assignment, placed: Secondary | None, nodes: Mapping[str, NodeView]) -> ReplicaStatus | None:
    node = nodes.get(placed.node) if placed else None
    if placed is None or node is None or not node.connected:
        return None
    found = node.hosting(assignment.slice, placed.generation)
    return found if found is not None and found.state is not State.FAILED else None


def successor(assignment: Assignment, nodes: Mapping[str, NodeView]) -> Secondary | None:
    """Who would take over now: the secondary or, if it is nearer to that, the replica of a move."""
    able = [(s, found) for s in (assignment.secondary, mover(assignment)) if (found := _healthy(assignment, s, nodes))]
    best = max(able, key=lambda one: (rank(reached(one[1].capabilities)), one[1].epoch), default=None)
    return None if best is None else best[0]


def promote(
    assignment: Assignment, reason: str, origin: Origin = Origin.RECOVERY, to: Secondary | None = None
) -> Suggestion:
    """The secondary, or the replica of a move, becomes the primary as it is, under the generation it has."""
    placed = to or assignment.secondary
    if placed is None:
        raise ValueError(f"{assignment.slice} has no secondary")
    text = f"{assignment.slice} is taken over by {placed.node}, which stood by: {reason}"
    return Suggestion(origin, promoted(assignment, placed), text)


def promoted(assignment: Assignment, placed: Secondary) -> Assignment:
    """What is left of the secondary and of the move: only those whose generation is above the new primary's."""
    others = [one for one in (assignment.secondary, mover(assignment)) if one and one.generation > placed.generation]
    after = replace(assignment.without_mover().alone(), node=placed.node, generation=placed.generation, alarms=Alarms())
    moving = after.moving
    if moving is None or placed == mover(assignment):
        return replace(after, secondary=assignment.secondary if assignment.secondary in others else None, moving=None)
    if not moving.primary:
        # The secondary that was to go elsewhere is the primary now; its successor is its secondary.
        return replace(after, secondary=others[0] if others else None, moving=None)
    return replace(after, moving=replace(moving, generation=others[0].generation if others else 0))


def protection(assignment: Assignment, nodes: Mapping[str, NodeView]) -> Scheme:
    """The scheme that protects a slice right now, whatever was asked for."""
    if assignment.scheme is Scheme.NONE:
        return Scheme.NONE
    found = [Scheme.PASSIVE_REPLICATION]
    secondary, moving = healthy_secondary(assignment, nodes), healthy_mover(assignment, nodes)
    if secondary is not None:
        # A reaction to one missed heartbeat is not a better scheme.
        found.append(min(_offered(secondary), assignment.scheme if assignment.standing_in else BEST, key=rank))
    if moving is not None:
        # Nor is a move.
        found.append(min(_offered(moving), assignment.scheme, key=rank))
    return max(found, key=rank)


def _offered(replica: ReplicaStatus) -> Scheme:
    """The scheme whose protection a replica gives. One that works and is behind would have to catch up first."""
    behind = replica.throttled or replica.late
    return min(reached(replica.capabilities), Scheme.PASSIVE_STANDBY_HOT if behind else BEST, key=rank)


def suggest_secondaries(
    assignments: Iterable[Assignment],
    nodes: Mapping[str, NodeView],
    layout: Layout,
    limits: RecoverySection,
    placing: Placing | None = None,
    *,
    others_first: bool = False,
) -> Iterator[Suggestion]:
    """Suggests to place missing secondaries, to remove those that failed or are not wanted, and to forgive failures.

    `others_first`: somebody else needs the CPU more, so nothing is placed now.
    """
    known = list(assignments)
    sites: Sites | None = None
    for assignment in known:
        changed = _without_failed_secondary(assignment, nodes, limits)
        if changed is None:
            continue
        wanted = changed.secondary is None and ROWS[changed.scheme] != OFF and not others_first
        if wanted and _may_start(changed, nodes):
            sites = sites or Sites(nodes, known, placing or Placing(DEFAULT, Weights(layout)))
            changed = _place_secondary(changed, nodes, sites) or changed
        if changed != assignment:
            yield Suggestion(Origin.SECONDARY, changed, _why(assignment, changed, limits.rest_epochs))


def _may_start(assignment: Assignment, nodes: Mapping[str, NodeView]) -> bool:
    """Starting a secondary takes its host a second or two of CPU; the primary must be back first."""
    primary = _primary(assignment, nodes)
    return primary is not None and primary.is_back and primary.epoch >= assignment.rests_until


def _primary(assignment: Assignment, nodes: Mapping[str, NodeView]) -> ReplicaStatus | None:
    node = nodes.get(assignment.node)
    return node.hosting(assignment.slice, assignment.generation) if node else None


def _without_failed_secondary(
    assignment: Assignment, nodes: Mapping[str, NodeView], limits: RecoverySection
) -> Assignment | None:
    """Returns the assignment to work on, without a secondary that failed or is not wanted, or with earlier failures of
    secondaries forgiven. Returns None while the secondary is well or still starting."""
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


def _place_secondary(assignment: Assignment, nodes: Mapping[str, NodeView], sites: Sites) -> Assignment | None:
    """On another node, in another domain if there is one, on a standby node if there is one; the rule says which."""
    able = apart(_free(assignment, nodes), nodes.get(assignment.node))
    if not able:
        return None
    chosen = sites.choose(assignment.node, [node.name for node in able])
    sites.stand_by(assignment, chosen)
    generation = assignment.next_generation
    return replace(assignment, secondary=Secondary(chosen, generation), issued=generation)


def _free(assignment: Assignment, nodes: Mapping[str, NodeView]) -> list[NodeView]:
    """Nodes that could take the secondary of a slice."""
    taken = {assignment.node, assignment.moving.node if assignment.moving else ""}
    return [node for node in candidates(nodes.values(), standby=True) if node.name not in taken]


def placeable(assignment: Assignment, nodes: Mapping[str, NodeView]) -> bool:
    """Whether a secondary that is missing will come: there is a node for it, and the slice does not go without."""
    primary = _primary(assignment, nodes)
    rests = primary is not None and primary.epoch < assignment.rests_until
    return bool(_free(assignment, nodes)) and not rests


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
