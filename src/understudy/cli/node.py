"""`understudy node`: joins a run that goes on."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Annotated

import typer

from understudy.errors import InvalidInput
from understudy.model.config import DEFAULTS


def node(
    join: Annotated[str, typer.Option(help="The manager, like http://127.0.0.1:8787.", show_default=False)],
    name: Annotated[str | None, typer.Option(help="What to call this node; default: host and process.")] = None,
    token_file: Annotated[Path | None, typer.Option(help="The file 'token' in the run's home directory.")] = None,
    master: Annotated[str, typer.Option(help="Spark master of this node.")] = DEFAULTS.cluster.master,
    domain: Annotated[str, typer.Option(help="What this node fails together with: a rack, a zone.")] = "",
    standby: Annotated[
        bool, typer.Option("--standby", help="Host only secondaries until a recovery needs this node.")
    ] = False,
) -> None:
    """Start a node by hand and join it to a running manager.

    It must see the run's home directory and the application's file under the same paths as the manager. The token is
    read from --token-file, or from the environment variable UNDERSTUDY_TOKEN.
    """
    import logging

    from understudy.model.names import node_name, valid_node_name
    from understudy.runtime.client import Client
    from understudy.runtime.node import configure_logging, introduce, serve
    from understudy.runtime.processes import fix_hashing

    called = name or node_name(socket.gethostname(), os.getpid())
    if not valid_node_name(called):
        raise InvalidInput(
            f"--name {called}",
            why="a node's name becomes a directory",
            fix="use small letters, digits and hyphens, like node-1",
        )
    token = token_file.read_text() if token_file and token_file.exists() else os.environ.get("UNDERSTUDY_TOKEN", "")
    if not token:
        raise InvalidInput(
            "a node needs the run's token",
            why="only those who can read the home directory may join",
            fix="give --token-file HOME/token",
        )
    if Client(join, token).state() is None:
        raise InvalidInput(
            f"no manager answers at {join}",
            why="a node joins a run that goes on",
            fix="start one with 'understudy run', or check host and port",
        )
    fix_hashing()
    configure_logging()
    logging.getLogger(__name__).info("joining %s", join)
    url = join.replace("http", "ws", 1).rstrip("/") + "/nodes"
    serve(url, introduce(called, token, domain, standby=standby), master)
