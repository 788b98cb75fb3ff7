"""What the state and the published epochs of a run depend on, and how two applications differ in it.

A fingerprint is plain JSON: sections ("source", "operator", …), names, properties, values. It is recorded when data
flows for the first time and compared whenever the run goes on. The code of functions is not part of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from understudy.errors import InvalidInput
from understudy.model.layout import Kind, Layout
from understudy.model.messages import Analysis
from understudy.model.topology import Operator, Topology

Fingerprint = dict[str, dict[str, dict[str, Any]]]

_OPERATOR = ("inputs", "key", "slices", "output_mode", "order", "time")
_PLAIN = (str, int, float, bool, type(None))
_MISSING = object()


@dataclass(frozen=True)
class Difference:
    """`before` and `now` are None where the thing itself is new or gone."""

    section: str
    name: str
    part: str = ""
    before: str | None = None
    now: str | None = None

    def __str__(self) -> str:
        where = f"{self.section} '{self.name}'"
        if not self.part:
            return f"{where} is {'new' if self.before is None else 'gone'}"
        if self.before == self.now:
            return f"{where} has another {self.part}"
        return f"{where} has {self.part}={self.now}, and had {self.before}"


def of_application(topology: Topology, versions: Mapping[str, str]) -> Fingerprint:
    """Everything that is known without Spark; `versions` by the name of the program."""
    return _as_json(
        {
            "version of": {name: {"version": version} for name, version in versions.items()},
            "topology": {topology.name: {"epoch": topology.epoch_s}},
            "source": {s.name: {"slices": s.slices} | _described(s.source) for s in topology.sources},
            "operator": {op.name: _operator(op) for op in topology.operators},
            "sink": {s.name: {"stream": s.stream} | _described(s.sink) for s in topology.sinks},
        }
    )


def of_queries(layout: Layout, operators: Mapping[str, Analysis]) -> Fingerprint:
    """What Spark found: which operators share a query, what each returns and which state it keeps."""
    queries = {v.name: {"operators": v.parts} for v in layout.vertices if v.kind is Kind.OPERATOR}
    return _as_json({"query": queries, "result of": {name: _analysed(found) for name, found in operators.items()}})


def differences(before: Fingerprint, now: Fingerprint) -> list[Difference]:
    """In the order of `now`; what is gone comes last in its section."""
    return [found for section in now for found in _compare(section, before.get(section, {}), now[section])]


def refuse(found: Sequence[Difference]) -> InvalidInput:
    """The error for an application that differs from the one a run began with."""
    versions = [one for one in found if one.section == "version of"]
    back = ", ".join(f"{one.name} {one.before}" for one in versions)
    return InvalidInput(
        f"this is not what the run began with: {'; '.join(map(str, found[:5]))}",
        why="its state and its published epochs were made with the former, and would not fit",
        fix=f"{f'install {back}' if versions else 'change it back'}, or start a new run in another --home",
    )


def _compare(section: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Difference]:
    for name, parts in now.items():
        if name not in before:
            yield Difference(section, name, now="")
            continue
        for part in [*parts, *(before[name].keys() - parts.keys())]:
            old, new = before[name].get(part, _MISSING), parts.get(part, _MISSING)
            if old != new:
                yield Difference(section, name, part, _shown(old), _shown(new))
    for name in before.keys() - now.keys():
        yield Difference(section, name, before="")


def _shown(value: Any) -> str:
    if value is _MISSING:
        return "none"
    if isinstance(value, dict):
        return "another value"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if text else "none"


def _operator(operator: Operator) -> dict[str, Any]:
    return {name: getattr(operator, name) for name in _OPERATOR}


def _analysed(found: Analysis) -> dict[str, Any]:
    try:
        columns = [f"{field['name']} {_type(field['type'])}" for field in json.loads(found.output)["fields"]]
    except (ValueError, KeyError, TypeError):
        columns = []
    return {"columns": columns, "schema": {"digest": _digest(found.output)}, "stateful": found.stateful}


def _type(value: Any) -> str:
    return value if isinstance(value, str) else str(value["type"])


def _described(thing: Any) -> dict[str, Any]:
    """A source or a sink by its class and parameters, the schema included, connections excluded (`CONNECTION`)."""
    found: dict[str, Any] = {"kind": type(thing).__qualname__}
    if is_dataclass(thing):
        counted = [field for field in fields(thing) if field.metadata.get("fingerprint", True)]
        found |= {field.name: _value(getattr(thing, field.name)) for field in counted}
    else:
        own = vars(thing) if hasattr(thing, "__dict__") else {}
        found |= {name: value for name, value in own.items() if isinstance(value, _PLAIN)}
    if isinstance(getattr(thing, "schema", None), pa.Schema):
        found["schema"] = _value(thing.schema)
    return found


def _value(value: Any) -> Any:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, pa.Schema):
        return [f"{field.name} {field.type}" for field in value]
    if isinstance(value, Mapping):
        # Options may hold secrets: only their digests are kept.
        return {str(key): _digest(json.dumps(_value(item), sort_keys=True)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_value(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return _text(value)
    return _name(value)


def _text(value: Any) -> str:
    parts = ", ".join(f"{field.name}={_value(getattr(value, field.name))}" for field in fields(value))
    return f"{type(value).__qualname__}({parts})"


def _name(value: Any) -> str:
    """A function or a class by its name, anything else by its class."""
    named = isinstance(value, type | Callable) and hasattr(value, "__qualname__")
    return str(value.__qualname__ if named else type(value).__qualname__)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _as_json(value: dict[str, Any]) -> Fingerprint:
    """As it will be read back: tuples become lists."""
    found: Fingerprint = json.loads(json.dumps(value))
    return found
