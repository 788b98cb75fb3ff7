"""The home directory: everything that must survive, and who may use it."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from understudy.coordination.sqlite import SqliteStore
from understudy.errors import InvalidInput
from understudy.model.names import NODE_PATTERN, valid_node_name
from understudy.model.run import RunSpec


def _try_lock(path: Path) -> IO[str] | None:
    """Held until the file is closed, at the latest when the process ends; None if another process holds it."""
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


@dataclass(frozen=True)
class Home:
    """`log/` bags, `checkpoints/` shipped, `nodes/` local, `logs/`, `manager.db`, `token`, `address` of the manager."""

    path: Path

    @property
    def database(self) -> Path:
        return self.path / "manager.db"

    @property
    def log(self) -> Path:
        return self.path / "log"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def nodes(self) -> Path:
        return self.path / "nodes"

    def node(self, name: str) -> Path:
        """The local directory of a node."""
        return node_directory(self.nodes, name)

    def exists(self) -> bool:
        """Whether a run was recorded here. A directory that was only prepared, or lost its power before, holds none."""
        return self.database.exists() and self._fact() is not None

    def stored(self) -> RunSpec:
        """The options of the run that lives here; reads only, so a home that is not there stays so."""
        facts = self._fact() if self.database.exists() else None
        if facts is None:
            raise InvalidInput(
                f"{self.path} holds no run", why="it has no record of one", fix="start one without --resume"
            )
        return RunSpec(**facts)

    def _fact(self) -> Any:
        try:
            store = SqliteStore(self.database)
            try:
                return store.fact("run")
            finally:
                store.close()
        except sqlite3.DatabaseError as error:
            raise InvalidInput(
                f"{self.database} cannot be read", why=str(error), fix="restore it, or give another --home"
            ) from error

    def create(self) -> None:
        for directory in (self.path, self.log, self.logs, self.nodes):
            directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path / "token", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(24))

    def token(self) -> str:
        return (self.path / "token").read_text()

    def announce(self, url: str) -> None:
        """Where the manager of this home answers, for commands that look for it."""
        hidden = self.path / ".address"
        hidden.write_text(json.dumps({"url": url}) + "\n")
        hidden.replace(self.path / "address")

    def address(self) -> str | None:
        try:
            return str(json.loads((self.path / "address").read_text())["url"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def lock(self) -> IO[str]:
        """Held for as long as the run lives; the system gives it back however the run ends."""
        file = _try_lock(self.path / "lock")
        if file is None:
            raise InvalidInput(
                f"{self.path} is in use",
                why="another run works in this home directory",
                fix="wait for it, stop it, or give another --home",
            )
        return file

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Keeps every run out meanwhile. Raises if one works here, or a node that outlived its run."""
        file = _try_lock(self.path / "lock")
        if file is None:
            raise InvalidInput(
                f"{self.path} is in use",
                why="a run works in this home directory, and files change while it does",
                fix="stop it first (Ctrl-C), and continue it afterwards with --resume",
            )
        with file:
            for path in sorted(self.nodes.glob("*.lock")):
                node = _try_lock(path)
                if node is None:
                    raise InvalidInput(
                        f"{self.path} is in use",
                        why=f"{path.stem} still works in it, though its run is over",
                        fix="end the process of that node, then try again",
                    )
                node.close()
            yield

    def hold_node(self, name: str) -> IO[str]:
        """The right to a node's directory, for as long as its process lives; taken before anything is put there."""
        place = self.node(name)
        self.nodes.mkdir(parents=True, exist_ok=True)
        file = _try_lock(self._node_lock(name))
        if file is None:
            raise InvalidInput(
                f"there is a node {name} already",
                why=f"another process works in {place}",
                fix="give another --name, or end that process",
            )
        return file

    def sweep_nodes(self) -> list[str]:
        """Removes the directories of nodes whose processes are gone; a frozen one still holds its lock."""
        removed = []
        for directory in sorted(path for path in self.nodes.glob("*") if path.is_dir()):
            file = _try_lock(self._node_lock(directory.name))
            if file is not None:
                with file:
                    shutil.rmtree(directory, ignore_errors=True)
                removed.append(directory.name)
        return removed

    def _node_lock(self, name: str) -> Path:
        # Beside the directory: whoever removes that must not remove the lock of its successor.
        return self.nodes / f"{name}.lock"


def node_directory(nodes: Path, name: str) -> Path:
    """The directory of one node below `nodes`; raises for a name that could lead anywhere else."""
    if not valid_node_name(name):
        raise InvalidInput(
            f"{name!r} is not the name of a node",
            why=f"a name becomes a directory, so it matches {NODE_PATTERN}",
            fix="use small letters, digits and hyphens, like node-1",
        )
    return nodes / name
