"""Epochs on the terminal, to look at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from understudy.errors import InvalidInput
from understudy.sinks.call import NotedWriter
from understudy.sinks.interface import Sink, SinkWriter
from understudy.sinks.jsonlines import lines
from understudy.sinks.note import Note

if TYPE_CHECKING:
    import rich.console


@dataclass(frozen=True)
class Console(Sink):
    """A sink that prints every epoch: a table on a terminal, JSON lines elsewhere. It delivers at least once.

    Parameters
    ----------
    rows : int, optional
        Rows of each epoch that are printed. Default: 20.

    Raises
    ------
    InvalidInput
        If ``rows`` is below 0.

    Examples
    --------
    >>> from pathlib import Path
    >>> import pyarrow as pa
    >>> import understudy as us
    >>> writer = us.sinks.Console(rows=1).open("counts", Path.cwd(), run="1")
    >>> written = writer.write(0, pa.table({"word": ["a", "b"]}))
    counts epoch 0: 2 rows
    {"word":"a"}
    """

    rows: int = 20

    def __post_init__(self) -> None:
        if self.rows < 0:
            raise InvalidInput(f"rows={self.rows} cannot be shown", why="it is below 0", fix="pass rows=20")

    def open(self, name: str, home: Path, run: str) -> SinkWriter:
        """Opens the notes of a run; see `Sink.open`."""
        from rich.console import Console as Terminal

        terminal = Terminal()
        return NotedWriter(
            Note(name, home, run), name, lambda epoch, rows: show(terminal, name, epoch, rows, self.rows)
        )


def show(terminal: rich.console.Console, name: str, epoch: int, rows: pa.Table, most: int) -> None:
    title = f"{name} epoch {epoch}: {rows.num_rows} rows"
    shown = rows.slice(0, most)
    if terminal.is_terminal:
        terminal.print(title, markup=False)
        terminal.print(_table(shown))
        return
    text = "".join(f"{line}\n" for line in [title, *lines(shown)])
    terminal.file.write(text)
    terminal.file.flush()


def _table(rows: pa.Table) -> rich.console.RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for name in rows.column_names:
        table.add_column(Text(name))
    # Text, not markup: brackets in the data are data.
    for row in rows.to_pylist():
        table.add_row(*(Text("" if value is None else str(value)) for value in row.values()))
    return table
