"""The manager's one port: nodes connect to it, people and programs ask it. It reads; it never decides."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, WebSocket, WebSocketDisconnect
from prometheus_client import CollectorRegistry
from pydantic import BaseModel, Field, ValidationError

from understudy.errors import InvalidInput
from understudy.model.event import Event
from understudy.model.messages import Failure, Hello, Refused, from_node
from understudy.model.names import SliceId
from understudy.model.page import Plan
from understudy.model.recovery import Scheme, member
from understudy.model.run import Frozen
from understudy.model.view import RunState
from understudy.reporting.report import Report
from understudy.runtime.manager import TICK_S, Manager
from understudy.web.access import Access
from understudy.web.commands import Hands, LocalHands, NodeCommands, node_router
from understudy.web.health import health_router
from understudy.web.hub import Hub
from understudy.web.metrics import register
from understudy.web.pulse import Pulse
from understudy.web.reports import Reports
from understudy.web.views import add_views

logger = logging.getLogger(__name__)

_POLICY_VIOLATION = 1008
EVENTS_AT_ONCE = 1_000
MAX_NUMBER = 2**63 - 1
"""SQLite's largest integer."""
UNAUTHORISED: dict[int | str, dict[str, Any]] = {401: {"description": "no token, or a wrong one"}}


class FaultNote(BaseModel):
    """Whoever causes a fault says so, so that the report can tell how long it took to notice."""

    spec: str
    target: str
    at: float = Field(allow_inf_nan=False)


class Capability(BaseModel):
    """Another way to protect a slice: `{"slice": "counts[0]", "scheme": "active_standby"}`."""

    slice: str
    scheme: str


def make_app(manager: Manager, token: str, hands: Hands | None = None) -> FastAPI:
    access = Access(token, open_here=not manager.run.token_to_read)
    registry = CollectorRegistry()
    pulse = Pulse(registry)
    hub = Hub(manager, registry)
    faults = NodeCommands(manager, hands or LocalHands(manager.nodes_directory))
    register(hub, registry)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        loops = [asyncio.create_task(_tick_forever(manager, pulse)), asyncio.create_task(hub.refresh_forever())]
        yield
        faults.close()
        for loop in loops:
            loop.cancel()

    # The pages that come with FastAPI load scripts from elsewhere; ours are in `views`.
    app = FastAPI(title="understudy", version="1", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.hub = hub
    app.include_router(_questions(manager), dependencies=[Depends(access.read)], responses=UNAUTHORISED)
    app.include_router(_commands(manager, access))
    app.include_router(node_router(faults, access))
    app.include_router(health_router(hub, pulse, access))
    add_views(app, hub, registry, access)

    @app.websocket("/nodes")
    async def nodes(socket: WebSocket) -> None:
        await socket.accept()
        await _serve_node(manager, socket, access)

    return app


def _questions(manager: Manager) -> APIRouter:
    router = APIRouter()
    reports = Reports(manager)

    @router.get("/api/v1/state")
    async def state() -> RunState:
        return manager.state()

    @router.get("/api/v1/events")
    async def events(after: Annotated[int, Query(ge=0, le=MAX_NUMBER)] = 0) -> list[Event]:
        """The next 1,000 events with a higher number; an empty answer means that there are no more."""
        return manager.events(after, EVENTS_AT_ONCE)

    @router.get("/api/v1/report")
    async def report() -> Report:
        """How the run went so far; at most half a second old."""
        return reports.report()

    @router.get("/api/v1/plan")
    async def plan() -> Plan:
        return manager.plan()

    return router


def _commands(manager: Manager, access: Access) -> APIRouter:
    router = APIRouter(dependencies=[Depends(access.command)], responses=UNAUTHORISED)

    @router.post("/api/v1/faults")
    async def fault(note: FaultNote) -> dict[str, int]:
        return {"number": manager.note("fault", f"fault injected: {note.spec}", note.model_dump())}

    @router.post("/api/v1/switch", responses={409: {"description": "it cannot be protected like that"}})
    async def switch(wanted: Capability) -> Capability:
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


async def _tick_forever(manager: Manager, pulse: Pulse) -> None:
    while True:
        pulse.begin()
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
        pulse.end()
        await asyncio.sleep(TICK_S)


async def _serve_node(manager: Manager, socket: WebSocket, access: Access) -> None:
    try:
        hello = from_node.validate_json(await socket.receive_text())
    except WebSocketDisconnect:
        return
    except ValidationError as error:
        logger.warning("a node was refused: %s", error)
        await socket.close(_POLICY_VIOLATION, "this is no introduction of a node")
        return
    if not isinstance(hello, Hello) or not access.knows(hello.token):
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
