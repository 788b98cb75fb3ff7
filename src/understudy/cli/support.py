"""`understudy support-bundle`: what somebody who helps needs, in one file, without secrets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.remote import HOMES, JSON
from understudy.errors import InvalidInput, Unavailable
from understudy.model.config import DEFAULTS

if TYPE_CHECKING:
    from understudy.runtime.home import Home
    from understudy.runtime.support import Part

SUFFIXES = (".tar.gz", ".tgz")


def support_bundle(
    file: Annotated[Path, typer.Argument(help="The file to write, .tar.gz.", show_default=False)],
    home: Annotated[Path | None, typer.Option(help="The run's home; default: the newest under .understudy/.")] = None,
    report: Annotated[
        Path | None, typer.Option(help="Add this report; that of a run that goes on is added by itself.")
    ] = None,
    as_json: JSON = False,
) -> None:
    """Collect versions, configuration, events, logs and doctor's findings of a run, without secrets."""
    import json
    import os

    from understudy.runtime.support import known_secrets, write

    if not file.name.endswith(SUFFIXES):
        raise InvalidInput(f"{file} cannot be a bundle", why="it is a compressed archive", fix="name it ….tar.gz")
    place = _home(home)
    try:
        names = write(file, _parts(place, report), known_secrets(place, os.environ))
    except OSError as error:
        raise Unavailable(f"{file} cannot be written", why=str(error), fix="give a file that you may write") from error
    if as_json:
        print(json.dumps({"file": str(file), "home": str(place.path) if place else None, "parts": names}, indent=2))
        return
    print(f"{file}: {len(names)} parts" + (f" of {place.path}" if place else "; there is no run here"))
    print("secrets that were recognised are replaced by ***; look through it before you pass it on")


def _home(named: Path | None) -> Home | None:
    from understudy.runtime.home import Home

    if named is not None:
        if not named.is_dir():
            raise InvalidInput(f"--home {named}", why="there is no such directory", fix="name the home of a run")
        return Home(named.resolve())
    homes = sorted(HOMES.glob("*/*/manager.db"), key=lambda path: path.stat().st_mtime)
    return Home(homes[-1].parent.resolve()) if homes else None


def _parts(home: Home | None, report: Path | None) -> Iterator[Part]:
    """In the order in which a reader needs them."""
    import os

    from understudy.runtime.client import Client
    from understudy.runtime.support import Part, of_home, of_machine, of_manager

    yield from of_machine(os.environ)
    yield Part("doctor.json", lambda: _doctor(home))
    yield Part("configuration.toml", lambda: _configuration(home))
    if report is not None:
        yield Part(f"given-{report.name}", report.read_text)
    if home is None:
        return
    yield from of_home(home)
    url = home.address()
    if url is not None:
        client = Client(url, _token(home))
        if client.answers():
            yield from of_manager(client)


def _token(home: Home) -> str:
    try:
        return home.token()
    except OSError:
        return ""


def _doctor(home: Home | None) -> str:
    import json

    from understudy.runtime.checkup import examine

    web, nodes = DEFAULTS.web, DEFAULTS.cluster.nodes
    if home is not None and home.exists():
        spec = home.stored()
        web, nodes = spec.config.web, spec.nodes
    found = examine(home.path if home is not None else HOMES, web.host, web.port, nodes)
    return json.dumps([check.as_json() for check in found], indent=2) + "\n"


def _configuration(home: Home | None) -> str:
    """What holds for the run, or would hold for one that starts here; without secrets in it."""
    from understudy.config import KEYS, Effective, ambient, effective
    from understudy.config.sources import value_of
    from understudy.config.text import as_toml
    from understudy.model.config import Config
    from understudy.model.secrets import hidden

    if home is not None and home.exists():
        config = home.stored().config
        changed = [name for name, key in KEYS.items() if value_of(config, key) != key.default]
        found = Effective(config, dict.fromkeys(changed, "this run"))
    else:
        found = effective(ambient(Path(), None))
    return as_toml(Effective(Config.model_validate(hidden(found.config.model_dump())), found.origins))
