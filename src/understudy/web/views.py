"""What people open: the page and its live feed, the shared view as JSON, and the metrics."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path

from fastapi import APIRouter, Depends, FastAPI, Response, WebSocket, WebSocketDisconnect
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse
from fastapi.staticfiles import StaticFiles
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from understudy.model.page import PastRecovery, View
from understudy.web.access import Access
from understudy.web.docs_page import POLICY, docs_page
from understudy.web.hub import Hub

PAGE = Path(__file__).parent / "page"
FIRST_WORD_S = 5.0
_POLICY_VIOLATION = 1008
_TRY_AGAIN_LATER = 1013
# Charts set styles of elements; nothing else needs an exception, and nothing comes from elsewhere.
_POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'"


def add_views(app: FastAPI, hub: Hub, registry: CollectorRegistry, access: Access) -> None:
    app.include_router(_shared(hub, registry), dependencies=[Depends(access.read)])
    app.include_router(_described(app), dependencies=[Depends(access.read)])

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", headers={"Content-Security-Policy": _POLICY})

    app.mount("/page", StaticFiles(directory=PAGE), name="page")

    @app.websocket("/api/v1/live")
    async def live(socket: WebSocket) -> None:
        await socket.accept()
        if not await _may_read(socket, access):
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


def _described(app: FastAPI) -> APIRouter:
    """The schema of the API, for programs and for people."""
    router = APIRouter(include_in_schema=False)

    @router.get("/openapi.json")
    async def schema() -> JSONResponse:
        return JSONResponse(app.openapi())

    @router.get("/docs")
    async def docs() -> HTMLResponse:
        return HTMLResponse(docs_page(app.openapi()), headers={"Content-Security-Policy": POLICY})

    return router


async def _may_read(socket: WebSocket, access: Access) -> bool:
    """A browser cannot send a header with a WebSocket, so its first word is the token, or nothing on this machine."""
    try:
        word = json.loads(await asyncio.wait_for(socket.receive_text(), FIRST_WORD_S))
    except (TimeoutError, ValueError, KeyError, WebSocketDisconnect):
        return False
    given = word.get("token") if isinstance(word, dict) else None
    return access.is_open_to(socket) or access.knows(str(given))


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
