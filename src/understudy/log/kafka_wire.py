"""What a `KafkaLog` asks of a cluster. `kafka_client.py` asks real brokers, tests use values in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from understudy.errors import Unavailable

FACTS = -1
"""The number that stands for the topic of facts. Other partitions are those of the slices, in their order."""


@dataclass(frozen=True)
class Read:
    """A record, where it stands in the order of its partition."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


Take = Callable[[Sequence[Read]], None]
Failed = Callable[[], None]


class Wire(Protocol):
    """Appends records and follows all partitions of a run. All methods may be called from several threads."""

    record_bytes: int
    """Largest value of a record."""
    patience_s: float
    """How long brokers that are away are waited for."""

    def follow(self, take: Take) -> None:
        """Begins to read: every record of every partition goes to `take`, on one thread, in the order of its partition.

        Returns when everything that was there before the call was handed on. A partition is begun, or gone on with
        after records that were trimmed meanwhile, only when the facts were read that were there at that time.
        """
        ...

    def send(self, partition: int, key: bytes, value: bytes | None, failed: Failed | None = None) -> None:
        """Appends a record behind all that this process has sent to the partition. It is read when it is durable.

        `failed` is called, on any thread, if it will never be read. Without `failed` it is sent again.
        """
        ...

    def sync(self, partitions: Sequence[int]) -> None:
        """Waits until everything was handed on that these partitions hold now."""
        ...

    def read(self, partition: int, first: int, last: int) -> Iterator[Read]:
        """Records once more, for one caller; those that are trimmed or cannot be read are left out."""
        ...

    def forget(self, partition: int, before: int) -> None:
        """Lets the cluster remove all records before an offset, in its own time."""
        ...

    def check(self) -> None:
        """Raises what made it impossible to go on reading, if anything did."""
        ...

    def away(self, what: str) -> Unavailable:
        """The error when patience has ended."""
        ...

    def close(self) -> None:
        """Sends what was not sent, if brokers are there, and lets go of them."""
        ...
