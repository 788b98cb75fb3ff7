"""Epochs as snapshots of an Iceberg table: the epoch is a property that changes in the same commit."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.types as pt

from understudy.errors import InvalidInput, Unavailable
from understudy.extras import need
from understudy.log.disk import Disk
from understudy.model.connection import CONNECTION
from understudy.sinks.fitting import check_fit, check_types
from understudy.sinks.interface import Sink, SinkWriter, Written
from understudy.sinks.sequence import NOTHING, foreign, is_there

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

T = TypeVar("T")
logger = logging.getLogger(__name__)

RUN, SINK, EPOCH = "understudy.run", "understudy.sink", "understudy.epoch"
"""Properties of the table and of every snapshot of ours."""
PATIENCE_S = 30.0
_NO_RETRIES = {"commit.retry.num-retries": "0"}


@dataclass(frozen=True)
class Iceberg(Sink):
    """Appends every epoch to an Iceberg table, as one snapshot.

    The commit also sets the table's property `understudy.epoch`. It is made against the snapshot in which that property
    was read, and the catalog refuses it if the table has another one by then. So of two writers one commits an epoch,
    and the other finds it there. The table, and its namespace, are made where they are missing.

    Parameters
    ----------
    table
        The table's name with its namespace, such as `shop.orders`.
    catalog
        The catalog's name in pyiceberg's configuration (`~/.pyiceberg.yaml`, `PYICEBERG_CATALOG__…`).
    properties
        Settings of the catalog and of the file system, beside the configuration's. They appear in no log, report or
        fingerprint.

    Raises
    ------
    InvalidInput
        If the name has no namespace; when it is opened, if the table belongs to another run or its columns do not fit
        the rows.
    Unavailable
        If pyiceberg is not installed; when it is opened, if the catalog cannot be reached.

    Examples
    --------
    >>> Iceberg("shop.orders", properties={"type": "sql", "uri": "sqlite:///catalog.db", "warehouse": "warehouse"})
    Iceberg(table='shop.orders', catalog='default')
    """

    table: str
    catalog: str = "default"
    properties: Mapping[str, str] = field(default_factory=dict, repr=False, metadata=CONNECTION)

    def __post_init__(self) -> None:
        need(["pyiceberg"], extra="iceberg", user="us.sinks.Iceberg")
        parts = str(self.table).split(".")
        if len(parts) < 2 or not all(parts):
            raise InvalidInput(
                f"'{self.table}' is no name of an Iceberg table",
                why="a table lies in a namespace",
                fix='write table="namespace.table"',
            )

    def open(self, name: str, home: Path, run: str) -> SinkWriter:  # noqa: ARG002 - the interface's
        return IcebergWriter(self, name, run)


class IcebergWriter(SinkWriter):
    """Holds the table as it was last seen. Every commit is made against that, or not at all."""

    def __init__(self, sink: Iceberg, name: str, run: str, on_step: Callable[[str], None] = lambda _: None) -> None:
        self._sink, self._name, self._run = sink, name, run
        self._on_step = on_step
        self._fits = False
        self._table: Table | None = None
        self._catalog: Catalog | None = None
        self._patiently(self._look)

    def write(self, epoch: int, rows: pa.Table) -> Written:
        whole = rows.combine_chunks().replace_schema_metadata(None)
        return self._patiently(lambda: self._append(epoch, whole))

    def _look(self) -> None:
        """Loads the table, if there is one, and refuses one that is somebody else's."""
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NoSuchTableError

        if self._catalog is None:
            self._catalog = load_catalog(self._sink.catalog, **dict(self._sink.properties))
        try:
            self._table = self._catalog.load_table(self._sink.table)
        except NoSuchTableError:
            self._table = None
            return
        said = self._table.properties
        if RUN in said and (said[RUN], said.get(SINK)) != (self._run, self._name):
            release = f"remove the property {RUN} from the table"
            raise foreign(f"table {self._sink.table}", said[RUN], str(said.get(SINK)), release)
        self._secure(self._table)

    def _append(self, epoch: int, rows: pa.Table) -> Written:
        table = self._prepared(rows.schema)
        if is_there(f"table {self._sink.table}", epoch, int(table.properties.get(EPOCH, NOTHING))):
            return Written.THERE
        self._on_step("begun")
        said = {RUN: self._run, SINK: self._name, EPOCH: str(epoch)}
        # A retry of pyiceberg's own would commit behind a successor that has written this epoch: we look first.
        # Only this copy of the properties changes; a commit sends what it updates, and nothing else.
        table.metadata.properties.update(_NO_RETRIES)
        with table.transaction() as transaction:
            transaction.append(rows, snapshot_properties=said)
            transaction.set_properties(said)
        self._on_step("committed")
        self._secure(table)
        return Written.ONCE

    def _prepared(self, schema: pa.Schema) -> Table:
        """The table, made and compared with the rows when the first epoch comes."""
        from pyiceberg.exceptions import NamespaceAlreadyExistsError, TableAlreadyExistsError

        if self._table is None:
            assert self._catalog is not None
            check_types("Iceberg", schema)
            try:
                self._catalog.create_namespace_if_not_exists(self._sink.table.rsplit(".", 1)[0])
                self._catalog.create_table(self._sink.table, schema)
            except (NamespaceAlreadyExistsError, TableAlreadyExistsError):
                logger.info("sink '%s' finds that table %s was made meanwhile", self._name, self._sink.table)
            self._look()
        assert self._table is not None
        if not self._fits:
            stored = pa.schema([one.with_type(_widened(one.type)) for one in schema])
            check_fit(f"table {self._sink.table}", self._table.schema().as_arrow(), stored)
            self._fits = True
        return self._table

    def _patiently(self, action: Callable[[], T]) -> T:
        """Does something; after a conflict, or while the catalog is away, with the table as it is then again."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return action()
            except _passing() as error:
                if time.monotonic() > deadline:
                    raise self._unusable(Unavailable, error) from error
                logger.info("sink '%s' looks at its table again: %s", self._name, _first_line(error))
            except (ValueError, TypeError) as error:
                raise self._unusable(InvalidInput, error) from error
            time.sleep(0.05)
            self._look_again(deadline)

    def _look_again(self, deadline: float) -> None:
        try:
            self._look()
        except _passing() as error:
            if time.monotonic() > deadline:
                raise self._unusable(Unavailable, error) from error

    def _unusable(self, kind: type[InvalidInput | Unavailable], error: Exception) -> Exception:
        return kind(
            f"table {self._sink.table} in catalog '{self._sink.catalog}' cannot be written",
            why=_first_line(error),
            fix=f"check the catalog, its settings and the rows of sink '{self._name}'; then go on with --resume",
        )

    def _secure(self, table: Table) -> None:
        """Syncs the newest snapshot to a local disk: pyiceberg does not."""
        disk = Disk()
        for path in filter(None, map(_local, _files(table))):
            if path.exists():
                disk.sync(path)
                disk.sync_directory(path.parent)


def _files(table: Table) -> Iterator[str]:
    """What the newest snapshot added: data, manifests, its list of manifests, the table's metadata."""
    snapshot = table.current_snapshot()
    if snapshot is not None and _local(table.metadata_location) is not None:
        for manifest in snapshot.manifests(table.io):
            if manifest.added_snapshot_id == snapshot.snapshot_id:
                yield from (entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io))
                yield manifest.manifest_path
        yield snapshot.manifest_list
    yield table.metadata_location


