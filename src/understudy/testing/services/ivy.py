"""Fetches jars from Maven Central by their coordinates, with the Ivy that PySpark carries.

Ivy knows where Maven Central is; nothing needs to be installed or configured. With exact versions it reads no
metadata: one request for each jar.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from understudy.errors import Unavailable
from understudy.stream.java import Java
from understudy.stream.overlay import pyspark_home

TIMEOUT_S = 600

SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <caches defaultCacheDir="${{ivy.settings.dir}}/cache"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="{poms}" useMavenMetadata="{poms}"/></resolvers>
</ivysettings>
"""

MODULE = """<ivy-module version="2.0">
  <info organisation="understudy" module="services"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


@dataclass(frozen=True)
class Coordinates:
    """A jar as Maven names it."""

    group: str
    artifact: str
    version: str

    @classmethod
    def parse(cls, text: str) -> Coordinates:
        parts = text.split(":")
        if len(parts) != 3 or not all(parts):
            raise ValueError(f"not group:artifact:version: {text!r}")
        return cls(*parts)

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file(self) -> str:
        return f"{self}.jar".replace(":", "_")


def retrieve(java: Java, jars: Sequence[Coordinates], into: Path) -> None:
    """Fetches exactly these jars, not what they depend on, each under the name of its `file`."""
    _run(java, jars, into / "[organisation]_[artifact]_[revision].[ext]", transitive=False)


def resolve(java: Java, roots: Sequence[Coordinates], into: Path) -> dict[Coordinates, Path]:
    """Fetches these and all they need to run; returns where each jar is.

    Jars with a classifier are left out: they are native code for one kind of machine, and no service needs them.
    """
    _run(
        java,
        roots,
        into / "[organisation]" / "[artifact]" / "[revision]" / "plain(-[classifier]).[ext]",
        transitive=True,
    )
    return {Coordinates(*path.relative_to(into).parts[:3]): path for path in into.glob("*/*/*/plain.jar")}


def _run(java: Java, wanted: Iterable[Coordinates], pattern: Path, *, transitive: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="ivy-") as folder:
        settings, module = Path(folder, "settings.xml"), Path(folder, "ivy.xml")
        settings.write_text(SETTINGS.format(poms=str(transitive).lower()))
        module.write_text(MODULE.format(dependencies="\n".join(_dependency(one, transitive) for one in wanted)))
        command = [str(java.executable), "-Xmx192m", "-XX:TieredStopAtLevel=1", "-cp", str(_jar())]
        command += ["org.apache.ivy.Main", "-warn", "-settings", str(settings), "-ivy", str(module)]
        command += ["-types", "jar", "bundle", "-retrieve", str(pattern)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise Unavailable(
            "Jars could not be fetched from Maven Central.",
            why=_reason(done.stdout + done.stderr),
            fix="See that Java reaches Maven Central from here (a proxy is given in JAVA_TOOL_OPTIONS as "
            "-Dhttps.proxyHost=… -Dhttps.proxyPort=…), then run 'make services' again.",
        )


def _dependency(one: Coordinates, transitive: bool) -> str:
    names = f"org={quoteattr(one.group)} name={quoteattr(one.artifact)} rev={quoteattr(one.version)}"
    if transitive:
        return f'    <dependency {names} conf="default->master,runtime"/>'
    return f'    <dependency {names} transitive="false"/>'


def _jar() -> Path:
    found = sorted((pyspark_home() / "jars").glob("ivy-*.jar"))
    if not found:
        raise Unavailable(
            "There is no Ivy to fetch jars with.",
            why=f"{pyspark_home() / 'jars'} holds no ivy-*.jar.",
            fix="Install the PySpark of requirements.lock, which carries one.",
        )
    return found[-1]


def _reason(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip(" \t:")]
    telling = [line for line in lines if any(word in line for word in ("not found", "rror", "xception", "nknown host"))]
    return "; ".join(dict.fromkeys(telling[:3] or lines[-3:])) or "Ivy gave no reason"
