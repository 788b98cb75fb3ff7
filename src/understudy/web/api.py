"""The API of a run: what can be read and what can be commanded. It reads; it never decides, and owns no clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query
from pydantic import BaseModel, Field

from understudy.control.cluster.balance import Step
from understudy.errors import InvalidInput
from understudy.model.events import Event
from understudy.model.names import SliceId
from understudy.model.page import Plan
from understudy.model.recovery import Scheme, member
from understudy.model.replication import ReplicaPlan, ReplicationState
from understudy.model.report import Report
from understudy.model.view import RunState
from understudy.web.access import Access
from understudy.web.commands import NodeCommands, node_router
from understudy.web.health import health_router
from understudy.web.hub import Hub
from understudy.web.metrics import register
from understudy.web.ports import NodeFaults, RunCommands, RunReader
from understudy.web.pulse import Pulse
from understudy.web.reports import Reports
from understudy.web.views import add_views

EVENTS_AT_ONCE = 1_000
MAX_NUMBER = 2**63 - 1
"""SQLite's largest integer."""
UNAUTHORISED: dict[int | str, dict[str, Any]] = {401: {"description": "no token, or a wrong one"}}


class FaultNote(BaseModel):
    """Whoever causes a fault says so, so that the report can tell how long it took to notice."""

    spec: str
    target: str
    at: float = Field(allow_inf_nan=False)


class Switch(BaseModel):
    """Another way to protect a slice: `{"slice": "counts[0]", "scheme": "active_standby"}`."""

    slice: str
    scheme: str


class WantedPlan(BaseModel):
    """Slices that shall have working secondaries, not more than the budget; `algorithm` says who chose them."""

    budget: int = Field(ge=0)
    slices: list[str]
    algorithm: str = "named"


class Move(BaseModel):
    """Another node for a slice: `{"slice": "counts[0]", "node": "node-3"}`. `legacy`: it is stopped first."""

    slice: str
    node: str
    legacy: bool = False


class WantedCheckpoint(BaseModel):
    """Slices that shall ship what they have; none named: all that keep checkpoints."""

    slices: list[str] = []


class AskedCheckpoint(BaseModel):
    """For every slice that was asked the newest epoch it was heard to have done."""

    slices: dict[str, int]


class WantedBalance(BaseModel):
    """An even load; `dry_run`: only say what would move."""

    dry_run: bool = False


class BalanceStep(BaseModel):
    """A replica that had better be on another node: the primary of a slice, or its secondary."""

    slice: str
    source: str
    target: str
    primary: bool
    reason: str

    @classmethod
    def of(cls, step: Step) -> BalanceStep:
        return cls(
            slice=str(step.slice), source=step.source, target=step.target, primary=step.primary, reason=step.reason
        )


class BalanceSteps(BaseModel):
    """What moves, or would move, as it looks now. Each step is looked at again before it begins."""

    dry_run: bool
    steps: list[BalanceStep]


Loop = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class Served:
    """The run behind the port, and what goes on beside it.

    - `loops` run from the start of the server to its end.
    - `pulse` counts the turns of the manager's loop.
    """

    reader: RunReader
    commands: RunCommands
    faults: NodeFaults
    pulse: Pulse
    loops: tuple[Loop, ...] = ()


