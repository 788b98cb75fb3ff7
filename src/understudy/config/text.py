"""Configuration as text: TOML with origins, a commented file to start from, JSON, and docs/configuration.md."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

from understudy.config.keys import KEYS, Key, section_types
from understudy.config.sources import FILE, Effective, value_of

HEAD = Path(__file__).with_name("head.md")
"""What docs/configuration.md says before its tables."""


def toml_value(value: Any) -> str:
    """A value as TOML writes it; the strings of JSON are those of TOML."""
    if isinstance(value, dict):
        entries = [f"{json.dumps(name)} = {toml_value(entry)}" for name, entry in value.items()]
        return f"{{ {', '.join(entries)} }}" if entries else "{}"
    if isinstance(value, bool | str):
        return json.dumps(str(value) if isinstance(value, str) else value)
    return repr(value)


def as_toml(found: Effective) -> str:
    """What holds, with the origin of every value beside it."""
    lines = []
    for section, keys in _sections():
        lines.append(f"[{section}]")
        entries = [(_line(key, value_of(found.config, key)), found.origin(key.name)) for key in keys]
        width = max(len(line) for line, _ in entries)
        lines += [f"{line:<{width}}  # {origin}" for line, origin in entries]
        lines.append("")
    return "\n".join(lines)


def _line(key: Key, value: Any) -> str:
    return f"# {key.key} is unset: {key.unset}" if value is None else f"{key.key} = {toml_value(value)}"


def as_data(found: Effective) -> dict[str, dict[str, dict[str, Any]]]:
    """The same for programs: by section and key, value and origin."""
    return {
        section: {key.key: {"value": value_of(found.config, key), "origin": found.origin(key.name)} for key in keys}
        for section, keys in _sections()
    }


def defaults_file() -> str:
    """A file to start from. All values are commented out, so that those nobody changes follow later versions."""
    lines = [
        f"# {FILE}: put it beside the application, or name it by --config.",
        "# Every value shown is the default. Remove the '#' before those you change.",
        '# Times are seconds or text like "500 ms", sizes bytes or text like "64 MiB".',
        "",
    ]
    for section, keys in _sections():
        lines += [f"# {_summary(section)}", f"[{section}]"]
        for key in keys:
            lines.append(f"# {key.text}{_choices(key)}")
            value = key.like_value if key.default is None else toml_value(key.default)
            lines.append(f"#{key.key} = {value}" + (f"  # unset: {key.unset}" if key.default is None else ""))
        lines.append("")
    return "\n".join(lines)


def _choices(key: Key) -> str:
    return f" One of {', '.join(key.choices)}." if key.choices else ""


def document() -> str:
    """docs/configuration.md."""
    lines = [HEAD.read_text(encoding="utf-8")]
    for section, keys in _sections():
        lines += [f"## {section}", "", _summary(section), ""]
        lines += [
            "| key | type | default | environment variable | option | meaning |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        lines += [_row(key) for key in keys]
        lines.append("")
    return "\n".join(lines)


def _row(key: Key) -> str:
    option = f"`{key.option}`" if key.option else ""
    cells = [f"`{key.key}`", key.expected.removeprefix("a "), key.shown_default, f"`{key.variable}`", option, key.text]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _summary(section: str) -> str:
    return (inspect.getdoc(section_types()[section]) or "").splitlines()[0]


def _sections() -> list[tuple[str, list[Key]]]:
    return [(section, [key for key in KEYS.values() if key.section == section]) for section in section_types()]
