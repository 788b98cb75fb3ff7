"""Who may read and who may command.

Commands need the token. Reading does not, for a program or a page on this machine: the caller's address and the name
it used for us must both be this machine's own, so that a web page from elsewhere can neither reach us through a name
that points here nor open a socket from its own origin.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Callable, Mapping
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, HTTPException
from fastapi.security import HTTPBearer
from starlette.requests import HTTPConnection

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
UNAUTHORISED = "this needs the token in the home directory's file 'token', as 'Authorization: Bearer …'"


# Tells the OpenAPI page to offer a field for the token; we look at the header ourselves.
_BEARER = HTTPBearer(auto_error=False, description="the content of the file 'token' in the run's home directory")


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in LOCAL_NAMES


def has_token(headers: Mapping[str, str], token: str) -> bool:
    given = headers.get("authorization", "")
    return secrets.compare_digest(given.encode(), f"Bearer {token}".encode())


def is_local(client: str, headers: Mapping[str, str]) -> bool:
    """Called from this machine, by a name of this machine, from no page but our own."""
    host = headers.get("host", "")
    origin = headers.get("origin")
    own_page = origin is None or urlsplit(origin).netloc == host
    return is_loopback(client) and is_loopback(urlsplit(f"//{host}").hostname or "") and own_page


def reading(token: str) -> Callable[[HTTPConnection], None]:
    def check(connection: HTTPConnection) -> None:
        client = connection.client.host if connection.client else ""
        if not is_local(client, connection.headers) and not has_token(connection.headers, token):
            raise HTTPException(401, UNAUTHORISED)

    return check


def commanding(token: str) -> Callable[..., None]:
    def check(connection: HTTPConnection, _: Annotated[object, Depends(_BEARER)]) -> None:
        if not has_token(connection.headers, token):
            raise HTTPException(401, UNAUTHORISED)

    return check
