"""Epochs as commits of a Delta table: each names its epoch as the version of an application's transaction."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

import pyarrow as pa

from understudy.errors import InvalidInput, Unavailable
from understudy.extras import need
from understudy.log.disk import Disk
from understudy.model.connection import CONNECTION
from understudy.sinks.directory import under
from understudy.sinks.fitting import check_fit, check_types
from understudy.sinks.interface import Sink, SinkWriter, Written
from understudy.sinks.sequence import NOTHING, foreign, is_there

if TYPE_CHECKING:
    from deltalake import DeltaTable

T = TypeVar("T")
logger = logging.getLogger(__name__)

RUN, SINK, EPOCH = "understudy.run", "understudy.sink", "understudy.epoch"
"""Properties of the table that say whose epochs it holds, and what every commit says of itself."""
PATIENCE_S = 30.0
_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")


@dataclass(frozen=True)
class Delta(Sink):
    """Appends every epoch to a Delta table, as one commit.

    The commit carries an application transaction (the protocol's `txn` action): the application is the run and the
    sink, the version is the epoch. Two commits with one application conflict, so of two writers one commits an epoch,
    and the other finds it there. The table is made from the rows' schema where it is missing.

    Parameters
    ----------
    path
        A directory, below `HOME/out` if it is relative, or an address such as `s3://bucket/table`.
    partition_by
        Columns by which the files of a new table are divided.
    storage_options
        Settings of the object store, such as keys. They appear in no log, report or fingerprint.

    Raises
    ------
    InvalidInput
        If there is no path; when it is opened, if the table belongs to another run or its columns do not fit the rows.
    Unavailable
        If deltalake is not installed; when it is opened, if the store cannot be reached.

    Examples
    --------
    >>> Delta("counts", partition_by="day")
    Delta(path='counts', partition_by=('day',))
    """

    path: str | Path
    partition_by: str | Sequence[str] = ()
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False, metadata=CONNECTION)

    def __post_init__(self) -> None:
        need(["deltalake"], extra="delta", user="us.sinks.Delta")
        columns = (self.partition_by,) if isinstance(self.partition_by, str) else tuple(self.partition_by)
        object.__setattr__(self, "partition_by", columns)
        if not isinstance(self.path, str | Path) or str(self.path) in ("", "."):
            raise InvalidInput(
                f"a Delta sink cannot write to {self.path!r}",
                why="it writes to a table of its own",
                fix='name a directory or an address, like us.sinks.Delta("counts")',
            )

    @property
    def is_local(self) -> bool:
        """Whether the table lies on a file system of this machine, not in an object store."""
        return _ADDRESS.match(str(self.path)) is None

    def directory(self) -> str | Path | None:
        return self.path

    def open(self, name: str, home: Path, run: str) -> SinkWriter:
        return DeltaWriter(self, str(under(home, self.path)) if self.is_local else str(self.path), name, run)


class DeltaWriter(SinkWriter):
    """Holds a snapshot of the table. A commit is made against it, and refused if this run's sink moved on meanwhile."""

    def __init__(
        self, sink: Delta, place: str, name: str, run: str, on_step: Callable[[str], None] = lambda _: None
    ) -> None:
        self._sink, self._place, self._name, self._run = sink, place, name, run
        self._on_step = on_step
        self._application = f"understudy/{run}/{name}"
        self._fits = False
        self._table: DeltaTable | None = None
        self._patiently(self._look)

    def write(self, epoch: int, rows: pa.Table) -> Written:
        whole = rows.combine_chunks().replace_schema_metadata(None)
        return self._patiently(lambda: self._append(epoch, whole))

    def _look(self) -> None:
        """Loads the table, if there is one, and refuses one that is somebody else's."""
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            self._table = DeltaTable(self._place, storage_options=dict(self._sink.storage_options))
        except TableNotFoundError:
            self._table = None
            return
        said = self._table.metadata().configuration
        if RUN in said and (said[RUN], said.get(SINK)) != (self._run, self._name):
            release = f"remove the property {RUN} from the table"
            raise foreign(f"the Delta table at {self._place}", said[RUN], str(said.get(SINK)), release)
        self._secure()

    def _append(self, epoch: int, rows: pa.Table) -> Written:
        from deltalake import CommitProperties, Transaction, write_deltalake

        table = self._prepared(rows.schema)
        last = table.transaction_version(self._application)
        if is_there(f"the Delta table at {self._place}", epoch, NOTHING if last is None else last):
            return Written.THERE
        self._on_step("begun")
        said = {RUN: self._run, SINK: self._name, EPOCH: epoch}
        # Deltalake commits behind what others have committed since our snapshot, unless it names our application.
        properties = CommitProperties(custom_metadata=said, app_transactions=[Transaction(self._application, epoch)])
        write_deltalake(table, rows, mode="append", commit_properties=properties)
        self._on_step("committed")
        self._secure()
        return Written.ONCE

    def _prepared(self, schema: pa.Schema) -> DeltaTable:
        """The table, made, claimed and compared with the rows when the first epoch comes."""
        if self._table is None:
            self._create(schema)
            self._look()
        assert self._table is not None
        if RUN not in self._table.metadata().configuration:
            claim = {RUN: self._run, SINK: self._name}
            self._table.alter.set_table_properties(claim, raise_if_not_exists=False)
        if not self._fits:
            check_fit(f"the Delta table at {self._place}", pa.schema(self._table.schema().to_arrow()), schema)
            self._fits = True
        return self._table

    def _create(self, schema: pa.Schema) -> None:
        from deltalake import DeltaTable

        check_types("Delta", schema)
        DeltaTable.create(
            self._place,
            schema,
            partition_by=list(self._sink.partition_by) or None,
            storage_options=dict(self._sink.storage_options),
        )

    def _patiently(self, action: Callable[[], T]) -> T:
        """Does something; after a conflict, or while the store is away, with a new snapshot again."""
        from deltalake.exceptions import DeltaError, SchemaMismatchError

        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return action()
            except SchemaMismatchError as error:
                raise self._unusable(InvalidInput, error) from error
            except (DeltaError, OSError) as error:
                if time.monotonic() > deadline:
                    raise self._unusable(Unavailable, error) from error
                logger.info("sink '%s' looks at its table again: %s", self._name, _first_line(error))
            time.sleep(0.05)
            self._patiently_look(deadline)

    def _patiently_look(self, deadline: float) -> None:
        from deltalake.exceptions import DeltaError

        try:
            self._look()
        except (DeltaError, OSError) as error:
            if time.monotonic() > deadline:
                raise self._unusable(Unavailable, error) from error

    def _unusable(self, kind: type[InvalidInput | Unavailable], error: Exception) -> Exception:
        return kind(
            f"the Delta table at {self._place} cannot be written",
            why=_first_line(error),
            fix=f"check the path, the store and the rights of sink '{self._name}'; then go on with --resume",
        )

    def _secure(self) -> None:
        """Syncs the newest commit and its files to a local disk: deltalake does not."""
        if self._table is None or not self._sink.is_local:
            return
        disk, root = Disk(), Path(self._place)
        log = root / "_delta_log" / f"{self._table.version():020d}.json"
        if not log.exists():
            return
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        files = [root / unquote(action["add"]["path"]) for action in actions if "add" in action]
        for path in [*(one for one in files if one.exists()), log]:
            disk.sync(path)
            disk.sync_directory(path.parent)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
