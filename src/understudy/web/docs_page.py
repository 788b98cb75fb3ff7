"""The page that describes the API: plain HTML made from the schema. It runs no script and loads nothing but a style."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

POLICY = "default-src 'none'; style-src 'self'; frame-ancestors 'none'"


def docs_page(schema: Mapping[str, Any]) -> str:
    """One section for every path and verb of an OpenAPI schema: parameters, fields of the body, answers."""
    title = escape(schema["info"]["title"])
    sections = "".join(
        _operation(verb, path, operation, schema)
        for path, verbs in schema["paths"].items()
        for verb, operation in verbs.items()
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{title}: API</title><link rel="stylesheet" href="page/style.css"></head><body>'
        f"<header><h1>{title}: API</h1></header><main>"
        "<p>Commands take the token of the run's home as <code>Authorization: Bearer …</code>. The same description "
        f'for programs is <a href="openapi.json">openapi.json</a>.</p>{sections}</main></body></html>\n'
    )


def _operation(verb: str, path: str, operation: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    words = escape(operation.get("description") or operation.get("summary", ""))
    locked = " needs the token" if operation.get("security") else ""
    takes = [*_parameters(operation), *_body(operation, schema)]
    answers = [(code, answer.get("description", "")) for code, answer in operation["responses"].items()]
    return (
        f'<section class="card wide"><h2><b>{verb.upper()}</b> <code>{escape(path)}</code>{locked}</h2><p>{words}</p>'
        f"{_table(('takes', 'type', 'what'), takes)}{_table(('answers', 'what'), answers)}</section>"
    )


def _parameters(operation: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for one in operation.get("parameters", ()):
        need = "required" if one.get("required") else "optional"
        yield one["name"], f"{_type(one.get('schema', {}))}, {need}", f"in the {one['in']}"


def _body(operation: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    model = _resolve(content.get("schema", {}), schema)
    for name, field in model.get("properties", {}).items():
        need = "required" if name in model.get("required", ()) else f"optional, {field.get('default')!r} if not given"
        yield name, f"{_type(field)}, {need}", "in the body, as JSON"


def _resolve(value: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = value.get("$ref")
    if reference is None:
        return value
    found: Mapping[str, Any] = schema["components"]["schemas"][reference.rpartition("/")[2]]
    return found


def _type(field: Mapping[str, Any]) -> str:
    return str(field.get("type") or field.get("$ref", "any").rpartition("/")[2])


def _table(heads: tuple[str, ...], rows: list[Any]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{text}</th>" for text in heads)
    lines = "".join(f"<tr>{''.join(_cell(n, value) for n, value in enumerate(row))}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{lines}</table>"


def _cell(position: int, value: str) -> str:
    text = escape(str(value))
    return f"<td><code>{text}</code></td>" if position == 0 else f"<td>{text}</td>"
