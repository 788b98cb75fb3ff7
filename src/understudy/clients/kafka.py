"""What the Kafka source and sink both do with a cluster: connect, look at a topic, read ranges of offsets."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar

from understudy.clients.kafka_ranges import RangeReader, Ranges
from understudy.errors import InvalidInput, Unavailable

T = TypeVar("T")
logger = logging.getLogger(__name__)

PATIENCE_S = 60.0
"""How long brokers that are away are waited for: as long as a restart of a broker takes."""
_CALL_S = 5.0
_UNKNOWN_S = 2.0

OURS = {
    "bootstrap.servers": "the parameter servers",
    "transactional.id": "the sink: it fences writers by it",
    "isolation.level": "the source: it reads what is committed",
    "enable.auto.commit": "the source: positions are kept in the run's log",
    "auto.offset.reset": "the source: a missing offset is an error",
    "enable.partition.eof": "the source",
    "enable.idempotence": "the sink",
}
"""Settings of librdkafka that a user may not give, and what sets them."""


class OffsetsGone(Unavailable):
    """Offsets that a reader needs are not in the topic any more. Never skipped: that would be a silent gap."""


def check_servers(servers: object, options: Mapping[str, Any], user: str) -> None:
    if not isinstance(servers, str) or not servers.strip():
        raise InvalidInput(
            f"{user} has servers={servers!r}",
            why="it needs the address of at least one broker",
            fix='pass servers="broker-1:9092,broker-2:9092"',
        )
    taken = next((name for name in options if name in OURS), None)
    if taken is not None:
        raise InvalidInput(
            f"{user} has the option '{taken}'", why=f"it is set by {OURS[taken]}", fix="leave the option away"
        )


class Cluster:
    """One connection for looking and reading; used by one thread.

    Parameters
    ----------
    servers, options
        Addresses of brokers, and further settings of librdkafka, such as `sasl.password`.
    user
        Who it is for, in errors.
    patience_s
        How long brokers that are away are waited for; `PATIENCE_S` if it is not given.

    Attributes
    ----------
    complaint
        What librdkafka said last about brokers it cannot reach.
    """

    def __init__(self, servers: str, options: Mapping[str, Any], user: str, patience_s: float | None = None) -> None:
        from confluent_kafka import Consumer

        self._servers, self._options, self._user = servers, options, user
        self._patience_s = PATIENCE_S if patience_s is None else patience_s
        self.complaint = "no broker has answered"
        self._asked: Any = None
        self._consumer: Any = Consumer(
            self.settings(
                {
                    "group.id": "understudy",
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                    "isolation.level": "read_committed",
                    "auto.offset.reset": "error",
                    "allow.auto.create.topics": False,
                    # A source that is held back by a slow sink may not poll for hours.
                    "max.poll.interval.ms": 86_400_000,
                    "queued.max.messages.kbytes": 16384,
                    "fetch.wait.max.ms": 50,
                }
            )
        )

        self._ranges = RangeReader(self._consumer)

    def settings(self, own: Mapping[str, Any]) -> dict[str, Any]:
        # Librdkafka repeats itself on standard error while brokers are away; what it says last is in our errors.
        given = {"log_level": 2, "error_cb": self._complain, **own, **self._options}
        return given | {"bootstrap.servers": self._servers}

    def close(self) -> None:
        self._consumer.close()
        self._asked = None

    def _administrator(self) -> Any:
        if self._asked is None:
            self._asked = _admin().AdminClient(self.settings({}))
        return self._asked

    def partitions(self, topic: str) -> list[int] | None:
        """The numbers of the topic's partitions, None if there is no such topic."""
        from confluent_kafka import KafkaError

        def ask() -> Any:
            found = self._consumer.list_topics(topic, timeout=_CALL_S).topics[topic]
            if found.error is not None and found.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise _raised(found.error)
            return found

        found = self.patiently(ask)
        return sorted(found.partitions) if found.error is None else None

    def require(self, topic: str) -> list[int]:
        found, deadline = self.partitions(topic), time.monotonic() + _UNKNOWN_S
        while found is None and time.monotonic() < deadline:
            # A broker that has just started may not know its topics yet.
            time.sleep(0.1)
            found = self.partitions(topic)
        if found is None:
            raise InvalidInput(
                f"{self._user}: there is no topic '{topic}'",
                why=f"the brokers at {self._servers} do not know it, or do not show it to this user",
                fix="create the topic with the partitions it shall have, or correct its name",
            )
        return found

    def ends(self, topic: str, partitions: Sequence[int], *, committed: bool) -> dict[int, int]:
        """Where every partition ends; `committed` leaves out what lies behind the oldest open transaction."""
        return self._offsets(topic, dict.fromkeys(partitions, _admin().OffsetSpec.latest()), committed=committed)

    def beginnings(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        return self._offsets(topic, dict.fromkeys(partitions, _admin().OffsetSpec.earliest()), committed=True)

    def at_time(self, topic: str, partitions: Sequence[int], milliseconds: int) -> dict[int, int]:
        """The first offset of every partition with this time or a later one; -1 where there is none."""
        wanted = {partition: _admin().OffsetSpec.for_timestamp(milliseconds) for partition in partitions}
        return self._offsets(topic, wanted, committed=True)

    def _offsets(self, topic: str, wanted: Mapping[int, Any], *, committed: bool) -> dict[int, int]:
        from confluent_kafka import IsolationLevel, TopicPartition

        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED

        def ask() -> dict[int, int]:
            asked = {TopicPartition(topic, partition): spec for partition, spec in wanted.items()}
            admin, self._asked = self._administrator(), None
            answers = admin.list_offsets(asked, isolation_level=level, request_timeout=_CALL_S)
            found = {where.partition: int(answer.result(2 * _CALL_S).offset) for where, answer in answers.items()}
            # Kept only if it is of use: one that has failed may hold on to what it knew of the brokers before.
            self._asked = admin
            return found

        return self.patiently(ask) if wanted else {}

    def create(self, topic: str, config: Mapping[str, str], partitions: int = 1, copies: int = -1) -> None:
        """Creates a topic if it is not there; `copies` -1 leaves their number to the brokers."""
        from confluent_kafka import KafkaError, KafkaException

        wanted = _admin().NewTopic(topic, partitions, copies, config=dict(config))

        def ask() -> None:
            try:
                self._administrator().create_topics([wanted])[topic].result(2 * _CALL_S)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise

        self.patiently(ask)

    def await_leaders(self, topic: str) -> list[int]:
        """The partitions of a topic, when each of them can be written."""
        from confluent_kafka import KafkaError

        def ask() -> list[int]:
            found = self._consumer.list_topics(topic, timeout=_CALL_S).topics[topic]
            if found.error is not None:
                raise _raised(found.error)
            if not found.partitions or any(one.leader < 0 for one in found.partitions.values()):
                raise _raised(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
            return sorted(found.partitions)

        return self.patiently(ask)

    def count_brokers(self) -> int:
        return self.patiently(lambda: len(self._consumer.list_topics(timeout=_CALL_S).brokers))

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        """Asks the brokers to remove the records before an offset. Does not wait: whoever asks next removes more."""
        from confluent_kafka import TopicPartition

        self._administrator().delete_records([TopicPartition(topic, partition, offset)])

    def read(self, topic: str, ranges: Ranges) -> Iterator[Any]:
        """Every committed record of these ranges of offsets, each partition in its order.

        Raises
        ------
        OffsetsGone
            If the topic's retention has removed offsets of a range.
        """
        deadline = time.monotonic() + self._patience_s

        def failed(error: Any, partition: int) -> None:
            self._give_up_or_wait(error, topic, ranges, partition)

        def idle(came: bool, left: list[int]) -> None:
            nonlocal deadline
            if came:
                deadline = time.monotonic() + self._patience_s
            elif time.monotonic() > deadline:
                raise self.unreachable(f"partitions {left} of '{topic}' did not come; {self.complaint}")

        return self._ranges.read(topic, ranges, failed, idle)

    def _give_up_or_wait(self, error: Any, topic: str, ranges: Ranges, partition: int) -> None:
        from confluent_kafka import KafkaError

        if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            lost = {p: ranges[p] for p in ([partition] if partition in ranges else ranges)}
            raise gone(topic, lost, self.beginnings(topic, list(lost)))
        if not (error.retriable() or error.code() in _passing()):
            raise self.unreachable(error.str())
        logger.warning("%s waits: %s", self._user, error.str())

    def patiently(self, action: Callable[[], T]) -> T:
        """Does something again and again while brokers are away, for as long as its patience."""
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                return action()
            except (KafkaException, TimeoutError) as error:
                reason: Any = error.args[0] if isinstance(error, KafkaException) else None
                passing = reason is None or reason.retriable() or reason.code() in _passing()
                if not passing or time.monotonic() > deadline:
                    self._consumer.poll(0)  # hands out what librdkafka has to complain about
                    raise self.unreachable(self.complaint if passing else reason.str()) from error
                time.sleep(0.1)

    def unreachable(self, why: str) -> Unavailable:
        return Unavailable(
            f"{self._user}: Kafka at {self._servers} cannot be used",
            why=why,
            fix="check the brokers, the addresses and the rights of the user; then go on with --resume",
        )

    def _complain(self, error: Any) -> None:
        self.complaint = error.str()


def gone(topic: str, lost: Mapping[int, tuple[int, int]], earliest: Mapping[int, int]) -> OffsetsGone:
    """The error for ranges that begin before the earliest offset there is, or behind the last.

    Examples
    --------
    >>> print(gone("orders", {2: (100, 250)}, {2: 200}).what)
    topic 'orders' does not have offsets 100 to 199 of partition 2 any more
    """
    parts = []
    for partition, (begin, end) in sorted(lost.items()):
        last = min(end, earliest.get(partition, end)) - 1
        if last < begin:
            last = end - 1
        parts.append(f"offsets {begin} to {last} of partition {partition}")
    return OffsetsGone(
        f"topic '{topic}' does not have {', '.join(parts)} any more",
        why="its retention removed them before they were read, or the topic was deleted and created again",
        fix="lengthen the topic's retention; run again in a new --home, from what is left",
    )


def _passing() -> set[int]:
    """Errors of a cluster that is away or on its way back, and of one whose new partitions have no leader yet."""
    from confluent_kafka import KafkaError

    return {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError._WAIT_COORD,
        KafkaError._NOENT,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.REQUEST_TIMED_OUT,
    }


def _admin() -> Any:
    # Its type hints leave out half of what it has.
    return import_module("confluent_kafka.admin")


def _raised(error: Any) -> Exception:
    from confluent_kafka import KafkaException

    return KafkaException(error)
