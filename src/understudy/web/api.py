"""The manager's one port: nodes connect to it, people and programs ask it. It reads; it never decides."""

from __future__ import annotations

import asyncio
import logging
import secrets
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, WebSocket, WebSocketDisconnect
from pydantic import BaseModel, ValidationError

from understudy.control.report import Report
from understudy.errors import InvalidInput
from understudy.model.event import Event
from understudy.model.messages import Failure, Hello, from_node
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme, member
from understudy.model.run import Frozen
from understudy.model.view import RunState
from understudy.runtime.manager import Manager

logger = logging.getLogger(__name__)

TICK_S = 0.05
_POLICY_VIOLATION = 1008


class FaultNote(BaseModel):
    """Whoever causes a fault says so, so that the report can tell how long it took to notice."""

    spec: str
    target: str
    at: float


class Switch(BaseModel):
    """Another way to protect a slice: `{"slice": "counts[0]", "scheme": "active_standby"}`."""

    slice: str
    scheme: str


def make_app(manager: Manager, token: str) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        loop = asyncio.create_task(_tick_forever(manager))
        yield
        loop.cancel()

    app = FastAPI(title="understudy", version="1", lifespan=lifespan)
    app.include_router(_questions(manager))
    app.include_router(_commands(manager, token))

    @app.websocket("/nodes")
    async def nodes(socket: WebSocket) -> None:
        await socket.accept()
        await _serve_node(manager, socket, token)

    return app


def _questions(manager: Manager) -> APIRouter:
    router = APIRouter()

    @router.get("/api/v1/state")
    async def state() -> RunState:
        return manager.state()

    @router.get("/api/v1/events")
    async def events(after: int = 0) -> list[Event]:
        return manager.events(after)

    @router.get("/api/v1/report")
    async def report() -> Report:
        return manager.report()

    @router.get("/health/live")
    async def live() -> dict[str, bool]:
        return {"live": True}

    return router


def _commands(manager: Manager, token: str) -> APIRouter:
    def authorised(authorization: Annotated[str, Header()] = "") -> None:
        if not secrets.compare_digest(authorization, f"Bearer {token}"):
            raise HTTPException(401, "this command needs the token in the home directory's file 'token'")

    router = APIRouter(dependencies=[Depends(authorised)])

    @router.post("/api/v1/faults")
    async def fault(note: FaultNote) -> dict[str, int]:
        return {"number": manager.note("fault", f"fault injected: {note.spec}", note.model_dump())}

    @router.post("/api/v1/switch")
    async def switch(wanted: Switch) -> Switch:
        try:
            manager.switch(SliceId.parse(wanted.slice), Scheme(member(Scheme, wanted.scheme, "scheme")))
        except InvalidInput as error:
            raise HTTPException(409, f"{error.what}: {error.why}; {error.fix}") from None
        return wanted

    @router.post("/api/v1/finish")
    async def finish() -> dict[str, bool]:
        manager.finish()
        return {"finishing": True}

    @router.post("/api/v1/stop")
    async def stop() -> dict[str, bool]:
        manager.shut_down()
        return {"stopping": True}

    return router


async def _tick_forever(manager: Manager) -> None:
    while True:
        try:
            manager.tick()
        except (OSError, sqlite3.OperationalError) as error:
            logger.exception("the manager cannot write")
            manager.fail(
                Failure(
                    what="the manager cannot write to its home directory",
                    why=str(error),
                    fix="free some space or mend the disk, then continue with --resume; nothing published is lost",
                )
            )
        except Exception:
            logger.exception("a tick failed; the next one starts from what is there")
        await asyncio.sleep(TICK_S)


async def _serve_node(manager: Manager, socket: WebSocket, token: str) -> None:
    try:
        hello = from_node.validate_json(await socket.receive_text())
    except (ValidationError, WebSocketDisconnect):
        return
    if not isinstance(hello, Hello) or not secrets.compare_digest(hello.token, token):
        await socket.close(_POLICY_VIOLATION, "wrong token")
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
