"""Health checks: the status code tells whether the run is well, the body gives the reasons."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel

from understudy.model.page import Health, View
from understudy.model.snapshot import Phase
from understudy.web.access import Access
from understudy.web.hub import Hub
from understudy.web.pulse import Pulse


class Live(BaseModel):
    live: bool


class Ready(BaseModel):
    """`reasons` is empty exactly if the run is ready."""

    ready: bool
    reasons: list[str]


UNAVAILABLE = 503


def unready(view: View) -> list[str]:
    """Why data does not flow in time. Provisional output and missing protection are no reason: epochs still arrive."""
    if view.phase is not Phase.RUNNING:
        return [f"the run is {view.phase}"]
    if not view.slices:
        return ["no slice is placed yet"]
    stopped = (Health.DOWN, Health.STARTING)
    down = [f"{entry.slice}: {entry.why}" for entry in view.slices if entry.health in stopped]
    late = [
        f"{entry.slice}: is {entry.lag} epochs behind the newest, and {entry.may_lag} are allowed"
        for entry in view.slices
        if entry.late and entry.health not in stopped
    ]
    return down + late


def health_router(hub: Hub, pulse: Pulse, access: Access) -> APIRouter:
    router = APIRouter(prefix="/health", tags=["health"])

    @router.get("/live", responses={UNAVAILABLE: {"model": Live}})
    async def live(response: Response) -> Live:
        """200 while the manager's loop turns, 503 when it has stalled."""
        response.status_code = 200 if pulse.beating else UNAVAILABLE
        return Live(live=pulse.beating)

    @router.get(
        "/ready",
        dependencies=[Depends(access.read)],
        responses={UNAVAILABLE: {"model": Ready}, 401: {"description": "not from this machine, and no token"}},
    )
    async def ready(response: Response) -> Ready:
        """200 while every slice works and keeps up, 503 with the reasons otherwise."""
        reasons = unready(hub.view())
        response.status_code = UNAVAILABLE if reasons else 200
        return Ready(ready=not reasons, reasons=reasons)

    return router