def _local(location: str) -> Path | None:
    parsed = urlparse(location)
    return Path(unquote(parsed.path)) if parsed.scheme in ("", "file") else None


def _widened(kind: pa.DataType) -> pa.DataType:
    """How Iceberg keeps a type: it has no integers of 8 and 16 bits."""
    if kind in (pa.int8(), pa.int16()):
        return pa.int32()
    if pt.is_struct(kind):
        return pa.struct([one.with_type(_widened(one.type)) for one in kind])
    if pt.is_map(kind):
        return pa.map_(_widened(kind.key_type), _widened(kind.item_type))
    if pt.is_list(kind):
        return pa.list_(_widened(kind.value_type))
    return kind


def _passing() -> tuple[type[Exception], ...]:
    """Errors after which a second look helps: conflicts, and catalogs that are away."""
    from pyiceberg import exceptions

    try:
        from sqlalchemy.exc import OperationalError
    except ImportError:
        OperationalError = OSError  # type: ignore[misc, assignment]  # noqa: N806 - only the SQL catalog has it
    found: tuple[Any, ...] = (
        exceptions.CommitFailedException,
        exceptions.CommitStateUnknownException,
        exceptions.ServerError,
        exceptions.ServiceUnavailableError,
        OperationalError,
        OSError,
    )
    return found


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
