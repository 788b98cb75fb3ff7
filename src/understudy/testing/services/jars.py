"""Jars of a service: named and pinned in a lock file, kept in the user's cache, verified before every use."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from understudy.errors import InvalidInput, Unavailable
from understudy.stream import java, overlay
from understudy.testing.services import ivy
from understudy.testing.services.ivy import Coordinates

LOCKS = Path(__file__).parent / "locks"
FIX = "Run 'make services' (or: python -m understudy.testing.services) where Maven Central can be reached."


@dataclass(frozen=True)
class Bundle:
    """All jars of one service.

    name, version
        of the service, as the cache directory is called
    roots
        what is asked of Maven Central when the lock file is made; the rest follows from them
    """

    name: str
    version: str
    roots: tuple[Coordinates, ...]

    @property
    def lock(self) -> Path:
        return LOCKS / f"{self.name}.lock"

    def home(self, env: Mapping[str, str] | None = None) -> Path:
        """Shared by all checkouts of this account."""
        return overlay.cache(env) / "services" / f"{self.name}-{self.version}"


def read_lock(text: str) -> dict[Coordinates, str]:
    """The SHA-256 of every jar: one line each, `group:artifact:version sha256`; `#` begins a comment."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    try:
        return {Coordinates.parse(name): digest for name, digest in (line.split() for line in lines)}
    except ValueError as error:
        raise InvalidInput(
            "A lock file of jars cannot be read.", why=str(error), fix="Make it again with 'make lock'."
        ) from None


def write_lock(bundle: Bundle, jars: Mapping[Coordinates, str]) -> str:
    head = (
        f"# {bundle.name} {bundle.version}: what 'make services' fetches from Maven Central. 'make lock' writes it.\n"
    )
    return head + "".join(f"{name} {jars[name]}\n" for name in sorted(jars, key=str))


def verified(bundle: Bundle, home: Path | None = None) -> list[Path]:
    """The jars, in the order of the lock file, each with the digest it must have."""
    home = bundle.home() if home is None else home
    wanted = read_lock(bundle.lock.read_text())
    missing, damaged = _compare(home, wanted)
    if missing:
        raise Unavailable(
            f"{bundle.name} {bundle.version} is not installed.",
            why=f"{len(missing)} of {len(wanted)} jars are not in {home}.",
            fix=FIX,
        )
    if damaged:
        raise Damaged(
            f"{bundle.name} {bundle.version} is not what the lock file describes.",
            why=f"The SHA-256 of {', '.join(str(name) for name in damaged)} in {home} differs.",
            fix=FIX,
        )
    return [home / name.file for name in wanted]


def paths(bundle: Bundle) -> list[Path]:
    """Where the jars are, without looking."""
    return [bundle.home() / name.file for name in read_lock(bundle.lock.read_text())]


class Damaged(Unavailable):
    """Files are there and are not what they should be. Never a reason to skip a test."""


def install(bundle: Bundle, home: Path | None = None) -> bool:
    """Fetches the jars that are missing or damaged; True when any were. Without any it needs no network."""
    home = bundle.home() if home is None else home
    wanted = read_lock(bundle.lock.read_text())
    home.mkdir(parents=True, exist_ok=True)
    with (home / "install.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing, damaged = _compare(home, wanted)
        absent = [*missing, *damaged]
        if absent:
            _fetch(bundle, absent, wanted, home)
    return bool(absent)


def _fetch(bundle: Bundle, absent: Sequence[Coordinates], wanted: Mapping[Coordinates, str], home: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".new-", dir=home) as folder:
        fresh = Path(folder)
        ivy.retrieve(java.find(), absent, fresh)
        missing, damaged = _compare(fresh, {name: wanted[name] for name in absent})
        if missing or damaged:
            raise Damaged(
                f"{bundle.name} {bundle.version} could not be installed.",
                why=f"not fetched: {len(missing)} jars; other content than the lock file says: {len(damaged)} "
                f"({', '.join(str(name) for name in [*missing, *damaged][:3])} …).",
                fix="Try again; if it stays so, something between here and Maven Central changes the files.",
            )
        for name in absent:
            shutil.move(fresh / name.file, home / name.file)


def _compare(home: Path, wanted: Mapping[Coordinates, str]) -> tuple[list[Coordinates], list[Coordinates]]:
    missing = [name for name in wanted if not (home / name.file).exists()]
    present = [name for name in wanted if name not in missing]
    return missing, [name for name in present if digest(home / name.file) != wanted[name]]


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
