"""A Spark home of our own, made once per installed PySpark, Java and jar, and kept in the user's cache.

It differs from the one inside PySpark in three ways. `bin/spark-submit` starts Java at once instead of
asking another JVM how to. `python/lib` is empty, so Python workers import pyspark from site-packages
(compiled) and not from a zip. Signed jars are there unsigned, because the JVM keeps classes of signed jars
out of its shared archive, and one of them is the compiler that every first batch needs.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.stream.java import Java

JAR = Path(__file__).parent / "jvm" / "understudy.jar"
LOGGING = Path(__file__).parent / "jvm" / "log4j2.properties"
SUPERSEDED_AFTER_SECONDS = 24 * 3600
IDLE_AFTER_SECONDS = 30 * 24 * 3600

# Change it when the layout below changes: old overlays are then left alone and later removed.
LAYOUT = 1

SUBMIT = """#!/bin/sh
# PySpark starts its JVM through this file; everything Java needs to know is in the argument file.
exec "$UNDERSTUDY_JAVA" "@$UNDERSTUDY_JVM_ARGUMENTS" org.apache.spark.deploy.SparkSubmit "$@"
"""

SIGNATURE = re.compile(r"META-INF/[^/]+\.(SF|RSA|DSA|EC)", re.IGNORECASE)


@dataclass(frozen=True)
class Overlay:
    """A prepared directory; `classpath` and `options` are what any JVM started from it gets."""

    path: Path
    classpath: tuple[str, ...]
    options: tuple[str, ...]

    @property
    def archive(self) -> Path:
        return self.path / "classes.jsa"

    @property
    def base(self) -> Path:
        """Java's own classes, for runtimes that come without an archive of them; else it does not exist."""
        return self.path / "base.jsa"


def cache(env: Mapping[str, str] | None = None) -> Path:
    env = os.environ if env is None else env
    if chosen := env.get("UNDERSTUDY_CACHE"):
        return Path(chosen)
    return Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "understudy"


def pyspark_home() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise Unavailable("PySpark is not installed.", why="No module named pyspark.", fix="pip install understudy")
    return Path(spec.origin).resolve().parent


def identity(pyspark: Path, java: Java) -> dict[str, str | int]:
    """All that makes an overlay or its archive wrong when it changes."""
    jars = sorted((path.name, path.stat().st_size) for path in (pyspark / "jars").glob("*.jar"))
    return {
        "layout": LAYOUT,
        "pyspark": str(pyspark),
        "jars": hashlib.sha256(json.dumps(jars).encode()).hexdigest(),
        "java": str(java.home),
        "java_version": java.version,
        "understudy": hashlib.sha256(JAR.read_bytes()).hexdigest(),
    }


def prepare(java: Java, root: Path | None = None) -> Overlay:
    """The overlay for this PySpark and this Java, made now if it is not there. Safe to race."""
    root = cache() if root is None else root
    facts = identity(pyspark_home(), java)
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
    home = root / key
    if not (home / "facts.json").exists():
        _create(home, facts, java)
        remove_stale(root, keep=home)
    (home / "facts.json").touch()
    options = tuple((home / "options").read_text().splitlines())
    classpath = tuple((home / "classpath").read_text().splitlines())
    return Overlay(home, classpath, options)


def hold(overlay: Overlay) -> int:
    """A shared lock for as long as the process lives: nobody removes an overlay under a running JVM."""
    descriptor = os.open(overlay.path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def _create(home: Path, facts: Mapping[str, str | int], java: Java) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=home.parent))
    try:
        _fill(fresh, home, Path(str(facts["pyspark"])), java)
        (fresh / "facts.json").write_text(json.dumps(facts, indent=1))
        fresh.rename(home)
    except OSError:
        # Somebody else was faster: theirs is as good as ours. Anything else is a real failure.
        if not (home / "facts.json").exists():
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _fill(fresh: Path, home: Path, pyspark: Path, java: Java) -> None:
    (fresh / "bin").mkdir()
    (fresh / "python" / "lib").mkdir(parents=True)
    (fresh / "jars").symlink_to(pyspark / "jars")
    (fresh / "sbin").symlink_to(pyspark / "sbin")
    for script in (pyspark / "bin").iterdir():
        if script.name != "spark-submit":
            (fresh / "bin" / script.name).symlink_to(script)
    submit = fresh / "bin" / "spark-submit"
    submit.write_text(SUBMIT)
    submit.chmod(0o755)
    shutil.copyfile(JAR, fresh / JAR.name)
    # In the order of the names, not of the directory: the archive holds only for the very same class path.
    entries = [str(home / JAR.name)]
    entries += [_entry(jar, fresh, home) for jar in sorted((pyspark / "jars").glob("*.jar"))]
    (fresh / "classpath").write_text("\n".join(entries))
    (fresh / "options").write_text("\n".join(_module_options(pyspark, java)))


def _entry(jar: Path, fresh: Path, home: Path) -> str:
    with zipfile.ZipFile(jar) as archive:
        if not any(SIGNATURE.fullmatch(name) for name in archive.namelist()):
            return str(jar)
        (fresh / "unsigned").mkdir(exist_ok=True)
        with zipfile.ZipFile(fresh / "unsigned" / jar.name, "w", zipfile.ZIP_DEFLATED) as copy:
            for item in archive.infolist():
                if not SIGNATURE.fullmatch(item.filename):
                    copy.writestr(item, archive.read(item))
    return str(home / "unsigned" / jar.name)


def _module_options(pyspark: Path, java: Java) -> list[str]:
    classpath = os.pathsep.join([str(JAR), *map(str, (pyspark / "jars").glob("spark-launcher_*.jar"))])
    command = [str(java.executable), "-cp", classpath, "org.understudy.ModuleOptions"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise Unavailable(
            f"Java {java.version} at {java.home} could not start.",
            why=done.stderr.strip() or f"exit code {done.returncode}",
            fix="Point JAVA_HOME at a complete Java 17 or newer.",
        )
    return done.stdout.splitlines()


def remove_stale(root: Path, keep: Path) -> list[Path]:
    """Remove overlays that nothing runs from and nothing will ask for again."""
    removed = []
    for other in sorted(root.iterdir()):
        facts_file = other / "facts.json"
        # A dot marks what is still being made; it may be renamed while we look.
        if other == keep or other.name.startswith(".") or not _is_stale(facts_file, keep / "facts.json"):
            continue
        with (other / "lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            # Without its facts nobody takes it for complete, wherever the removal is cut short.
            facts_file.unlink(missing_ok=True)
            shutil.rmtree(other, ignore_errors=True)
            removed.append(other)
    return removed


def _is_stale(facts_file: Path, current_file: Path) -> bool:
    try:
        facts, current = json.loads(facts_file.read_text()), json.loads(current_file.read_text())
    except (FileNotFoundError, NotADirectoryError):
        # Not an overlay, or somebody else is removing it.
        return False
    if not (Path(facts["pyspark"]).exists() and Path(facts["java"]).exists()):
        return True
    idle = time.time() - facts_file.stat().st_mtime
    same = facts["pyspark"] == current["pyspark"] and facts["java"] == current["java"]
    return idle > (SUPERSEDED_AFTER_SECONDS if same else IDLE_AFTER_SECONDS)
