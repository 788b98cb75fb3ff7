"""PostgreSQL, from the machine's own packages."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from understudy.errors import Unavailable
from understudy.testing.services import clients
from understudy.testing.services.base import READY_WITHIN_S, SingleService
from understudy.testing.services.ports import free_ports

DEBIAN = Path("/usr/lib/postgresql")
SETTINGS = ("listen_addresses=127.0.0.1", "unix_socket_directories=", "shared_buffers=16MB", "max_connections=50")


class Postgres(SingleService):
    """A PostgreSQL server; clients connect to `address`, a postgresql:// URL without a password.

    Every commit is synced to disk, as by default.

    Examples
    --------
    >>> with Postgres() as postgres:  # doctest: +SKIP
    ...     connection = psycopg.connect(postgres.address)
    """

    name: ClassVar[str] = "postgres"
    # Ends sessions and writes a checkpoint; SIGTERM would wait for clients to leave.
    stop_signal: ClassVar[signal.Signals] = signal.SIGINT

    def __init__(self) -> None:
        # PostgreSQL refuses to run as root.
        self.user = _account() if os.geteuid() == 0 else None
        self._outside: Path | None = None

    @classmethod
    def check(cls) -> None:
        _programs()
        clients.require(cls.name, ("psycopg",))

    @classmethod
    def install(cls) -> str:
        return f"already there ({_programs()})"

    @property
    def data(self) -> Path:
        """Its data directory."""
        return (self.directory / "data").resolve()

    def prepare(self) -> None:
        (self.port,) = free_ports(1)
        self.address = f"postgresql://understudy@127.0.0.1:{self.port}/postgres"
        self._make_data()
        command = [str(_programs() / "initdb"), "--pgdata", str(self.data), "--username=understudy", "--auth=trust"]
        command += ["--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=READY_WITHIN_S,
            check=False,
            cwd="/",
            user=self.user,
            group=pwd.getpwnam(self.user).pw_gid if self.user else None,
            extra_groups=[] if self.user else None,
        )
        if done.returncode != 0:
            raise Unavailable(
                "PostgreSQL's data directory could not be made.",
                why="; ".join(done.stderr.strip().splitlines()[-3:]),
                fix=f"See that {self.data} can be written by {self.user or 'this account'}.",
            )

    def _make_data(self) -> None:
        link = self.directory / "data"
        if self.user is None:
            link.mkdir()
            return
        # The account PostgreSQL runs under may not look into a directory of root's, so its data lies beside it.
        self._outside = Path(
            tempfile.mkdtemp(
                prefix="understudy-postgres-", dir=open_to_all([tempfile.gettempdir(), "/tmp", "/var/tmp"])
            )
        )
        os.chown(self._outside, pwd.getpwnam(self.user).pw_uid, pwd.getpwnam(self.user).pw_gid)
        link.symlink_to(self._outside)

    def command(self) -> Sequence[str]:
        settings = [part for setting in SETTINGS for part in ("-c", setting)]
        return [str(_programs() / "postgres"), "-D", str(self.data), "-p", str(self.port), *settings]

    def answers(self) -> bool:
        """As pg_ctl does it: the eighth line of postmaster.pid, if the first names this very process."""
        with suppress(OSError, IndexError, ValueError):
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            return int(lines[0]) in {process.pid for process in self.processes} and lines[7].strip() == "ready"
        return False

    def close(self) -> None:
        super().close()
        if self._outside is not None:
            shutil.rmtree(self._outside, ignore_errors=True)


def _programs() -> Path:
    """Where initdb and postgres are: the newest of Debian's versions, or the PATH."""
    versions = [path for path in DEBIAN.glob("*/bin/initdb") if path.parts[-3].isdigit()]
    on_path = shutil.which("initdb")
    if versions:
        return max(versions, key=lambda path: int(path.parts[-3])).parent
    if on_path is not None:
        return Path(on_path).resolve().parent
    raise Unavailable(
        "PostgreSQL is not installed.",
        why=f"There is no initdb on the PATH nor below {DEBIAN}.",
        fix="'make services' installs Debian's as root; elsewhere: brew install postgresql, or your system's package.",
    )


def _account() -> str:
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def open_to_all(places: Sequence[str]) -> Path:
    """The first of these directories that every account may enter, along its whole path."""
    for place in map(Path, places):
        whole = (place.resolve(), *place.resolve().parents)
        if all(part.is_dir() and part.stat().st_mode & stat.S_IXOTH for part in whole):
            return place
    raise Unavailable(
        "PostgreSQL has no place for its data.",
        why=f"It may not run as root, and other accounts may enter none of {', '.join(places)}.",
        fix="Point TMPDIR at a directory that everybody may enter, or run the tests as another user.",
    )
