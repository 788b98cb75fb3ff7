"""The manager's end of a node's connection: a WebSocket that carries heartbeats up and instructions down."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fastapi import FastAPI, WebSocket, WebSocketDisconnect
from pydantic import ValidationError

from understudy.model.messages import Hello, Refused, from_node
from understudy.model.run import Frozen
from understudy.runtime.manager import Manager

logger = logging.getLogger(__name__)

_POLICY_VIOLATION = 1008


def add_node_port(app: FastAPI, manager: Manager, knows_token: Callable[[str], bool]) -> None:
    """Lets nodes connect at `/nodes`. The first message introduces the node and has to carry the run's token."""

    @app.websocket("/nodes")
    async def nodes(socket: WebSocket) -> None:
        await socket.accept()
        await _serve(manager, socket, knows_token)


async def _serve(manager: Manager, socket: WebSocket, knows_token: Callable[[str], bool]) -> None:
    try:
        hello = from_node.validate_json(await socket.receive_text())
    except WebSocketDisconnect:
        return
    except ValidationError as error:
        logger.warning("a node was refused: %s", error)
        await socket.close(_POLICY_VIOLATION, "this is no introduction of a node")
        return
    if not isinstance(hello, Hello) or not knows_token(hello.token):
        await socket.close(_POLICY_VIOLATION, "wrong token")
        return
    refusal = manager.refuses(hello)
    if refusal is not None:
        await socket.send_text(Refused(failure=refusal).model_dump_json())
        await socket.close(_POLICY_VIOLATION, "the name is taken")
        return
    outbox: asyncio.Queue[Frozen] = asyncio.Queue()

    def send(message: Frozen) -> None:
        outbox.put_nowait(message)

    manager.connect(hello, send)
    sender = asyncio.create_task(_send_all(socket, outbox))
    try:
        await _hear_all(manager, hello.node, socket)
    finally:
        sender.cancel()
        manager.disconnect(hello.node, send)


async def _hear_all(manager: Manager, node: str, socket: WebSocket) -> None:
    with suppress(WebSocketDisconnect):
        while True:
            message: Any = from_node.validate_json(await socket.receive_text())
            if not manager.hear(node, message):
                return


async def _send_all(socket: WebSocket, outbox: asyncio.Queue[Frozen]) -> None:
    while True:
        message = await outbox.get()
        try:
            await socket.send_text(message.model_dump_json())
        except (WebSocketDisconnect, RuntimeError):
            return
