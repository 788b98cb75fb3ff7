"""The command line of a node's JVM, and the environment in which PySpark starts it."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from understudy.stream.overlay import LOGGING, Overlay

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from understudy.stream.java import Java
    from understudy.stream.profile import Profile


def arguments(
    overlay: Overlay,
    profile: Profile,
    settings: Mapping[str, str],
    temporary: Path,
    archiving: Path | None = None,
) -> list[str]:
    """What spark-submit's launcher would have worked out in a JVM of its own, and our tuning."""
    heap = settings.get("spark.driver.memory", profile.heap)
    chosen = [*overlay.options, *profile.jvm, f"-Xmx{heap}", f"-Djava.io.tmpdir={temporary}"]
    chosen += [f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"]
    chosen += _sharing(overlay, archiving)
    chosen += shlex.split(settings.get("spark.driver.extraJavaOptions", ""))
    return [*chosen, "-cp", os.pathsep.join(_classpath(overlay, settings))]


def _sharing(overlay: Overlay, archiving: Path | None) -> list[str]:
    # Else the JVM lists every class it leaves out, and every doubt about the archive, on standard output.
    silent = "-Xlog:disable"
    base = [str(overlay.base)] if overlay.base.exists() else []
    if archiving is not None:
        below = [f"-XX:SharedArchiveFile={base[0]}"] if base else []
        return [silent, *below, f"-XX:ArchiveClassesAtExit={archiving}"]
    if overlay.archive.exists():
        # auto: an archive that does not fit is ignored, never fatal.
        files = os.pathsep.join([*base, str(overlay.archive)])
        return [silent, "-Xshare:auto", f"-XX:SharedArchiveFile={files}"]
    return []


def _classpath(overlay: Overlay, settings: Mapping[str, str]) -> list[str]:
    # What users add comes last: the archive holds for this class path and anything longer.
    added = settings.get("spark.driver.extraClassPath", "").split(os.pathsep)
    added += [os.environ.get(name, "") for name in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR")]
    return [*overlay.classpath, *filter(None, added)]


def argument_file(arguments: Sequence[str]) -> str:
    """In the syntax of java's @file: quoted, because paths may hold blanks."""
    quoted = (argument.replace("\\", "\\\\").replace('"', '\\"') for argument in arguments)
    return "".join(f'"{argument}"\n' for argument in quoted)


@contextmanager
def environment(java: Java, overlay: Overlay, arguments: Sequence[str], local: bool) -> Iterator[None]:
    """While it holds, PySpark's gateway starts our JVM. Afterwards the environment is what it was."""
    with tempfile.NamedTemporaryFile("w", prefix="understudy-", suffix=".args") as file:
        file.write(argument_file(arguments))
        file.flush()
        changes = {
            "SPARK_HOME": str(overlay.path),
            "JAVA_HOME": str(java.home),
            "UNDERSTUDY_JAVA": str(java.executable),
            "UNDERSTUDY_JVM_ARGUMENTS": file.name,
        }
        if local:
            # Spares a look-up of the host name and a warning about what it found.
            changes["SPARK_LOCAL_IP"] = "127.0.0.1"
        before = {name: os.environ.get(name) for name in changes}
        os.environ.update(changes)
        # Workers must run the interpreter of this environment, not the first python3 of the PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def temporary_directory(local_dir: Path) -> Path:
    folder = local_dir / "tmp"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
