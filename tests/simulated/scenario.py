"""Scenarios that read top to bottom, as text.

    topology word_count
    nodes 3
    scheme passive_standby_hot
    epochs 30

    at epoch 8 kill node-2
    after 0.3 freeze node-1 for 1.5
    expect exact
    expect event promoted
    expect no event diverged

`expect exact`: every epoch is what a run without failures delivers, each once, and the report says so. `expect one
history`: no bag was published with two contents. `expect verdict V`, `expect [no] event KIND`: what the report says.

Settings come first. Then what happens, each line after the one before: `at epoch N` waits until every sink has
delivered so many, `after S` waits so many seconds. The run then goes to its end, and what is expected is checked.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.simulated import topologies
from tests.simulated.cluster import Cluster
from tests.simulated.query import Pace
from understudy.model.names import SliceId
from understudy.model.recovery import Recovery, Scheme

SETTINGS = ("topology", "nodes", "scheme", "reaction", "guarantee", "epochs", "misses", "seed", "spare", "tick")
PATIENCE_S = 600.0


@dataclass(frozen=True)
class Happening:
    """`at_epoch` or `after_s` says when, `verb` and `words` what."""

    verb: str
    words: tuple[str, ...]
    at_epoch: int | None = None
    after_s: float = 0.0

    def __str__(self) -> str:
        when = f"at epoch {self.at_epoch}" if self.at_epoch is not None else f"after {self.after_s:g}"
        return " ".join((when, self.verb, *self.words))


@dataclass(frozen=True)
class Scenario:
    settings: dict[str, str] = field(default_factory=dict)
    happenings: tuple[Happening, ...] = ()
    expected: tuple[str, ...] = ("exact",)

    def __str__(self) -> str:
        lines = [f"{name} {value}" for name, value in self.settings.items()]
        return "\n".join([*lines, "", *map(str, self.happenings), *(f"expect {one}" for one in self.expected)])

    @classmethod
    def parse(cls, text: str) -> Scenario:
        settings: dict[str, str] = {}
        happenings, expected = [], []
        for number, line in enumerate(text.splitlines(), start=1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            if words[0] in SETTINGS and len(words) == 2:
                settings[words[0]] = words[1]
            elif words[0] == "expect":
                expected.append(" ".join(words[1:]))
            elif words[:2] == ["at", "epoch"]:
                happenings.append(Happening(words[3], tuple(words[4:]), at_epoch=int(words[2])))
            elif words[0] == "after":
                happenings.append(Happening(words[2], tuple(words[3:]), after_s=float(words[1])))
            else:
                raise ValueError(f"line {number} is not understood: {line}")
        return cls(settings, tuple(happenings), tuple(expected or ["exact"]))


class Run:
    """One run of a scenario."""

    def __init__(self, scenario: Scenario, home: Path) -> None:
        self.scenario, settings = scenario, dict(scenario.settings)
        recovery = Recovery(guarantee=settings["guarantee"]) if "guarantee" in settings else None
        make = getattr(topologies, settings.get("topology", "word_count"))
        options: dict[str, Any] = {name: settings[name] for name in ("scheme", "reaction") if name in settings}
        options |= {name: int(settings[name]) for name in ("misses", "seed") if name in settings}
        if "tick" in settings:
            options |= {"tick_s": float(settings["tick"]), "heartbeat_s": float(settings["tick"])}
        self.spare = int(settings.get("spare", "0"))
        self.cluster = Cluster(
            home,
            nodes=int(settings.get("nodes", "3")),
            topology=make(recovery),
            stateful=topologies.STATEFUL,
            epochs=int(settings.get("epochs", "30")),
            pace=Pace(),
            **options,
        )

    def play(self) -> Cluster:
        cluster = self.cluster
        for happening in self.scenario.happenings:
            self._await(happening)
            if self._over():
                break
            self._do(happening.verb, happening.words)
        self._mend()
        cluster.until(self._over, PATIENCE_S)
        for one in self.scenario.expected:
            self._expect(one)
        return cluster

    def _over(self) -> bool:
        return self.cluster.over

    def _await(self, happening: Happening) -> None:
        epoch = happening.at_epoch
        if epoch is None:
            self.cluster.steps(happening.after_s)
        else:
            self.cluster.until(lambda: self.cluster.delivered >= epoch or self._over(), PATIENCE_S)

    def _mend(self) -> None:
        """Whatever lasts until somebody ends it: every stall must end by itself from here on."""
        cluster = self.cluster
        cluster.world.fill_disk(lambda: False)
        cluster.heal()
        while len(cluster.nodes) < max(1, self.spare):
            cluster.start_node()

    def _do(self, verb: str, words: tuple[str, ...]) -> None:
        cluster = self.cluster
        lasts_s = float(words[words.index("for") + 1]) if "for" in words else None
        verbs: dict[str, Callable[..., Any]] = {
            "kill": cluster.kill,
            "kill-jvm": cluster.kill_jvm,
            "freeze": cluster.freeze,
            "freeze-jvm": cluster.freeze_jvm,
            "thaw": cluster.thaw,
            "restart": cluster.restart,
            "cut-off": cluster.cut_off,
            "partition": cluster.partition,
        }
        if verb in verbs:
            if words[0] in cluster.nodes:
                verbs[verb](words[0])
        else:
            getattr(self, f"_{verb.replace('-', '_')}")(*words)
        if lasts_s is not None:
            cluster.steps(lasts_s)
            if words[0] in cluster.nodes:
                cluster.thaw(words[0])

    def _join(self) -> None:
        self.cluster.start_node()

    def _heal(self) -> None:
        self.cluster.heal()

    def _restart_manager(self) -> None:
        self.cluster.restart_manager()

    def _lose_power(self) -> None:
        self.cluster.lose_power()

    def _pause_manager(self, seconds: str) -> None:
        self.cluster.pause_manager(float(seconds))

    def _fill_disk(self, *words: str) -> None:
        """For so many seconds."""
        until = self.cluster.now + float(words[-1])
        self.cluster.world.fill_disk(lambda: self.cluster.now < until)

    def _fail(self, slice_name: str) -> None:
        self.cluster.fail(SliceId.parse(slice_name))

    def _damage(self, slice_name: str, back: str = "0") -> None:
        self.cluster.damage(SliceId.parse(slice_name), int(back))

    def _damage_checkpoint(self, slice_name: str) -> None:
        self.cluster.world.stores[SliceId.parse(slice_name)].damage_newest()

    def _tear(self) -> None:
        self.cluster.tear()

    def _switch(self, slice_name: str, scheme: str) -> None:
        self.cluster.switch(SliceId.parse(slice_name), Scheme(scheme))

    def _slow(self, node: str, factor: str) -> None:
        if node in self.cluster.nodes:
            self.cluster.nodes[node].slow_down(float(factor))

    def _step_clock(self, seconds: str) -> None:
        self.cluster.wall_offset += float(seconds)

    def _drift(self, node: str, factor: str) -> None:
        if node in self.cluster.nodes:
            self.cluster.nodes[node].host.drift = float(factor)

    def _expect(self, what: str) -> None:
        cluster, words = self.cluster, what.split()
        if what == "exact":
            cluster.check_output()
            assert cluster.manager.report().verdict == "exact", cluster.story()
        elif what == "one history":
            cluster.check_one_history()
        elif words[0] == "verdict":
            assert cluster.manager.report().verdict == " ".join(words[1:]), cluster.story()
        elif words[:2] == ["no", "event"]:
            assert words[2] not in set(self._kinds()), cluster.story(100)
        elif words[0] == "event":
            assert words[1] in set(self._kinds()), cluster.story(100)
        else:
            raise ValueError(f"nothing like this can be expected: {what}")

    def _kinds(self) -> Iterator[str]:
        return (event.kind for event in self.cluster.store.events())


def play(scenario: Scenario) -> Cluster:
    """Runs a scenario to its end; raises what is not as expected."""
    with tempfile.TemporaryDirectory() as home:
        return Run(scenario, Path(home)).play()
