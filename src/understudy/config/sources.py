"""Reads configured values. Later sources win: built-in defaults, `understudy.toml`, environment, command line."""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from understudy.config.keys import KEYS, Key, Kind, section_types
from understudy.errors import InvalidInput
from understudy.model.config import Config

FILE = "understudy.toml"
DEFAULT = "default"
OURS = frozenset({"UNDERSTUDY_JVM_ARGUMENTS"})
"""Variables that begin like a key and are none."""


@dataclass(frozen=True)
class Given:
    """A value somebody gave, before it is checked.

    `origin`: where, for `understudy config`. `said`: the same with the value, for messages.
    """

    key: Key
    raw: Any
    origin: str
    said: str


@dataclass(frozen=True)
class Effective:
    """The configuration that holds, and for every key that was given, where."""

    config: Config
    origins: Mapping[str, str]

    def origin(self, name: str) -> str:
        return self.origins.get(name, DEFAULT)

    def given(self) -> dict[str, dict[str, Any]]:
        """Only what was given, by section and key."""
        found: dict[str, dict[str, Any]] = {}
        for name in self.origins:
            key = KEYS[name]
            found.setdefault(key.section, {})[key.key] = value_of(self.config, key)
        return found


def value_of(config: Config, key: Key) -> Any:
    return getattr(getattr(config, key.section), key.key)


def effective(given: Iterable[Given]) -> Effective:
    """Checks every value and lets later ones win.

    A value that is wrong is refused even where a later one would win: it is a mistake that waits.
    """
    sections: dict[str, dict[str, Any]] = {}
    origins: dict[str, str] = {}
    for one in given:
        sections.setdefault(one.key.section, {})[one.key.key] = _checked(one)
        origins[one.key.name] = one.origin
    return Effective(Config.model_validate(sections), origins)


def _checked(given: Given) -> Any:
    key, raw = given.key, given.raw
    try:
        if isinstance(raw, bool) and key.kind is not Kind.FLAG:
            raise ValueError
        found = section_types()[key.section].model_validate({key.key: raw})
    except (ValidationError, ValueError):
        fix = f"use one of {key.example}" if key.choices else f"give {key.example}"
        if key.kind not in (Kind.FLAG, Kind.NAME):
            fix = f"give a value like {key.example}"
        raise InvalidInput(given.said, why=f"{key.name} is {key.expected}", fix=fix) from None
    return getattr(found, key.key)


# -- the file


def existing(path: Path) -> Path:
    """The file given by --config."""
    if not path.is_file():
        raise InvalidInput(
            f"--config {path} cannot be read",
            why="there is no such file",
            fix=f"correct the path; 'understudy config --defaults > {FILE}' makes one to start from",
        )
    return path


def from_file(path: Path) -> list[Given]:
    """The values of a TOML file, with a table per section."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read", why=str(error), fix="correct the file; it is TOML") from None
    found = []
    for section, values in tables.items():
        if section not in section_types() or not isinstance(values, dict):
            raise _unknown(f"'{section}' in {path}", section)
        for key, raw in values.items():
            name = f"{section}.{key}"
            if name not in KEYS:
                raise _unknown(f"'{name}' in {path}", name)
            origin = path.name if path.name == FILE else str(path)
            found.append(Given(KEYS[name], raw, origin, f"{name} = {json.dumps(raw, default=str)} in {path}"))
    return found


def _unknown(what: str, name: str) -> InvalidInput:
    nearest = _nearest(name)
    fix = f"did you mean '{nearest}'?" if nearest else f"the sections are {', '.join(section_types())}"
    return InvalidInput(
        what, why="there is no configuration of that name", fix=f"{fix} 'understudy config --defaults' lists all"
    )


def _nearest(name: str) -> str | None:
    """The valid name a user may have meant: of the same key in another section, or spelt almost the same."""
    key = name.rpartition(".")[2]
    moved = [known for known in KEYS if known.endswith(f".{key}")]
    if moved:
        return moved[0]
    pool: Sequence[str] = [*KEYS, *section_types()] if "." not in name else list(KEYS)
    close = difflib.get_close_matches(name, pool, 1) or [
        known
        for one in difflib.get_close_matches(key, [k.key for k in KEYS.values()], 1)
        for known in KEYS
        if known.endswith(f".{one}")
    ]
    return close[0] if close else None


def ambient(directory: Path, chosen: Path | None) -> list[Given]:
    """What holds for an application in this directory before a command line adds to it.

    `chosen` replaces the file beside the application.
    """
    usual = directory / FILE
    path = existing(chosen) if chosen is not None else usual if usual.is_file() else None
    return [*(from_file(path) if path else []), *from_environment(os.environ)]


# -- the environment


def from_environment(environment: Mapping[str, str]) -> list[Given]:
    """Variables like UNDERSTUDY_DETECTOR_HEARTBEAT_S. An empty one counts as not given."""
    variables = {key.variable: key for key in KEYS.values()}
    prefixes = tuple(f"UNDERSTUDY_{section.upper()}_" for section in section_types())
    found = []
    for name, text in sorted(environment.items()):
        if not name.startswith(prefixes) or name in OURS or not text:
            continue
        if name not in variables:
            close = difflib.get_close_matches(name, variables, 1)
            fix = f"did you mean {close[0]}?" if close else "unset it"
            raise InvalidInput(
                f"the environment variable {name}",
                why="there is no configuration of that name",
                fix=f"{fix} docs/configuration.md lists all",
            )
        key = variables[name]
        found.append(Given(key, _from_text(key, text), name, f"{name}={text}"))
    return found


def _from_text(key: Key, text: str) -> Any:
    """Tables are JSON, everything else is text that the section reads."""
    if key.kind is not Kind.TABLE:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


# -- the command line


def from_options(options: Mapping[str, Any]) -> list[Given]:
    """Options of `understudy run` by their long names, like `--heartbeat`; None was not given."""
    by_option = {key.option: key for key in KEYS.values() if key.option is not None}
    found = []
    for option, raw in options.items():
        if raw is None:
            continue
        said = option if raw is True else f"--no-{option.removeprefix('--')}" if raw is False else f"{option} {raw}"
        found.append(Given(by_option[option], raw, option, said))
    return found
