"""Who may read and who may command.

Commands need the token. Reading does not, for a program or a page on this machine: the caller's address and the name
it used for us must both be this machine's own, it must not have come through a proxy, and a browser must ask on behalf
of our own page or of its user. So a web page from elsewhere can neither reach us through a name that points here, nor
open a socket from its own origin, nor make us compute anything. A proxy that rewrites the name and says nothing of
itself looks like a local caller; a run with `token_to_read` asks everybody for the token.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, HTTPException
from fastapi.security import HTTPBearer
from starlette.requests import HTTPConnection

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
"""Headers by which a proxy says that it asks for somebody else."""
OWN_SITES = frozenset({"same-origin", "none"})
"""What a browser says of our own page, and of an address its user typed. A page on another port of this machine is
`same-site`, and not ours."""
UNAUTHORISED = "this needs the token in the home directory's file 'token', as 'Authorization: Bearer …'"


# Tells the schema that commands take a token; we look at the header ourselves.
_BEARER = HTTPBearer(auto_error=False, description="the content of the file 'token' in the run's home directory")


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in LOCAL_NAMES


def is_local(client: str, headers: Mapping[str, str]) -> bool:
    """Called from this machine, by a name of this machine, through no proxy, from no page but our own."""
    host = headers.get("host", "")
    origin = headers.get("origin")
    own_page = origin is None or urlsplit(origin).netloc == host
    own_site = headers.get("sec-fetch-site", "none") in OWN_SITES
    direct = not any(name in headers for name in FORWARDED)
    return (
        is_loopback(client) and is_loopback(urlsplit(f"//{host}").hostname or "") and own_page and own_site and direct
    )


@dataclass(frozen=True)
class Access:
    """`read` and `command` are dependencies of routes. `open_here`: callers on this machine read without the token."""

    token: str
    open_here: bool = True

    def knows(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.token.encode())

    def has_token(self, headers: Mapping[str, str]) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        return kind == "Bearer" and self.knows(given)

    def is_open_to(self, connection: HTTPConnection) -> bool:
        """Whether this caller may read without the token."""
        client = connection.client.host if connection.client else ""
        return self.open_here and is_local(client, connection.headers)

    def read(self, connection: HTTPConnection) -> None:
        if not self.is_open_to(connection) and not self.has_token(connection.headers):
            raise HTTPException(401, UNAUTHORISED)

    def command(self, connection: HTTPConnection, _: Annotated[object, Depends(_BEARER)]) -> None:
        if not self.has_token(connection.headers):
            raise HTTPException(401, UNAUTHORISED)
