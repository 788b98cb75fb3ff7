"""Logs by the scheme of their address. A new log is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from understudy.errors import InvalidInput
from understudy.log import file_log, kafka_open
from understudy.log.interface import Log
from understudy.log.place import URL, LogPlace
from understudy.model.address import Address, parse


@dataclass(frozen=True)
class LogKind:
    """`check` raises, before data flows, if such a log cannot be used from this machine; `open` makes one."""

    check: Callable[[Address], None]
    open: Callable[[LogPlace], Log]


LOGS = {
    "file": LogKind(file_log.check, file_log.open_log),
    "kafka": LogKind(kafka_open.check, kafka_open.open_log),
}


def check(url: str) -> None:
    """Raises an error in three parts if the log at an address cannot be used from this machine.

    Raises
    ------
    InvalidInput
        If the text is no address, its scheme is none of ours, or an option is wrong.
    Unavailable
        If a package is not installed, or the service does not respond.
    """
    address = parse(url, URL)
    _kind(address).check(address)


def open_log(place: LogPlace) -> Log:
    """The log of a run, for one node; raises as `check` does."""
    return _kind(place.address).open(place)


def _kind(address: Address) -> LogKind:
    if address.scheme not in LOGS:
        raise InvalidInput(
            f"{URL} is '{address}'",
            why=f"there is no log called '{address.scheme}'",
            fix=f"begin with one of {', '.join(f'{name}:' for name in LOGS)}",
        )
    return LOGS[address.scheme]
