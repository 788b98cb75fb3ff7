"""What people open: the page and its live feed, the shared view as JSON, and the metrics."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path

from fastapi import APIRouter, Depends, FastAPI, Response, WebSocket, WebSocketDisconnect
from fastapi.responses import FileResponse, PlainTextResponse
from fastapi.staticfiles import StaticFiles
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from understudy.model.page import PastRecovery, View
from understudy.web.access import has_token, is_local, reading
from understudy.web.hub import Hub

PAGE = Path(__file__).parent / "page"
FIRST_WORD_S = 5.0
_POLICY_VIOLATION = 1008
_TRY_AGAIN_LATER = 1013
# Charts set styles of elements; nothing else needs an exception, and nothing comes from elsewhere.
_POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'"


def add_views(app: FastAPI, hub: Hub, registry: CollectorRegistry, token: str) -> None:
    app.include_router(_shared(hub, registry), dependencies=[Depends(reading(token))])

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", headers={"Content-Security-Policy": _POLICY})

    app.mount("/page", StaticFiles(directory=PAGE), name="page")

    @app.websocket("/api/v1/live")
    async def live(socket: WebSocket) -> None:
        await socket.accept()
        if not await _may_read(socket, token):
            await socket.close(_POLICY_VIOLATION, "this needs the token")
            return
        await _feed(socket, hub)


def _shared(hub: Hub, registry: CollectorRegistry) -> APIRouter:
    router = APIRouter(responses={401: {"description": "not from this machine, and no token"}})

    @router.get("/api/v1/view")
    async def view() -> View:
        """How the run looks, as the page and `understudy status` show it; at most half a second old."""
        return hub.view()

    @router.get("/api/v1/recoveries")
    async def recoveries() -> list[PastRecovery]:
        """The latest slices that came back, with the steps it took."""
        return list(hub.recoveries)

    @router.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """For Prometheus."""
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return router


async def _may_read(socket: WebSocket, token: str) -> bool:
    """A browser cannot send a header with a WebSocket, so its first word is the token, or nothing on this machine."""
    try:
        word = json.loads(await asyncio.wait_for(socket.receive_text(), FIRST_WORD_S))
    except (TimeoutError, ValueError, KeyError, WebSocketDisconnect):
        return False
    given = word.get("token") if isinstance(word, dict) else None
    client = socket.client.host if socket.client else ""
    return is_local(client, socket.headers) or has_token({"authorization": f"Bearer {given}"}, token)


async def _feed(socket: WebSocket, hub: Hub) -> None:
    queue = hub.join()
    closed = asyncio.create_task(_closed(socket))
    try:
        while True:
            text = asyncio.create_task(queue.get())
            await asyncio.wait((text, closed), return_when=asyncio.FIRST_COMPLETED)
            if closed.done():
                text.cancel()
                return
            if not text.result():
                await socket.close(_TRY_AGAIN_LATER, "come again")
                return
            await socket.send_text(text.result())
    except (WebSocketDisconnect, RuntimeError):
        pass
    finally:
        closed.cancel()
        hub.leave(queue)


async def _closed(socket: WebSocket) -> None:
    """Until the page goes away; it has nothing more to say."""
    with suppress(WebSocketDisconnect, RuntimeError):
        while True:
            await socket.receive_text()
