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
history`: no bag was published with two contents. `expect tentative`: some sink wrote an epoch tentatively; `exact`
includes that all of these were corrected. `expect verdict V`, `expect [no] event KIND`: what the report says.
`expect at most N KIND`: so many events, or `bags` of one slice at once.

Settings come first. Then what happens, each line after the one before: `at epoch N` waits until the sink has
delivered so many, `after S` waits so many seconds. The run then goes to its end, and what is expected is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.simulated import topologies
from tests.simulated.cluster import Cluster
from tests.simulated.query import Pace
from understudy.model.names import SliceId
from understudy.model.recovery import Recovery, Scheme

SETTINGS = (
    *("topology", "nodes", "scheme", "reaction", "guarantee", "epochs", "misses", "seed", "spare", "tick"),
    *("domains", "standby_nodes", "budget", "at_once", "tentative", "pace", "placement", "rebalance", "start"),
)
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

    def __init__(self, scenario: Scenario, home: Path | None = None) -> None:
        self.scenario, settings = scenario, dict(scenario.settings)
        recovery = Recovery(guarantee=settings["guarantee"]) if "guarantee" in settings else None
        make = getattr(topologies, settings.get("topology", "word_count"))
        options: dict[str, Any] = {name: settings[name] for name in ("scheme", "reaction") if name in settings}
        numbers = ("misses", "seed", "domains", "standby_nodes", "budget")
        options |= {name: int(settings[name]) for name in numbers if name in settings}
        config: dict[str, dict[str, Any]] = {"cluster": {}}
        if "at_once" in settings:
            config["recovery"] = {"at_once": int(settings["at_once"])}
        if "start" in settings:
            config["cluster"]["start_s"] = float(settings["start"])
        placed: dict[str, Any] = {name: settings[name] for name in ("placement", "rebalance") if name in settings}
        if placed:
            config["cluster"] |= placed | {"rebalance_after_s": 0.5}
        options["config"] = config
        if "tick" in settings:
            options |= {"tick_s": float(settings["tick"]), "heartbeat_s": float(settings["tick"])}
        self.spare = int(settings.get("spare", "0"))
        topology = make(recovery)
        topology.tentative_s = float(settings["tentative"]) if "tentative" in settings else None
        self.cluster = Cluster(
            home,
            nodes=int(settings.get("nodes", "3")),
            topology=topology,
            stateful=topologies.STATEFUL,
            epochs=int(settings.get("epochs", "30")),
            pace=Pace(start_s=float(settings["pace"])) if "pace" in settings else Pace(),
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
        words = tuple(self._host(word[1:]) if word.startswith("@") else word for word in words)
        lasts_s = float(words[words.index("for") + 1]) if "for" in words else None
        verbs: dict[str, Callable[..., Any]] = {
            "kill": cluster.kill,
            "kill-jvm": cluster.kill_jvm,
            "freeze": cluster.freeze,
            "freeze-jvm": cluster.freeze_jvm,
            "thaw": cluster.thaw,
            "restart": cluster.restart,
            "give-notice": cluster.give_notice,
            "cut-off": cluster.cut_off,
            "partition": cluster.partition,
        }
        if verb in verbs:
            for name in self._named(words[0]):
                verbs[verb](name)
        else:
            getattr(self, f"_{verb.replace('-', '_')}")(*words)
        if lasts_s is not None:
            cluster.steps(lasts_s)
            for name in self._named(words[0]):
                cluster.thaw(name)

    def _named(self, target: str) -> list[str]:
        """A node, or the nodes of a domain, as far as they run."""
        return [target] if target in self.cluster.nodes else self.cluster.of_domain(target)

    def _host(self, slice_name: str) -> str:
        """Where a slice has its primary now."""
        assigned = {str(one.slice): one.node for one in self.cluster.store.assignments()}
        return assigned.get(slice_name, "")

    def _join(self) -> None:
        self.cluster.start_node()

    def _heal(self, *nodes: str) -> None:
        self.cluster.heal(*nodes)

    def _restart_manager(self) -> None:
        self.cluster.restart_manager()

    def _lose_power(self) -> None:
        self.cluster.lose_power()

    def _pause_manager(self, seconds: str) -> None:
        self.cluster.pause_manager(float(seconds))

    def _fill_disk(self, *words: str) -> None:
        """For so many seconds."""
        self.cluster.world.fill_disk(self._until(words[-1]))

    def _break_shipping(self, *words: str) -> None:
        """For so many seconds."""
        self.cluster.world.fill_stores(self._until(words[-1]))

    def _until(self, seconds: str) -> Callable[[], bool]:
        until = self.cluster.now + float(seconds)
        return lambda: self.cluster.now < until

    def _fail(self, slice_name: str) -> None:
        self.cluster.fail(SliceId.parse(slice_name))

    def _damage(self, slice_name: str, back: str = "0") -> None:
        self.cluster.damage(SliceId.parse(slice_name), int(back))

    def _damage_checkpoint(self, slice_name: str) -> None:
        self.cluster.world.stores[SliceId.parse(slice_name)].damage_newest()

    def _tear(self) -> None:
        self.cluster.tear()

    def _move(self, slice_name: str, node: str, how: str = "") -> None:
        self.cluster.move(SliceId.parse(slice_name), node, legacy=how == "legacy")

    def _rebalance(self) -> None:
        self.cluster.rebalance()

    def _drain(self, node: str, *words: str) -> None:
        """`drain node-2`, or `drain node-2 within 3`."""
        self.cluster.drain(node, float(words[1]) if words else None)

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
            self._hold(cluster.manager.report().verdict == "exact", what)
            cluster.check_corrected()
        elif what == "tentative":
            self._hold(bool(cluster.world.tried), what)
        elif what == "exact or failed":
            cluster.check_output()
            self._hold(cluster.manager.report().verdict in ("exact", "failed"), what)
        elif what == "losses told":
            cluster.check_losses()
        elif what == "one history":
            cluster.check_one_history()
        elif words[0] == "verdict":
            self._hold(cluster.manager.report().verdict == " ".join(words[1:]), what)
        elif words[:2] == ["no", "event"]:
            self._hold(words[2] not in set(self._kinds()), what)
        elif words[0] == "event":
            self._hold(words[1] in set(self._kinds()), what)
        elif words[:2] == ["at", "most"]:
            found = cluster.world.log.most if words[3] == "bags" else list(self._kinds()).count(words[3])
            self._hold(found <= int(words[2]), f"{what}, found {found}")
        else:
            raise ValueError(f"nothing like this can be expected: {what}")

    def _hold(self, holds: bool, what: str) -> None:
        cluster = self.cluster
        assert holds, f"expected {what}; the verdict is {cluster.manager.report().verdict}\n{cluster.story(100)}"

    def _kinds(self) -> Iterator[str]:
        return (event.kind for event in self.cluster.store.events())


def play(scenario: Scenario, home: Path | None = None) -> Cluster:
    """Runs a scenario to its end; raises what is not as expected. `home`: see `Cluster`."""
    return Run(scenario, home).play()
