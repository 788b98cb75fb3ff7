"""Every configured value as a key: its names in the file, the environment and the command line, and what it may be."""

from __future__ import annotations

import json
import types
import typing
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from annotated_types import Ge, Le

from understudy.model.config import Config, Section


class Kind(StrEnum):
    TIME = "time"
    SIZE = "size"
    WHOLE = "whole number"
    NUMBER = "number"
    FLAG = "true or false"
    NAME = "name"
    TEXT = "text"
    TABLE = "table"


@dataclass(frozen=True)
class Key:
    """`name` as in the file, `detector.heartbeat_s`. `option` of `understudy run`, or None."""

    section: str
    key: str
    kind: Kind
    default: Any
    text: str
    option: str | None
    unset: str
    like: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.section}.{self.key}"

    @property
    def variable(self) -> str:
        return f"UNDERSTUDY_{self.section}_{self.key}".upper()

    @property
    def expected(self) -> str:
        """What a value must be, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.kind is Kind.TABLE:
            return "a table of names and values"
        article = "" if self.kind in (Kind.FLAG, Kind.TEXT) else "a "
        return f"{article}{self.kind}{self._bounds()}"

    def _bounds(self) -> str:
        unit = {Kind.TIME: " s", Kind.SIZE: " bytes"}.get(self.kind, "")
        if self.least is not None and self.most is not None:
            return f" from {self.least:g}{unit} to {self.most:g}{unit}"
        return "" if self.least is None else f", {self.least:g}{unit} or more"

    @property
    def example(self) -> str:
        """A valid value as a user would write it."""
        if self.kind is Kind.FLAG:
            return "true or false"
        if self.choices:
            return ", ".join(self.choices)
        shown = self.like or str(self.default)
        return f"{float(shown):g} s" if self.kind is Kind.TIME else shown

    @property
    def like_value(self) -> str:
        """For an optional value: one that could be given, as TOML writes it."""
        shown = self.choices[-1] if self.choices else self.like
        return shown if self.kind in (Kind.WHOLE, Kind.NUMBER) else json.dumps(shown)

    @property
    def shown_default(self) -> str:
        """The default in help and tables."""
        if self.default is None:
            return self.unset
        if self.kind is Kind.FLAG:
            return str(self.default).lower()
        if self.kind is Kind.TABLE:
            return "none"
        if self.kind is Kind.TIME:
            return f"{self.default:g} s"
        if self.kind is Kind.SIZE:
            return f"{self.default / 2**20:g} MiB"
        return str(self.default)


def section_types() -> dict[str, type[Section]]:
    """The class of every section, by name, in their order."""
    found = typing.get_type_hints(Config)
    return {name: found[name] for name in Config.model_fields}


def _all() -> dict[str, Key]:
    keys = [_key(section, name, kind) for section, kind in section_types().items() for name in kind.model_fields]
    return {key.name: key for key in keys}


def _key(section: str, name: str, owner: type[Section]) -> Key:
    field = owner.model_fields[name]
    notes = typing.cast(dict[str, Any], field.json_schema_extra)
    inner = _inner(field.annotation)
    least = next((float(typing.cast(float, one.ge)) for one in field.metadata if isinstance(one, Ge)), None)
    most = next((float(typing.cast(float, one.le)) for one in field.metadata if isinstance(one, Le)), None)
    return Key(
        section=section,
        key=name,
        kind=_kind(name, inner),
        default=field.default,
        text=field.description or "",
        option=notes["option"],
        unset=notes["unset"],
        like=notes["like"],
        least=least,
        most=most,
        choices=tuple(inner) if isinstance(inner, type) and issubclass(inner, StrEnum) else (),
    )


def _inner(annotation: Any) -> Any:
    """The type of a value that is given, without the None of one that is not."""
    if isinstance(annotation, types.UnionType):
        return next(one for one in typing.get_args(annotation) if one is not type(None))
    return annotation


def _kind(name: str, inner: Any) -> Kind:
    if isinstance(inner, type) and issubclass(inner, StrEnum):
        return Kind.NAME
    if inner is float:
        return Kind.TIME if name.endswith("_s") else Kind.NUMBER
    if inner is int:
        return Kind.SIZE if name.endswith("_bytes") else Kind.WHOLE
    return {bool: Kind.FLAG, str: Kind.TEXT}.get(inner, Kind.TABLE)


KEYS = _all()
"""By name, in the order of the sections."""
