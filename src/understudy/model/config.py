"""Everything that can be configured: typed sections, each value with its default, its bounds and one explanation.

This is the only list of them. The file `understudy.toml`, environment variables, options of `understudy run` and
docs/configuration.md are derived from it by `understudy.config`. Names carry units: `_s` seconds, `_bytes` bytes.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from understudy.errors import InvalidInput
from understudy.model import address
from understudy.model.durations import seconds
from understudy.model.recovery import Reaction, Scheme

_UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
MIB = 2**20


class Detectors(StrEnum):
    """Who is slow: by missed heartbeats alone, or also by the time a node needs for a known piece of work."""

    HEARTBEAT = "heartbeat"
    BENCHMARK = "benchmark"


class ProfileName(StrEnum):
    """How the JVM of a node is tuned; `stream/profile.py` has the settings of each."""

    QUICK = "quick"
    FULL = "full"


def setting(
    default: Any,
    text: str,
    *,
    option: str | None = None,
    least: float | None = None,
    most: float | None = None,
    unset: str = "",
    pattern: str | None = None,
    like: str = "",
) -> Any:
    """A field of a section.

    `option`: of `understudy run`. `unset`: what holds while an optional value is not given. `like`: an example of a
    value, for messages where the default is none.
    """
    notes = {"option": option, "unset": unset, "like": like}
    return Field(default, description=text, ge=least, le=most, pattern=pattern, json_schema_extra={**notes})


def _duration(value: Any) -> Any:
    """As `seconds`; text without a unit is accepted too, because the name of a key carries it."""
    if not isinstance(value, str):
        return value
    if re.fullmatch(r"\d+(\.\d+)?", value.strip()):
        return float(value)
    try:
        return seconds(value)
    except InvalidInput as error:
        raise ValueError(str(error)) from None


def _size(value: Any) -> Any:
    """A number of bytes, or text like "64 MiB"."""
    match = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", value.lower()) if isinstance(value, str) else None
    if match is None:
        return value
    unit = _UNITS.get(match[2] or "b")
    return value if unit is None else int(match[1]) * unit


def _spark(value: Any) -> Any:
    """Settings of Spark by their full names. TOML makes tables of names with dots, so tables are flattened again."""
    if not isinstance(value, dict):
        return value
    flat: dict[str, str] = {}
    for name, entry in value.items():
        full = name if name == "spark" or name.startswith("spark.") else f"spark.{name}"
        if isinstance(entry, dict):
            flat |= _spark({f"{full}.{inner}": one for inner, one in entry.items()})
        elif isinstance(entry, bool):
            flat[full] = str(entry).lower()
        else:
            flat[full] = str(entry)
    return flat


def _address(name: str) -> AfterValidator:
    """An address, with an error that names the setting and leaves credentials out."""

    def check(value: str) -> str:
        address.parse(value, name)
        return value

    return AfterValidator(check)


Seconds = Annotated[float, BeforeValidator(_duration)]
Bytes = Annotated[int, BeforeValidator(_size)]
SparkSettings = Annotated[dict[str, str], BeforeValidator(_spark)]


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ClusterSection(Section):
    """The nodes of a run."""

    nodes: int = setting(3, "How many nodes to start.", option="--nodes", least=1)
    master: str = setting("local[1]", "Spark master of every node.", option="--master")
    domains: int = setting(
        0, "Spread the nodes over so many failure domains; 0: each stands alone.", option="--domains", least=0
    )
    standby_nodes: int = setting(
        0,
        "Nodes besides these that host only secondaries until a recovery needs them.",
        option="--standby-nodes",
        least=0,
    )
    placement: str = setting(
        "least_loaded",
        "Where secondaries stand by: least_loaded, interleaved or chained (docs/elasticity.md).",
        option="--placement",
    )
    replace: bool = setting(False, "Start a new node for every one that is lost.", option="--replace")
    start_s: Seconds = setting(120.0, "Time in which nodes must be ready before a run begins with fewer.", least=1)
    replace_after_s: Seconds = setting(
        20.0, "Longest wait until a lost node is replaced, if its slices are not back and protected before.", least=0
    )
    replace_factor: int = setting(
        2, "Times as many nodes as wanted that may run at once, counting lost ones whose process is frozen.", least=1
    )
    stop_s: Seconds = setting(10.0, "Time nodes get to end by themselves when a run ends.", least=0.1)
    moves_at_once: int = setting(2, "Slices that leave a draining node at the same time.", least=1)
    rebalance: bool = setting(False, "Move replicas by itself for an even load.", option="--rebalance")
    rebalance_gain: float = setting(
        0.2,
        "Share of an average node's work by which a move must leave its target below what its source carried.",
        least=0.05,
    )
    rebalance_after_s: Seconds = setting(
        15.0, "Time for which a move must have been worthwhile until the run begins it by itself.", least=0
    )
    rebalance_again_s: Seconds = setting(
        60.0, "Time in which the run moves a slice at most once by itself for an even load.", least=0
    )
    move_s: Seconds = setting(60.0, "Time in which a move must be over before it is given up.", least=1)
    pause_s: Seconds = setting(10.0, "Longest time a slice is stopped to be moved without a second replica.", least=0.1)
    notice_s: Seconds = setting(30.0, "Time a node takes to leave after SIGTERM; 0: it ends at once.", least=0)

    @property
    def all_nodes(self) -> int:
        """How many nodes are started, standby nodes included."""
        return self.nodes + self.standby_nodes


class DetectorSection(Section):
    """When a node or a replica counts as slow, and when as dead."""

    kind: Detectors = setting(
        Detectors.HEARTBEAT,
        "Who is slow: heartbeat, or benchmark, which also times a known piece of work.",
        option="--detector",
    )
    heartbeat_s: Seconds = setting(
        0.1, "Time between two heartbeats of a node.", option="--heartbeat", least=0.01, most=60
    )
    misses: int = setting(
        30, "Heartbeats missed in a row until a silent node counts as dead.", option="--misses", least=1
    )
    misses_disconnected: int = setting(
        3, "Heartbeats missed in a row until a node whose connection broke counts as dead.", least=1
    )
    misses_to_stand_in: int = setting(
        1, "Heartbeats missed in a row until a speculative secondary stands in.", option="--wake-misses", least=1
    )
    # No network is perfectly regular.
    late_share: float = setting(
        0.5, "A heartbeat counts as missed when it is late by this share of its interval.", least=0
    )
    calm_heartbeats: int = setting(
        5, "Heartbeats in a row that must come in time before a suspected node is trusted again.", least=1
    )
    covered_factor: int = setting(5, "Times longer a silent node is waited for while others do all its work.", least=1)
    others_factor: int = setting(2, "Times longer than the other nodes a node must be silent to be suspected.", least=1)
    stall_s: Seconds = setting(10.0, "A replica is suspected when one batch takes longer than this.", least=0.1)
    stall_batches: float = setting(10.0, "And only when it takes this many times as long as the batch before.", least=1)
    # Generous: a batch that is only slow would be begun again from the start.
    stuck_s: Seconds = setting(180.0, "A replica counts as failed when one batch takes longer than this.", least=1)
    stuck_batches: float = setting(30.0, "And only when it takes this many times as long as the batch before.", least=1)
    benchmark_every_s: Seconds = setting(
        0.25, "Time between two looks at the load of the machine, with kind = benchmark.", least=0.01
    )
    benchmark_load: float = setting(
        0.8, "Share of the CPU in use above which the known piece of work is timed.", least=0, most=1
    )
    benchmark_slowdown: float = setting(
        1.5, "A node is slow when the known piece of work takes this many times its time on an idle machine.", least=1
    )


class RecoverySection(Section):
    """How slices are protected, and when trying again ends."""

    scheme: Scheme | None = setting(
        None, "Protect every operator by this scheme.", option="--scheme", unset="each operator's own"
    )
    reaction: Reaction | None = setting(
        None,
        "Answer slow nodes for every operator: conservative or speculative.",
        option="--reaction",
        unset="each operator's own",
    )
    max_failures: int = setting(
        3, "Failures of a slice in a row, or of one bag, that are tried again before the run fails.", least=0
    )
    max_secondary_failures: int = setting(
        3, "Failures of a slice's secondaries in a row until it goes without one for a while.", least=1
    )
    at_once: int | None = setting(
        None,
        "Operator slices of a lost domain that are restored from checkpoints at once; the others wait.",
        least=1,
        unset="the cores of the nodes that are left, by their master; 2 for a node whose master names none",
        like="4",
    )
    rest_epochs: int = setting(60, "Epochs a slice then goes without a secondary.", least=1)
    stand_ins_per_minute: int = setting(
        4, "Secondaries of the cluster that may stand in within a minute without having been of use.", least=0
    )


class PlanSection(Section):
    """Which slices have working secondaries, under a budget (docs/planning.md)."""

    budget: int | None = setting(
        None,
        "Slices that may have working secondaries; the planner chooses which.",
        option="--budget",
        least=0,
        unset="the topology's replicas; without them there is no plan",
        like="4",
    )
    scheme: Scheme = setting(Scheme.ACTIVE_STANDBY, "Scheme of planned slices: active_standby or active_replication.")
    time_limit_s: Seconds = setting(5.0, "Time the exact planner gets; then structure-aware plans.", least=0.1)
    every_s: Seconds = setting(60.0, "Time between two looks whether measured rates call for another plan.", least=1)
    threshold: float = setting(
        0.05, "Predicted output fidelity that another plan must gain to replace the one in force.", least=0, most=1
    )
    cool_down_s: Seconds = setting(120.0, "Time in which the plan changes at most once by itself.", least=0)


class ScalingSection(Section):
    """How many nodes a run has (docs/elasticity.md)."""

    policy: str | None = setting(
        None,
        "Who suggests the number of nodes: target_cpu, lag, schedule or predictive.",
        option="--scale",
        unset="the number stays as it is",
        like="target_cpu",
    )
    min_nodes: int = setting(1, "Least number of nodes, standby nodes not counted.", option="--min-nodes", least=1)
    max_nodes: int = setting(4, "Largest number of nodes, standby nodes not counted.", option="--max-nodes", least=1)
    target_cpu: float = setting(0.6, "Share of its cores that a node's work shall take.", least=0.05, most=1)
    slack: float = setting(
        0.15, "Share by which the work must be above or below the target until the number changes.", least=0, most=0.9
    )
    behind_epochs: int = setting(5, "Epochs a primary must be behind until policy lag asks for a node.", least=2)
    schedule: str = setting(
        "", "Numbers of nodes by the time of day in UTC, for policy schedule.", like="08:00=4, 20:00=2"
    )
    ahead_s: Seconds = setting(60.0, "How far ahead policy predictive looks.", least=1)
    cool_down_s: Seconds = setting(
        120.0, "Least time between two changes, and in which nobody wants more before a node goes.", least=0
    )
    start_command: str = setting("", "Command that starts a node elsewhere; none: a process here.", like="./start.sh")
    stop_command: str = setting("", "Command that ends what start_command started.", like="./stop.sh")
    list_command: str = setting("", "Command that prints the names of nodes it started.", like="./list.sh")


class ManagerSection(Section):
    """When the launcher starts the manager again, and what a restarted manager waits for."""

    grace_s: Seconds = setting(10.0, "Time nodes get to connect again after the manager was restarted.", least=0)
    hung_s: Seconds = setting(15.0, "A manager that answered before and is silent for so long is replaced.", least=1)
    # It may have much to read, on a machine that is full.
    start_s: Seconds = setting(120.0, "Time a manager gets to answer for the first time.", least=1)
    calm_s: Seconds = setting(60.0, "Time without trouble after which earlier trouble no longer counts.", least=0)
    max_restarts: int = setting(3, "Errors and hangs of the manager that are forgiven before the run ends.", least=0)


class ShippingSection(Section):
    """Checkpoints on their way to where a successor reads them."""

    max_failures: int = setting(5, "Shipments that fail in a row until a replica fails.", least=1)
    failing_s: Seconds = setting(60.0, "Least time for which they must have failed.", least=0)


class LogSection(Section):
    """Where bags are published and replayed from."""

    url: Annotated[str, _address("log.url")] = setting(
        "file:",
        "Address of the log: file: is the home directory, kafka://… a Kafka cluster (docs/logs.md).",
        like="kafka://broker-1:9092,broker-2:9092/orders",
    )
    cache_bytes: Bytes = setting(
        1024 * MIB, "Size of the files in which a node keeps bags of a log beyond its disk.", least=MIB
    )


class CheckpointsSection(Section):
    """Where checkpoints are shipped to and restored from."""

    url: Annotated[str, _address("checkpoints.url")] = setting(
        "file:",
        "Address of the checkpoints: file: is the home directory; s3://…, gs://… and az://… are object stores "
        "(docs/checkpoints.md).",
        like="s3://bucket/folder",
    )


class OverloadSection(Section):
    """What a full node does without."""

    primaries_first: bool = setting(
        True, "Throttle secondaries on nodes whose primaries are behind; never in a run with --fast."
    )
    backlog_epochs: int | None = setting(
        None, "Epochs a slice may be ahead of its slowest reader.", least=1, unset="100, or 8 with --fast", like="100"
    )
    behind_epochs: int = setting(
        3, "Epochs a primary must be behind its input until secondaries beside it take no events.", least=1
    )
    # Less than behind_epochs: otherwise secondaries would stop and go on all the time.
    caught_up_epochs: int = setting(
        1, "Epochs a primary may be behind when they go on; less than behind_epochs.", least=0
    )
    # A start or a recovery makes a node late for a moment, too.
    full_s: Seconds = setting(5.0, "Time primaries must be behind until their node counts as full.", least=0)
    # The effect of the first must have time to show.
    next_s: Seconds = setting(1.0, "Time between two secondaries that are throttled.", least=0)
    calm_s: Seconds = setting(
        10.0, "Time without a full node until a throttled secondary goes on, and between two that do.", least=0
    )
    soon_s: Seconds = setting(
        60.0, "A secondary that is throttled again within this time waits twice as long the next time.", least=0
    )
    max_doublings: int = setting(4, "How often this wait is doubled at most.", least=0, most=16)


class ControllerSection(Section):
    """How schemes are chosen for operators with an objective."""

    every_s: Seconds = setting(0.5, "Time between two decisions.", least=0.05)
    cool_down_s: Seconds = setting(5.0, "Time in which a slice changes its scheme at most once.", least=0)
    descend_share: float = setting(
        0.1, "What a slower scheme needs on top of the margin, as a share of the prediction.", least=0
    )
    tie_share: float = setting(0.01, "Relative difference below which two costs count as equal.", least=0)
    gain_share: float = setting(0.01, "What a change must save, as a share of the cost of active replication.", least=0)
    margin_share: float = setting(0.1, "Share by which every prediction is widened before it is promised.", least=0)
    margin_step: float = setting(0.25, "Least share a broken promise adds to the margin of its slice.", least=0)
    margin_half_life_s: Seconds = setting(600.0, "Time after which half of what was added is forgotten.", least=1)
    margin_limit: float = setting(8.0, "Largest share broken promises can add.", least=0)


class JvmSection(Section):
    """The JVM and the SparkSession of a node."""

    profile: ProfileName = setting(
        ProfileName.QUICK, "JVM settings: quick starts sooner, full processes more.", option="--profile"
    )
    heap: str | None = setting(
        None, "Largest heap of the JVM.", unset="1g with quick, 2g with full", pattern=r"^[1-9]\d*[kmgKMG]$", like="3g"
    )
    spark: SparkSettings = setting(
        {}, "Settings of Spark, passed to every node.", like='{"spark.executor.memory": "2g"}'
    )


class WebSection(Section):
    """The manager's port: API, node connections, dashboard."""

    host: str = setting(
        "127.0.0.1", "Address the manager listens at. Beyond this machine everything needs the token.", like="0.0.0.0"
    )
    port: int = setting(8787, "The manager's port; 0 picks a free one.", option="--port", least=0, most=65535)
    allow_faults: bool = setting(
        False, "Let 'understudy kill' and the dashboard cause faults.", option="--allow-faults"
    )
    token_to_read: bool = setting(
        False, "Ask for the token even to read from this machine: for proxies.", option="--token-to-read"
    )


