"""What happens to a node on purpose: kill and freeze, in runs that allow faults, and drain. Only with the token."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, HTTPException, Request
from pydantic import BaseModel, Field

from understudy.errors import InvalidInput
from understudy.model.view import NodeState
from understudy.web.access import Access
from understudy.web.ports import NodeFaults, RunCommands, RunReader

LONGEST_FREEZE_S = 600.0
LONGEST_NOTICE_S = 86_400.0


class Caused(BaseModel):
    """The number of the event under which it was written down; what follows has it as its cause."""

    number: int


class Kill(BaseModel):
    jvm: bool = Field(False, description="only the node's JVM")


class Freeze(BaseModel):
    seconds: float = Field(3.0, gt=0, le=LONGEST_FREEZE_S, allow_inf_nan=False)
    jvm: bool = Field(False, description="only the node's JVM")


class Drain(BaseModel):
    undo: bool = False
    within_s: float | None = Field(
        None,
        ge=0,
        le=LONGEST_NOTICE_S,
        allow_inf_nan=False,
        description="the node leaves after so long at the latest, and as soon as it is empty",
    )


REFUSED: dict[int | str, dict[str, Any]] = {
    401: {"description": "no token, or a wrong one"},
    403: {"description": "the run was not started with --allow-faults"},
    404: {"description": "there is no such node"},
    409: {"description": "the node is not connected, or not on this machine"},
}


class NodeCommands:
    """Faults and drains that people ask for, with the checks they need. Frozen nodes are thawed on time."""

    def __init__(self, reader: RunReader, commands: RunCommands, faults: NodeFaults) -> None:
        self._reader, self._commands, self._faults = reader, commands, faults
        self._frozen: dict[str, tuple[NodeState, asyncio.TimerHandle]] = {}

    async def kill(self, name: str, port: int, *, jvm: bool = False) -> Caused:
        node = self._reach(name, port)
        number = self._note(f"kill:{_victim(name, jvm)}@{self._elapsed()}", name)
        await asyncio.to_thread(self._faults.kill, node, jvm=jvm)
        return Caused(number=number)

    async def freeze(self, name: str, seconds: float, port: int, *, jvm: bool = False) -> Caused:
        node = self._reach(name, port)
        number = self._note(f"freeze:{_victim(name, jvm)}@{self._elapsed()}+{seconds:g}s", name)
        before = self._frozen.pop(name, None)
        if before is not None:
            before[1].cancel()
        await asyncio.to_thread(self._faults.freeze, node, jvm=jvm)
        later = asyncio.get_running_loop().call_later(seconds, self._thaw, name)
        self._frozen[name] = (node, later)
        return Caused(number=number)

    def drain(self, name: str, undo: bool, within_s: float | None) -> Caused:
        """No fault: nothing is interrupted."""
        self._find(name)
        try:
            return Caused(number=self._commands.drain(name, undo, within_s))
        except InvalidInput as error:
            raise HTTPException(409, error.what) from None

    def close(self) -> None:
        """Nobody stays frozen because the manager ended."""
        for name in tuple(self._frozen):
            self._thaw(name)

    def _thaw(self, name: str) -> None:
        found = self._frozen.pop(name, None)
        if found is not None:
            found[1].cancel()
            self._faults.thaw(found[0])

    def _find(self, name: str) -> NodeState:
        nodes = self._reader.state().nodes
        for node in nodes:
            if node.name == name:
                return node
        raise HTTPException(404, f"there is no node {name}; there are {', '.join(n.name for n in nodes) or 'none'}")

    def _reach(self, name: str, port: int) -> NodeState:
        if not self._reader.run.allow_faults:
            raise HTTPException(403, "this run does not allow faults; start it with 'understudy run --allow-faults'")
        node = self._find(name)
        if not node.connected or not self._faults.reaches(node, port):
            raise HTTPException(409, f"{name} is not a process of this machine that is connected to this manager")
        return node

    def _note(self, spec: str, target: str) -> int:
        return self._commands.note_fault(spec, target, self._reader.now())

    def _elapsed(self) -> str:
        return f"{self._reader.state().elapsed_s:.1f}s"


def node_router(commands: NodeCommands, access: Access) -> APIRouter:
    router = APIRouter(
        prefix="/api/v1/nodes", tags=["faults"], dependencies=[Depends(access.command)], responses=REFUSED
    )

    @router.post("/{node}/kill")
    async def kill(node: str, request: Request, body: Annotated[Kill | None, Body()] = None) -> Caused:
        """Ends a node as a power cut would: its processes and its local disk, at once; or its JVM alone."""
        return await commands.kill(node, _port(request), jvm=body is not None and body.jvm)

    @router.post("/{node}/freeze")
    async def freeze(node: str, request: Request, body: Annotated[Freeze, Body()]) -> Caused:
        """Stops a node's processes for a while, or its JVM alone, then lets them go on."""
        return await commands.freeze(node, body.seconds, _port(request), jvm=body.jvm)

    @router.post("/{node}/drain")
    async def drain(node: str, body: Annotated[Drain, Body()]) -> Caused:
        """Moves a node's slices away without interruption, and gives it no new ones. With a time it then leaves."""
        return commands.drain(node, body.undo, body.within_s)

    return router


def _victim(name: str, jvm: bool) -> str:
    return f"{name}/jvm" if jvm else name


def _port(request: Request) -> int:
    server = request.scope.get("server")
    return int(server[1]) if server and server[1] else 0
