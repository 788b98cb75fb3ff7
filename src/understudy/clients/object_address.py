"""What the address of an object store says, and the credentials that it only points to.

Credentials come from a properties file that the address names, or from the variables and services that each store's
own tools use. They are handed to obstore and to nobody else: no error, message or `repr` of ours shows them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from understudy.clients.objects import Folder
from understudy.clients.properties import read_properties
from understudy.errors import InvalidInput
from understudy.extras import need
from understudy.model.address import Address

RETRY_S = 3.0
"""A request that fails is repeated for so long. Whoever can wait for longer asks again."""
CONNECT_S = 2.0
REQUEST_S = 10.0
SECRET = ("key", "secret", "token", "password")
"""A setting whose name holds one of these is never shown."""


@dataclass(frozen=True)
class Kind:
    """`store` names a class of obstore, `bucket` the setting for what stands behind '//', `options` what the options of
    an address are called there."""

    store: str
    bucket: str
    options: Mapping[str, str]


KINDS = {
    "s3": Kind("S3Store", "bucket", {"region": "region", "endpoint": "endpoint"}),
    "gs": Kind("GCSStore", "bucket", {"service_account": "service_account"}),
    "az": Kind("AzureStore", "container_name", {"account": "account_name", "endpoint": "endpoint"}),
}


@dataclass(frozen=True)
class ObjectSettings:
    """`config` are settings of obstore, some of them secret."""

    address: Address
    kind: Kind
    config: Mapping[str, str] = field(repr=False)

    @property
    def shown(self) -> str:
        """The address without its options."""
        return str(Address(self.address.scheme, self.address.hosts, self.address.path)).rstrip("/")

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that no message may show, the longest first."""
        given = {value for name, value in self.config.items() if _is_secret(name)}
        found = {value for name, value in os.environ.items() if name.startswith(_VARIABLES) and _is_secret(name)}
        return tuple(sorted((value for value in given | found if value), key=len, reverse=True))


_VARIABLES = ("AWS_", "GOOGLE_", "AZURE_")


def settings_of(address: Address, what: str, further: tuple[str, ...] = ()) -> ObjectSettings:
    """Reads an address and the properties file it names.

    Parameters
    ----------
    address
        Such as `s3://bucket/folder?region=eu-central-1&properties=/etc/understudy/s3.properties`.
    what
        The setting that holds it, for errors.
    further
        Options that its reader has besides.

    Raises
    ------
    InvalidInput
        If the address or the file cannot be meant. The error names the line of a file, never its content.
    """
    kind = KINDS[address.scheme]
    address.only([*kind.options, "properties", *further])
    if len(address.hosts) != 1 or ":" in address.hosts[0]:
        raise InvalidInput(
            f"{what} is '{address}'",
            why="it names no bucket",
            fix=f"write it like {address.scheme}://bucket/folder; a server has the option endpoint=https://host:port",
        )
    config = {theirs: value for ours, theirs in kind.options.items() if (value := address.option(ours))}
    file = address.option("properties")
    if file:
        config |= read_properties(Path(file), what, "obstore, such as secret_access_key")
    return ObjectSettings(address, kind, config | {kind.bucket: address.hosts[0]})


def open_folder(settings: ObjectSettings, what: str) -> Folder:
    """The folder that an address names. Asks nothing of the store yet.

    Raises
    ------
    Unavailable
        If obstore is not installed.
    InvalidInput
        If obstore has no such setting.
    """
    need(["obstore"], extra="objects", user=f"{what} = {settings.shown}")
    import obstore.store
    from obstore.exceptions import BaseError

    make: Callable[..., Any] = getattr(obstore.store, settings.kind.store)
    plain = settings.config.get("endpoint", "").startswith("http:")
    try:
        store = make(
            config=dict(settings.config),
            client_options={
                "allow_http": plain,
                "connect_timeout": timedelta(seconds=CONNECT_S),
                "timeout": timedelta(seconds=REQUEST_S),
            },
            retry_config={
                "retry_timeout": timedelta(seconds=RETRY_S),
                "max_retries": 10,
                "backoff": {
                    "init_backoff": timedelta(milliseconds=100),
                    "max_backoff": timedelta(seconds=1),
                    "base": 2,
                },
            },
        )
    except (BaseError, ValueError, TypeError):
        # What obstore says may repeat the value.
        raise InvalidInput(
            f"{what} = {settings.shown} cannot be opened",
            why=f"obstore refuses one of the settings {', '.join(sorted(settings.config))}",
            fix="correct the address or its properties file (docs/checkpoints.md)",
        ) from None
    return Folder(store, settings.address.name, settings.shown, settings.secrets)


def _is_secret(name: str) -> bool:
    return any(part in name.lower() for part in SECRET)
