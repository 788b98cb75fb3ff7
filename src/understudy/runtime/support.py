"""What somebody who helps needs to see of a run, as one archive without secrets.

A part that cannot be collected is replaced by the reason: a bundle is made when something is wrong. Every text passes
`model/secrets.hide` on its way into the archive, so a new part cannot forget it.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import psutil

from understudy.coordination.sqlite import SqliteStore
from understudy.errors import UnderstudyError
from understudy.log.disk import walk
from understudy.model.secrets import hidden, hide, is_secret, secrets_in
from understudy.runtime.client import Client
from understudy.runtime.home import Home

LOG_BYTES = 2**20
EVENT_BYTES = 8 * 2**20
FILES = 20_000
_FACTS = ("phase", "goal", "failure", "lost", "lost_together", "replacements", "branch", "fingerprint")
_VARIABLES = ("UNDERSTUDY_", "SPARK_", "PYSPARK_", "JAVA_", "JDK_", "PYTHON", "TMPDIR", "LANG", "LC_", "TZ")


@dataclass(frozen=True)
class Part:
    """A file of a bundle: its name, and who makes its text."""

    name: str
    make: Callable[[], str]


def write(file: Path, parts: Iterator[Part], secrets: set[str]) -> list[str]:
    """Writes a bundle; returns the names of its parts. Only its owner may read it.

    Parameters
    ----------
    file : Path
        The archive; one that is there is replaced.
    parts : iterator of Part
        Made one after the other. A part whose maker fails holds the reason.
    secrets : set of str
        Secrets that are known, hidden besides those that are recognised by their form.
    """
    names = []
    with os.fdopen(os.open(file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as raw:
        os.fchmod(raw.fileno(), 0o600)
        with tarfile.open(fileobj=raw, mode="w:gz") as tar:
            for part in parts:
                text = hide(_text_of(part), secrets).encode()
                info = tarfile.TarInfo(f"understudy-support/{part.name}")
                info.size, info.mtime = len(text), int(time.time())
                tar.addfile(info, BytesIO(text))
                names.append(part.name)
    return names


def _text_of(part: Part) -> str:
    try:
        return part.make()
    except (OSError, UnderstudyError, ValueError, KeyError, psutil.Error) as error:
        return f"not collected: {type(error).__name__}: {error}\n"


def known_secrets(home: Home | None, environment: Mapping[str, str]) -> set[str]:
    """The run's token, and the values of options and variables whose names say that they are secret."""
    found = {value for name, value in environment.items() if is_secret(name)} | secrets_in(dict(environment))
    if home is None:
        return found
    with suppress(OSError):
        found.add(home.token().strip())
    with suppress(UnderstudyError):
        found |= secrets_in(home.stored().model_dump(mode="json"))
    return found


def of_machine(environment: Mapping[str, str]) -> Iterator[Part]:
    """Versions, hardware, and the variables that change what understudy, Spark or Python do."""
    yield Part("versions.json", lambda: _json({"made": _time(time.time()), **_versions()}))
    yield Part("machine.json", lambda: _json(_machine()))
    chosen = {name: value for name, value in sorted(environment.items()) if name.startswith(_VARIABLES)}
    yield Part("environment.json", lambda: _json(hidden(chosen)))


def of_home(home: Home) -> Iterator[Part]:
    """What a home tells, whether its run goes on or not."""
    yield Part("run.json", lambda: _json(hidden(home.stored().model_dump(mode="json"))))
    yield Part("facts.json", lambda: _json(hidden(_facts(home))))
    yield Part("files.txt", lambda: _listing(home.path))
    for name in ("events.jsonl.1", "events.jsonl"):
        if (home.path / name).exists():
            yield Part(name, _tail_of(home.path / name, EVENT_BYTES))
    for path in sorted(home.logs.glob("*.log")):
        yield Part(f"logs/{path.name}", _tail_of(path, LOG_BYTES))


def of_manager(client: Client) -> Iterator[Part]:
    """What a manager that answers knows of its run."""
    yield Part("report.json", lambda: client.get("/api/v1/report"))
    yield Part("view.json", lambda: client.get("/api/v1/view"))
    yield Part("metrics.txt", lambda: client.get("/metrics"))


def tail(path: Path, limit: int) -> str:
    """The last lines of a file, `limit` bytes at most. Never a part of a line: a secret could lose its name there."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - limit))
        content = file.read(limit)
    if size > limit:
        content = content.partition(b"\n")[2]
    return content.decode(errors="replace")


def _tail_of(path: Path, limit: int) -> Callable[[], str]:
    return lambda: tail(path, limit)


def _versions() -> dict[str, Any]:
    """Ours, and of everything we may need: "not installed" is an answer too."""
    names = [re.split(r"[^\w.\-]", line, maxsplit=1)[0] for line in importlib.metadata.requires("understudy") or []]
    packages = {name: _version(name) for name in ("understudy", *dict.fromkeys(names))}
    return {"python": platform.python_version(), "packages": packages}


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _machine() -> dict[str, Any]:
    memory = psutil.virtual_memory()
    return {
        "system": platform.platform(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": memory.total,
        "available_bytes": memory.available,
        "load": os.getloadavg(),
        "up_since": _time(psutil.boot_time()),
    }


def _facts(home: Home) -> dict[str, Any]:
    home.stored()
    store = SqliteStore(home.database)
    try:
        return {name: store.fact(name) for name in _FACTS}
    finally:
        store.close()


def _listing(root: Path) -> str:
    """Names, sizes and times of the files of a home; not their content."""
    lines = []
    for path in sorted(walk(root))[:FILES]:
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        lines.append(f"{_time(status.st_mtime)} {status.st_size:>12} {path.relative_to(root)}")
    return "\n".join(lines) + "\n"


def _time(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def _json(data: Any) -> str:
    return json.dumps(data, indent=2, default=str) + "\n"
