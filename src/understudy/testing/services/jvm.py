"""Services that run on Java: what they need, and how they are started small."""

from __future__ import annotations

import os
from collections.abc import Sequence

from understudy.stream import java
from understudy.testing.services import clients as python
from understudy.testing.services import jars

# One collector thread and the quick compiler: a service of a test must not take the cores of what it serves.
OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError", "-Djava.awt.headless=true")
LOGGING = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true")


def check(bundle: jars.Bundle, clients: Sequence[str]) -> None:
    java.find()
    jars.verified(bundle)
    python.require(bundle.name, clients)


def install(bundle: jars.Bundle) -> str:
    fetched = jars.install(bundle)
    count = len(jars.verified(bundle))
    return f"{count} jars {'fetched' if fetched else 'already there'}, verified ({bundle.home()})"


def command(bundle: jars.Bundle, *, heap_mb: int, main: str, arguments: Sequence[str]) -> list[str]:
    classpath = os.pathsep.join(str(path) for path in jars.paths(bundle))
    return [str(java.find().executable), f"-Xmx{heap_mb}m", *OPTIONS, *LOGGING, "-cp", classpath, main, *arguments]
