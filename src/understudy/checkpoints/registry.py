"""Stores of checkpoints by the scheme of their address. A new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from understudy.checkpoints import file_store, object_open
from understudy.checkpoints.interface import Checkpoints
from understudy.checkpoints.place import URL, CheckpointsPlace
from understudy.errors import InvalidInput
from understudy.model.address import Address, parse


@dataclass(frozen=True)
class StoreKind:
    """`check` raises, before data flows, if such a store cannot be used from this machine; `open` makes one."""

    check: Callable[[Address], None]
    open: Callable[[CheckpointsPlace], Checkpoints]


OBJECTS = StoreKind(object_open.check, object_open.open_checkpoints)
STORES = {
    "file": StoreKind(file_store.check, file_store.open_checkpoints),
    "s3": OBJECTS,
    "gs": OBJECTS,
    "az": OBJECTS,
}


def check(url: str) -> None:
    """Raises an error in three parts if the checkpoints at an address cannot be used from this machine.

    Raises
    ------
    InvalidInput
        If the text is no address, its scheme is none of ours, or an option is wrong.
    Unavailable
        If a package is not installed, or the service does not respond or lacks conditional writes.
    """
    address = parse(url, URL)
    _kind(address).check(address)


def open_checkpoints(place: CheckpointsPlace) -> Checkpoints:
    """The shipped checkpoints of a run, for one node; raises as `check` does."""
    return _kind(place.address).open(place)


def _kind(address: Address) -> StoreKind:
    if address.scheme not in STORES:
        raise InvalidInput(
            f"{URL} is '{address}'",
            why=f"there is no store of checkpoints called '{address.scheme}'",
            fix=f"begin with one of {', '.join(f'{name}:' for name in STORES)}",
        )
    return STORES[address.scheme]
