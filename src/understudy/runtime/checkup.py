"""What a machine needs to run understudy: each check says what it found, and how to mend what is wrong."""

from __future__ import annotations

import importlib.metadata
import os
import resource
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import psutil

from understudy.errors import Unavailable

NODE_BYTES = 700 * 2**20
"""What a node of the quick profile takes, JVM and Python, measured with small state."""
DISK_BYTES = 2**30
FILES = 1024
PYTHON = (3, 11)


class Finding(StrEnum):
    GOOD = "good"
    DOUBTFUL = "doubtful"
    BAD = "bad"


@dataclass(frozen=True)
class Check:
    name: str
    finding: Finding
    found: str
    fix: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def examine(home: Path, host: str, port: int, nodes: int) -> Iterator[Check]:
    """Every check, one after the other, so that a caller can show them as they come."""
    checks: tuple[Callable[[], Check], ...] = (
        check_python,
        check_java,
        check_pyspark,
        lambda: check_port(host, port),
        lambda: check_writable(home),
        lambda: check_disk(home),
        lambda: check_memory(nodes),
        check_files,
        check_temporary,
    )
    for check in checks:
        yield check()


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> Check:
    text = ".".join(str(part) for part in version[:3])
    if version < PYTHON:
        return Check("Python", Finding.BAD, text, "install Python 3.11 or newer and set up again with PYTHON=…")
    return Check("Python", Finding.GOOD, text)


def check_java() -> Check:
    from understudy.stream import java

    try:
        found = java.find()
    except Unavailable as error:
        return Check("Java", Finding.BAD, error.why, error.fix)
    return Check("Java", Finding.GOOD, f"{found.version} ({found.home})")


def check_pyspark() -> Check:
    try:
        version = importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        return Check("PySpark", Finding.BAD, "not installed", "pip install 'pyspark>=4.3,<4.4'")
    if not version.startswith("4.3."):
        fix = "pip install 'pyspark>=4.3,<4.4'"
        return Check("PySpark", Finding.BAD, f"{version}, and the epoch source is built for 4.3", fix)
    return Check("PySpark", Finding.GOOD, version)


def check_port(host: str, port: int) -> Check:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            fix = "give 'understudy run' another --port, or 0 for any free one"
            return Check("port", Finding.DOUBTFUL, f"{host}:{port} cannot be used: {error.strerror}", fix)
    return Check("port", Finding.GOOD, f"{host}:{port} is free")


def check_writable(home: Path) -> Check:
    place = _existing(home)
    try:
        with tempfile.TemporaryDirectory(dir=place) as probe:
            first, second = Path(probe) / "a", Path(probe) / "b"
            first.write_text("x")
            os.link(first, second)
    except OSError as error:
        fix = f"chmod u+rwx {place}, or give --home a directory on a file system that you may write to"
        return Check("permissions", Finding.BAD, f"{place}: {error.strerror}", fix)
    return Check("permissions", Finding.GOOD, f"{place} can be written, and files can be linked")


def check_disk(home: Path) -> Check:
    place = _existing(home)
    free = shutil.disk_usage(place).free
    if free < DISK_BYTES:
        return Check("disk", Finding.BAD, f"{_size(free)} free in {place}", "free at least 1 GB, or move --home")
    return Check("disk", Finding.GOOD, f"{_size(free)} free in {place}")


def check_memory(nodes: int) -> Check:
    available, needed = psutil.virtual_memory().available, nodes * NODE_BYTES
    found = f"{_size(available)} available; {nodes} nodes take about {_size(needed)}"
    if available < needed:
        return Check("memory", Finding.DOUBTFUL, found, "end other programs, or give 'understudy run' fewer --nodes")
    return Check("memory", Finding.GOOD, found)


def check_files() -> Check:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < FILES:
        more = f"ulimit -n {FILES}" if hard >= FILES or hard == resource.RLIM_INFINITY else "raise the hard limit"
        return Check("open files", Finding.DOUBTFUL, f"at most {soft}", more)
    return Check("open files", Finding.GOOD, f"at most {soft}")


def check_temporary() -> Check:
    try:
        with tempfile.NamedTemporaryFile() as file:
            return Check("temporary files", Finding.GOOD, str(Path(file.name).parent))
    except OSError as error:
        return Check("temporary files", Finding.BAD, str(error), "point TMPDIR at a directory you may write to")


def _existing(path: Path) -> Path:
    """The directory itself, or the nearest above it that is there."""
    path = path.absolute()
    return next(place for place in (path, *path.parents) if place.is_dir())


def _size(count: float) -> str:
    return f"{count / 2**30:.1f} GB"
