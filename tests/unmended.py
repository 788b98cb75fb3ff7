"""Takes one mend out at a time and expects that its scenario fails.

    python -m tests.unmended                          # all of them: about a minute
    python -m tests.unmended --only torn_bags         # those of one scenario, with everything they print

The list is `MENDS`: for every defect that was found once and that the simulated cluster can express, the scenario that
shows it, the change of the source that brings the defect back, and words of the message the scenario must then fail
with. `docs/testing.md` has the same list as a table.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.changed import attempt, path_of, preload

SCENARIOS = Path(__file__).parent / "scenarios"


@dataclass(frozen=True)
class Change:
    module: str
    there: str
    instead: str


@dataclass(frozen=True)
class Mend:
    """`says`: words of the message that shows that the scenario fails for the right reason."""

    scenario: str
    what: str
    says: str
    changes: tuple[Change, ...]


def mend(scenario: str, what: str, says: str, *changes: tuple[str, str, str]) -> Mend:
    return Mend(scenario, what, says, tuple(Change(f"understudy.{module}", *rest) for module, *rest in changes))


def sources(of: Mend) -> dict[str, str]:
    """The changed modules. A mend that is not where the list says is an error: the list has to follow the code."""
    found: dict[str, str] = {}
    for change in of.changes:
        source = found.get(change.module) or path_of(change.module).read_text()
        if source.count(change.there) != 1:
            raise ValueError(f"{change.module} has {source.count(change.there)} times: {change.there}")
        found[change.module] = source.replace(change.there, change.instead)
    return found


def check(scenario: str) -> str:
    """What is wrong when a scenario is played, if anything is."""
    from tests.simulated.scenario import Scenario, play

    try:
        play(Scenario.parse((SCENARIOS / f"{scenario}.txt").read_text()))
    except AssertionError as error:
        return str(error) or "an assertion without words"
    return ""


_PATIENT = ("control.cluster.reactions", "return 1 << min(MOST_DOUBLINGS, _unforgiven(alarms, age_s))", "return 1")
_CUTS_OF_ONE = (
    "stream.source",
    "slices = [SliceId(self.slice.operator, index) for index in range(self.vertex.slices)]",
    "slices = [self.slice]",
)
_DID_NOT_END = "did not happen within"

MENDS = (
    mend(
        "live_source_slice_returns_late",
        "cuts are trimmed when all slices have been read",
        "does not know where epoch",
        _CUTS_OF_ONE,
    ),
    mend(
        "live_source_slice_returns_late",
        "and a cut that is gone is an error",
        "are not what a run without failures delivers",
        _CUTS_OF_ONE,
        ("stream.source", "        if epoch in kept:\n", "        if log.recorded(self._cuts, epoch) is not None:\n"),
        (
            "stream.source",
            "        if epoch < kept.stop:\n            raise CutGone(self.slice, epoch, kept)\n        end",
            "        if epoch < kept.stop:\n            return log.record(self._cuts, epoch, reader.cut(epoch, None))\n"
            "        end",
        ),
    ),
    mend(
        "chance_is_called_diverged",
        "a replay that differs is noted",
        "the verdict is exact",
        ("stream.replica", "            self.note_divergence(header.epoch)", "            pass"),
    ),
    mend(
        "what_diverged_is_not_forgotten",
        "what diverged is kept in the manager's database",
        "the verdict is exact",
        ("runtime.memory", 'self.store.keep({"diverged": sorted(str(one) for one in self.diverged)})', "pass"),
    ),
    mend(
        "chance_is_not_loaded_by_running_again",
        "only a deterministic operator loads its state by running the last batch again",
        "a state was loaded that is not the one shipped",
        ("model.layout", "return self.stateful and self.deterministic", "return self.stateful"),
    ),
    *(
        mend(
            f"{guarantee}_has_one_history",
            "a replica that was replaced is fenced",
            "published with two contents",
            (
                "stream.outbox",
                "return not replica.vertex.repeatable and self._log.fenced(replica.slice) > replica.deploy.generation",
                "return False",
            ),
        )
        for guarantee in ("gap", "amnesia")
    ),
    *(
        mend(
            scenario,
            "a JVM that does not move counts as silence of its node",
            f"expected event {event}",
            ("control.cluster.detector", "return max(node.silent_s, node.jvm_silent_s)", "return node.silent_s"),
        )
        for scenario, event in (("jvm_freezes_alone", "standing_in"), ("jvm_never_moves_again", "node_lost"))
    ),
    mend(
        "replica_stalls",
        "a replica that has input and makes nothing of it is suspected",
        "expected event standing_in",
        (
            "control.cluster.detector",
            "    return replica.steps.done and replica.stalled_s",
            "    return False and replica.stalled_s",
        ),
    ),
    mend(
        "replica_is_stuck",
        "a replica that never makes anything of its input counts as failed",
        _DID_NOT_END,
        ("control.cluster.recovering", "    if not is_stuck(replica, limits):", "    if True:"),
    ),
    mend(
        "everybody_is_late",
        "the silence of a node is compared with that of the others",
        "expected no event standing_in",
        (
            "control.cluster.detector",
            "return quiet_s > allowed and quiet_s > self.limits.others_factor * self.lateness(node, known)",
            "return quiet_s > allowed",
        ),
    ),
    mend(
        "false_alarms_are_damped",
        "a slice doubles its patience with every false alarm, and few secondaries a minute may stand in",
        "found 9",
        _PATIENT,
        (
            "control.cluster.reactions",
            "left = limits.stand_ins_per_minute - sum(_unproven(assignment, nodes, age_s) for assignment in known)",
            "left = 1000",
        ),
    ),
    mend(
        "torn_bags",
        "all damaged bags are reported at once, and none of them counts as a failure",
        "the verdict is failed",
        (
            "stream.replica",
            "found = {(one, e) for one in slices for e in log.damaged(one, log.acknowledged(self.slice, one) + 1)}",
            "found: set[tuple[SliceId, int]] = set()",
        ),
        (
            "control.cluster.recovering",
            "    if not failure.damaged:\n        return replace(assignment, failures",
            "    if True:\n        return replace(assignment, failures",
        ),
    ),
    mend(
        "damaged_bag_of_a_stalled_reader",
        "a checkpoint stays from before the oldest bag a reader may ask for",
        "needs epoch 0 of lines[0], which is gone",
        ("control.replica.retention", "if n >= NEWEST - 1 and epoch <= released", "if n >= NEWEST - 1"),
    ),
    mend(
        "damaged_checkpoint",
        "input is given away up to the base only, not up to the newest checkpoint",
        "which is gone",
        ("control.replica.retention", "-1 if found is None else epochs[found]", "-1 if found is None else epochs[0]"),
    ),
    mend(
        "clock_steps_back",
        "a restarted manager does not believe a time of day from before the run",
        _DID_NOT_END,
        ("runtime.clock", "max(wall() - rhythm.time, least, 0.0)", "wall() - rhythm.time"),
    ),
    mend(
        "manager_paused",
        "the manager's own pauses are no silence of the nodes",
        "expected no event node_lost",
        ("runtime.manager", "self.observer.members.forgive(away_s, self.clock.now())", "pass"),
    ),
    mend(
        "sink_stands_still",
        "a slice works at most so many epochs ahead of its slowest reader",
        "expected at most 220 bags",
        (
            "stream.context",
            "return behind < 0 or all(self._progress(reader) >= behind for reader in self.layout.readers(slice_id))",
            "return True",
        ),
    ),
    mend(
        "shipping_never_works_again",
        "a replica that cannot ship for a minute fails",
        "expected verdict failed; the verdict is exact",
        ("stream.shipper", "if self._failures.too_many(now, self._replica.context.shipping):", "if False:"),
    ),
    mend(
        "power_cut_after_a_take_over",
        "bags are synced before the marker that covers them is written",
        _DID_NOT_END,
        (
            "control.replica.shipping",
            "Stage.TRIM if view.fenced else Stage.SETTLE",
            "Stage.TRIM if view.fenced else Stage.SHIP",
        ),
    ),
    mend(
        "power_cut_after_a_take_over",
        "a standby holds back every bag that is not there, also below the newest",
        _DID_NOT_END,
        (
            "stream.outbox",
            "        return there or epoch <= self._replica.context.released(slice_id)\n",
            "        return True\n",
        ),
    ),
    mend(
        "sink_finds_what_its_predecessor_delivered",
        "a sink skips what its predecessor delivered",
        _DID_NOT_END,
        ("control.replica.ends", "    if view.delivered >= view.epoch:", "    if False:"),
    ),
    mend(
        "answer_to_the_check_is_lost",
        "a node that lost its connection is asked again to check the topology",
        _DID_NOT_END,
        ("runtime.memory", "if self.phase is Phase.CHECKING and node == self.checked_by:", "if False:"),
    ),
)


def attempt_all(mends: Sequence[Mend]) -> int:
    """Returns how many scenarios did not fail as they should."""
    wrong = 0
    for one in mends:
        said = attempt(sources(one), partial(check, one.scenario))
        fails = one.says in said
        wrong += not fails
        if fails:
            print(f"fails:   {one.scenario}, without: {one.what}", flush=True)
        else:
            print(
                f"PASSES:  {one.scenario}, without: {one.what}" if not said else f"WRONG:   {one}\n{said}", flush=True
            )
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted({one.scenario for one in MENDS}), metavar="SCENARIO")
    only = parser.parse_args().only
    mends = [one for one in MENDS if only in (None, one.scenario)]
    preload(("tests.simulated.scenario",))
    broken = [one for one in dict.fromkeys(one.scenario for one in mends) if attempt({}, partial(check, one))]
    if broken:
        sys.exit(f"these fail on the code as it is: {', '.join(broken)}")
    wrong = attempt_all(mends)
    print(f"{len(mends) - wrong} of {len(mends)} scenarios failed without their mend")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
