"""`understudy backup` and `restore`: a home as one file, and a home again."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.remote import JSON

if TYPE_CHECKING:
    from understudy.runtime.backup_file import Manifest


def backup(
    home: Annotated[Path, typer.Argument(help="The home of a run that is stopped.", show_default=False)],
    file: Annotated[Path, typer.Argument(help="The backup to write: a new file, .tar or .tar.gz.", show_default=False)],
    as_json: JSON = False,
) -> None:
    """Back up a home that is not running, into one file whose checksums are verified."""
    from understudy.runtime.backup import back_up
    from understudy.runtime.home import Home

    manifest = back_up(Home(home.resolve()), file)
    _show(manifest, f"{file}: {_size(manifest)} of run {manifest.run}, verified", as_json)


def restore(
    file: Annotated[Path, typer.Argument(help="What 'understudy backup' wrote.", show_default=False)],
    home: Annotated[Path, typer.Argument(help="The home to make; it must not hold anything.", show_default=False)],
    as_json: JSON = False,
) -> None:
    """Make a home of a backup; 'understudy run APP.py --home HOME --resume' then continues the run."""
    from understudy.runtime.backup import restore as make
    from understudy.runtime.home import Home

    manifest = make(file, Home(home.resolve()))
    again = shlex.join(["understudy", "run", manifest.app, "--home", str(home), "--resume"])
    _show(manifest, f"{home}: {_size(manifest)} of run {manifest.run}, verified; continue with\n  {again}", as_json)


def _size(manifest: Manifest) -> str:
    return f"{len(manifest.files)} files, {manifest.bytes / 2**20:,.1f} MiB,"


def _show(manifest: Manifest, text: str, as_json: bool) -> None:
    if as_json:
        print(manifest.model_dump_json(indent=2))
        return
    print(text)
    for where in manifest.outside:
        print(f"the log is at {where} and not in the backup: keep it as it is")