def make_app(served: Served, token: str) -> FastAPI:
    reader, registry = served.reader, served.pulse.registry
    access = Access(token, open_here=not reader.run.token_to_read)
    hub = Hub(reader, registry)
    nodes = NodeCommands(reader, served.commands, served.faults)
    register(hub, registry)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(loop()) for loop in (*served.loops, hub.refresh_forever)]
        yield
        nodes.close()
        for task in tasks:
            task.cancel()

    # The pages that come with FastAPI load scripts from elsewhere; ours are in `views`.
    app = FastAPI(title="understudy", version="1", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.hub = hub
    app.include_router(_questions(reader), dependencies=[Depends(access.read)], responses=UNAUTHORISED)
    app.include_router(_commands(served.commands, access))
    app.include_router(node_router(nodes, access))
    app.include_router(health_router(hub, served.pulse, access))
    add_views(app, hub, registry, access)
    return app


def _questions(reader: RunReader) -> APIRouter:
    router = APIRouter()
    reports = Reports(reader)

    @router.get("/api/v1/state")
    async def state() -> RunState:
        return reader.state()

    @router.get("/api/v1/events")
    async def events(after: Annotated[int, Query(ge=0, le=MAX_NUMBER)] = 0) -> list[Event]:
        """The next 1,000 events with a higher number; an empty answer means that there are no more."""
        return reader.events(after, EVENTS_AT_ONCE)

    @router.get("/api/v1/report")
    async def report() -> Report:
        """How the run went so far; at most half a second old."""
        return reports.report()

    @router.get("/api/v1/plan")
    async def plan() -> Plan:
        return reader.plan()

    @router.get("/api/v1/replication", responses={409: {"description": "no data flows yet"}})
    async def replication() -> ReplicationState:
        """The planning problem of the run with measured rates, and the plan in force."""
        found = reader.replication()
        if found is None:
            raise HTTPException(409, "no data flows yet, so there is nothing to plan")
        return found

    return router


@contextmanager
def _refusals() -> Iterator[None]:
    """What a run refuses is a conflict with how it stands."""
    try:
        yield
    except InvalidInput as error:
        raise HTTPException(409, f"{error.what}: {error.why}; {error.fix}") from None


def _commands(commands: RunCommands, access: Access) -> APIRouter:
    router = APIRouter(dependencies=[Depends(access.command)], responses=UNAUTHORISED)

    @router.post("/api/v1/faults")
    async def fault(note: FaultNote) -> dict[str, int]:
        return {"number": commands.note_fault(note.spec, note.target, note.at)}

    @router.post("/api/v1/switch", responses={409: {"description": "it cannot be protected like that"}})
    async def switch(wanted: Switch) -> Switch:
        with _refusals():
            commands.switch(SliceId.parse(wanted.slice), Scheme(member(Scheme, wanted.scheme, "scheme")))
        return wanted

    @router.post("/api/v1/replication", responses={409: {"description": "these slices cannot be planned"}})
    async def replication(wanted: WantedPlan) -> ReplicaPlan:
        """Lets other slices have working secondaries. The plan is adapted later, under the same budget."""
        with _refusals():
            slices = [SliceId.parse(name) for name in wanted.slices]
            return commands.apply_plan(slices, wanted.budget, wanted.algorithm)

    @router.post("/api/v1/move", responses={409: {"description": "it cannot go there"}})
    async def move(wanted: Move) -> Move:
        """Lets a slice go to another node without interruption; events tell when it is there, or why it is not."""
        with _refusals():
            commands.move(SliceId.parse(wanted.slice), wanted.node, wanted.legacy)
        return wanted

    @router.post("/api/v1/checkpoint", responses={409: {"description": "a slice cannot ship a checkpoint"}})
    async def checkpoint(wanted: WantedCheckpoint) -> AskedCheckpoint:
        """Lets slices ship the state they have, although no checkpoint is due; without names, all of them."""
        with _refusals():
            asked = commands.checkpoint([SliceId.parse(name) for name in wanted.slices])
        return AskedCheckpoint(slices={str(slice_id): epoch for slice_id, epoch in asked.items()})

    @router.post("/api/v1/rebalance", responses={409: {"description": "data does not flow yet"}})
    async def rebalance(wanted: WantedBalance) -> BalanceSteps:
        """Lets replicas go to other nodes for an even load, one at a time, where that is worthwhile."""
        with _refusals():
            steps = [BalanceStep.of(step) for step in commands.rebalance(wanted.dry_run)]
        return BalanceSteps(dry_run=wanted.dry_run, steps=steps)

    @router.post("/api/v1/finish")
    async def finish() -> dict[str, bool]:
        commands.finish()
        return {"finishing": True}

    @router.post("/api/v1/stop")
    async def stop() -> dict[str, bool]:
        commands.shut_down()
        return {"stopping": True}

    return router