class RetentionSection(Section):
    """What the home directory keeps of a long run. Reports count what is dropped, too."""

    events: int = setting(100_000, "Newest events kept in the manager's database.", least=1000)
    receipts: int = setting(100_000, "Newest receipts kept of every sink.", least=1000)
    journal_bytes: Bytes = setting(64 * MIB, "Size at which events.jsonl is put aside; two files are kept.", least=4096)
    output_bytes: Bytes = setting(
        16 * MIB, "Size at which the log of a process is put aside; two files are kept.", least=4096
    )


class Config(Section):
    """All sections. Immutable; `model_copy` or `understudy.config` make others."""

    cluster: ClusterSection = ClusterSection()
    scaling: ScalingSection = ScalingSection()
    detector: DetectorSection = DetectorSection()
    recovery: RecoverySection = RecoverySection()
    manager: ManagerSection = ManagerSection()
    shipping: ShippingSection = ShippingSection()
    log: LogSection = LogSection()
    checkpoints: CheckpointsSection = CheckpointsSection()
    overload: OverloadSection = OverloadSection()
    controller: ControllerSection = ControllerSection()
    plan: PlanSection = PlanSection()
    jvm: JvmSection = JvmSection()
    web: WebSection = WebSection()
    retention: RetentionSection = RetentionSection()


DEFAULTS = Config()
