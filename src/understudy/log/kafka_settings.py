"""What the address of a Kafka log says, and the security settings that it only points to.

Credentials come from a properties file that the address names, or from the environment. They are handed to the client
and to nobody else: no error, message or `repr` of ours shows them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from understudy.clients.properties import read_properties
from understudy.errors import InvalidInput
from understudy.model.address import Address

PREFIX = "understudy"
"""Begins the names of topics where the address gives no other name."""
VARIABLES = "UNDERSTUDY_KAFKA_"
"""Begins variables like UNDERSTUDY_KAFKA_SASL_PASSWORD, which stands for `sasl.password`."""
OPTIONS = ("properties", "replicas", "insync", "record_bytes", "patience_s")
OURS = (
    "bootstrap.servers",
    "acks",
    "request.required.acks",
    "enable.idempotence",
    "message.timeout.ms",
    "delivery.timeout.ms",
    "transactional.id",
    "isolation.level",
    "group.id",
    "enable.auto.commit",
    "auto.offset.reset",
    "enable.partition.eof",
    "allow.auto.create.topics",
)
"""Settings on which the log's promises rest."""
RECORD_BYTES = 900_000
PATIENCE_S = 120


@dataclass(frozen=True)
class KafkaSettings:
    """`replicas` and `insync` are 0 where the number of brokers decides: three copies, two of them in sync."""

    address: Address
    bags: str
    facts: str
    replicas: int
    insync: int
    record_bytes: int
    patience_s: float
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def servers(self) -> str:
        return ",".join(self.address.hosts)


def settings_of(address: Address, run: str, environment: Mapping[str, str] | None = None) -> KafkaSettings:
    """Reads an address, the properties file it names, and the environment, which wins.

    Raises
    ------
    InvalidInput
        If the address or the file cannot be meant. The error names the line of a file, never its content.
    """
    address.only(OPTIONS)
    if not address.hosts:
        raise InvalidInput(
            f"log.url is '{address}'",
            why="it names no broker",
            fix="write it like kafka://broker-1:9092,broker-2:9092/name",
        )
    name = address.name or PREFIX
    if not set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") or len(name) > 200:
        raise InvalidInput(
            f"log.url is '{address}'",
            why=f"'{name}' begins the names of topics: letters, digits, '.', '_' and '-', at most 200",
            fix="give another name after the last broker",
        )
    file = address.option("properties")
    options = _properties(file) | _variables(os.environ if environment is None else environment)
    taken = next((name for name in OURS if name in options), None)
    if taken is not None:
        raise InvalidInput(
            f"the setting '{taken}' is given for the log in Kafka",
            why="the log sets it itself: that nothing is lost rests on it",
            fix=f"take it out of {file or 'the environment'}",
        )
    return KafkaSettings(
        address=address,
        bags=f"{name}.{run}.bags",
        facts=f"{name}.{run}.facts",
        replicas=address.number("replicas", 0, least=0),
        insync=address.number("insync", 0, least=0),
        record_bytes=address.number("record_bytes", RECORD_BYTES, least=1000),
        patience_s=float(address.number("patience_s", PATIENCE_S)),
        options=options,
    )


def _properties(file: str) -> dict[str, str]:
    return read_properties(Path(file), "log.url", "librdkafka, such as sasl.username") if file else {}


def _variables(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(VARIABLES).lower().replace("_", "."): value
        for name, value in environment.items()
        if name.startswith(VARIABLES) and value
    }
