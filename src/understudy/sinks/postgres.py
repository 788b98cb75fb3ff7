"""Epochs as rows of a PostgreSQL table: the rows and the epoch's number are committed together."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import pyarrow as pa

from understudy.errors import InvalidInput, Unavailable
from understudy.extras import need
from understudy.model.connection import CONNECTION
from understudy.sinks import postgres_table as tables
from understudy.sinks.interface import Sink, SinkWriter, Written
from understudy.sinks.note import Superseded
from understudy.sinks.sequence import NOTHING, foreign, is_there

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

Mode = Literal["append", "upsert"]
T = TypeVar("T")
logger = logging.getLogger(__name__)

CLAIMS = "understudy_sinks"
"""The table beside the target that holds one row for every target: whose it is, its writer, its last epoch."""
PATIENCE_S = 30.0
"""How long a server that is away is waited for: as long as a restart or a fail-over of its own takes."""
_LOCK_MS = 2000
_PAUSE_S = 0.1


@dataclass(frozen=True)
class Postgres(Sink):
    """Writes every epoch to a table, in one transaction with the epoch's number.

    The table is made from the rows' schema where it is missing. A row of the table `understudy_sinks`, in the same
    schema, remembers the run, the writer and the last epoch. A writer that was replaced finds another writer there,
    under a lock, and writes nothing.

    Parameters
    ----------
    dsn
        A connection string or URL as libpq takes it. It appears in no log, report or fingerprint. What it leaves out
        comes from libpq's environment variables and files (`PGPASSWORD`, `~/.pgpass`).
    table
        The table's name, or `schema.name`, as it is written: upper and lower case count.
    mode
        `append` adds rows. `upsert` replaces the row with the same key; of several rows of an epoch with one key the
        last one counts.
    key
        The columns that identify a row; for `upsert`. An existing table needs a unique index on exactly these.

    Raises
    ------
    InvalidInput
        If the parameters do not fit together; when it is opened, if the table belongs to another run or its columns
        do not fit the rows.
    Unavailable
        If psycopg is not installed; when it is opened, if the server cannot be reached.

    Examples
    --------
    >>> Postgres("postgresql://shop@db/sales", "counts", mode="upsert", key="word")
    Postgres(table='counts', mode='upsert', key=('word',))
    """

    dsn: str = field(repr=False, metadata=CONNECTION)
    table: str
    mode: Mode = "append"
    key: str | Sequence[str] = ()

    def __post_init__(self) -> None:
        need(["psycopg"], extra="postgres", user="us.sinks.Postgres")
        object.__setattr__(self, "key", (self.key,) if isinstance(self.key, str) else tuple(self.key))
        _check_dsn(self.dsn)
        tables.split(self.table)
        if self.mode not in get_args(Mode):
            raise InvalidInput(
                f"us.sinks.Postgres has mode={self.mode!r}", why="there is no such choice", fix="use append or upsert"
            )
        if bool(self.key) != (self.mode == "upsert"):
            raise InvalidInput(
                f"us.sinks.Postgres has mode='{self.mode}' and {'a' if self.key else 'no'} key",
                why="a key says which row an upsert replaces; append replaces none",
                fix='write mode="upsert", key="column", or leave both away',
            )

    def open(self, name: str, home: Path, run: str) -> SinkWriter:  # noqa: ARG002 - the interface's
        return PostgresWriter(self, name, run)


class PostgresWriter(SinkWriter):
    """One connection. Opening it takes the target over; every epoch is one transaction that begins with the fence.

    1. Lock the target's row of `understudy_sinks` and compare the writer: a newer one ends us.
    2. Compare the last epoch: one that is there is left alone.
    3. Copy the rows.
    4. Set the last epoch, commit.
    """

    def __init__(self, sink: Postgres, name: str, run: str, on_step: Callable[[str], None] = lambda _: None) -> None:
        self._sink, self._name, self._run = sink, name, run
        self._on_step = on_step
        self._connection: Connection[Any] | None = None
        self._columns: tables.Columns | None = None
        self._committing = NOTHING
        # Sessions of one sink of one run, and of nobody else: those that a successor ends.
        digest = hashlib.sha256(f"{run}\n{name}\n{sink.table}".encode()).hexdigest()[:24]
        self._session = f"understudy {digest}"
        self._target = tables.Target("", "")
        self._writer = self._patiently(self._take_over)

    def write(self, epoch: int, rows: pa.Table) -> Written:
        self._committing = NOTHING
        written = self._patiently(lambda connection: self._transaction(connection, epoch, rows))
        # There because of a commit of ours whose answer was lost: nobody else writes while the fence is ours.
        return Written.ONCE if self._committing == epoch else written

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _take_over(self, connection: Connection[Any]) -> int:
        self._target = tables.resolve(connection, self._sink.table)
        self._prepare_claims(connection)
        # A predecessor that is frozen in a transaction would hold its lock for as long as it is.
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
            " AND pid <> pg_backend_pid() AND datname = current_database() AND usename = current_user",
            [self._session],
        )
        with connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = {_LOCK_MS}")
            connection.execute(
                self._claims("INSERT INTO {} (target, run, sink) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"),
                [self._target.name, self._run, self._name],
            )
            found = connection.execute(
                self._claims("SELECT run, sink FROM {} WHERE target = %s FOR UPDATE"), [self._target.name]
            ).fetchone()
            if found != (self._run, self._name):
                there, of = found or ("(unknown)", "(unknown)")
                raise foreign(f"table {self._target}", there, of, f"delete its row in {self._target.schema}.{CLAIMS}")
            writer = connection.execute(
                self._claims("UPDATE {} SET writer = writer + 1 WHERE target = %s RETURNING writer"),
                [self._target.name],
            ).fetchone()
        assert writer is not None
        return int(writer[0])

    def _prepare_claims(self, connection: Connection[Any]) -> None:
        if tables.exists(connection, tables.Target(self._target.schema, CLAIMS)):
            return
        with connection.transaction():
            # Two statements that both find the table missing would both create it, and one would fail.
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [CLAIMS])
            connection.execute(
                self._claims(
                    "CREATE TABLE IF NOT EXISTS {} (target text PRIMARY KEY, run text NOT NULL, sink text NOT NULL,"
                    " writer bigint NOT NULL DEFAULT 0, epoch bigint NOT NULL DEFAULT -1,"
                    " rows bigint NOT NULL DEFAULT 0, written_at timestamptz)"
                )
            )

    def _transaction(self, connection: Connection[Any], epoch: int, rows: pa.Table) -> Written:
        columns = self._fitting(connection, epoch, rows)
        with connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = {_LOCK_MS}")
            if is_there(f"table {self._target}", epoch, self._fence(connection, epoch)):
                return Written.THERE
            self._on_step("begun")
            tables.put(connection, self._target, columns, rows, tuple(self._sink.key))
            self._on_step("copied")
            connection.execute(
                self._claims("UPDATE {} SET epoch = %s, rows = rows + %s, written_at = now() WHERE target = %s"),
                [epoch, rows.num_rows, self._target.name],
            )
            self._committing = epoch
            self._on_step("noted")
        self._on_step("committed")
        return Written.ONCE

    def _fence(self, connection: Connection[Any], epoch: int) -> int:
        """Locks the target against other writers until the transaction ends; returns the last epoch."""
        found = connection.execute(
            self._claims("SELECT writer, epoch FROM {} WHERE target = %s FOR UPDATE"), [self._target.name]
        ).fetchone()
        if found is None:
            raise InvalidInput(
                f"table {self._target} is not claimed by this run any more",
                why=f"its row in {self._target.schema}.{CLAIMS} was deleted, so it is not known which epochs it holds",
                fix="run again in a new --home",
            )
        if found[0] != self._writer:
            raise Superseded(self._name, epoch)
        return max(int(found[1]), NOTHING)

    def _fitting(self, connection: Connection[Any], epoch: int, rows: pa.Table) -> tables.Columns:
        """The table's columns, made or checked when the first epoch comes: only then is the schema known."""
        if self._columns is None:
            wanted = tables.columns(rows.schema)
            with connection.transaction():
                self._fence(connection, epoch)
                tables.create(connection, self._target, wanted, tuple(self._sink.key))
                tables.check(connection, self._target, wanted, tuple(self._sink.key))
            self._columns = wanted
        return self._columns

    def _claims(self, query: str) -> Any:
        from psycopg import sql

        return sql.SQL(query).format(sql.Identifier(self._target.schema, CLAIMS))

    def _patiently(self, action: Callable[[Connection[Any]], T]) -> T:
        """Does something with the connection, and again with a new one when the server was away."""
        import psycopg

        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                with self._refused():
                    return action(self._connected())
            except psycopg.OperationalError as error:
                self.close()
                if time.monotonic() > deadline or self._rejected(error):
                    raise self._unreachable(error) from error
                logger.warning("sink '%s' tries again: %s", self._name, _first_line(error))
            except BaseException:
                self.close()
                raise
            time.sleep(_PAUSE_S)

    def _connected(self) -> Connection[Any]:
        import psycopg

        if self._connection is None:
            left_s = max(2, round(PATIENCE_S))
            options = {"application_name": self._session, "connect_timeout": left_s}
            self._connection = psycopg.connect(self._sink.dsn, autocommit=True, **options)  # type: ignore[arg-type]
            # A server may be set to answer before a commit is on disk; any stricter setting stays.
            self._connection.execute(
                "SELECT set_config('synchronous_commit', 'on', false)"
                " WHERE current_setting('synchronous_commit') = 'off'"
            )
        return self._connection

    def _rejected(self, error: Exception) -> bool:
        """Whether the server is there and does not want us: waiting would not help."""
        from psycopg import pq

        failed_to_connect = getattr(error, "sqlstate", None) is None
        return failed_to_connect and pq.PGconn.ping(self._sink.dsn.encode()) == pq.Ping.OK and self._still_fails()

    def _still_fails(self) -> bool:
        import psycopg

        try:
            self._connected()
        except psycopg.OperationalError:
            return True
        return False

    @contextmanager
    def _refused(self) -> Iterator[None]:
        """Errors of PostgreSQL that a retry does not change, in our words."""
        import psycopg

        try:
            yield
        except psycopg.OperationalError:
            raise
        except psycopg.Error as error:
            raise InvalidInput(
                f"PostgreSQL refuses to write to table {self._target}",
                why=_first_line(error),
                fix="let the rows fit the table, and grant the sink's role what it needs; then go on with --resume",
            ) from error

    def _unreachable(self, error: Exception) -> Unavailable:
        return Unavailable(
            f"PostgreSQL cannot be reached for table {self._sink.table}",
            why=_first_line(error),
            fix=f"check the server, the address and the role of sink '{self._name}'; then go on with --resume",
        )


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _check_dsn(dsn: object) -> None:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        conninfo_to_dict(str(dsn))
    except psycopg.Error:
        # The driver's words may quote the string, and the string may hold a password.
        raise InvalidInput(
            "the connection string of a Postgres sink cannot be read",
            why="libpq knows URLs such as postgresql://user@host/database and words such as host=… dbname=…",
            fix="correct the dsn; it is not shown here because it may hold a password",
        ) from None
