"""Names of slices and nodes. A `SliceId` is written "counts[0]" in every message, event and file."""

from __future__ import annotations

import re
from typing import Annotated, Any, NamedTuple

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, StringConstraints
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from understudy.errors import InvalidInput

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_SLICE = re.compile(rf"({_NAME.pattern})\[(\d+)\]")


class SliceId(NamedTuple):
    """One partition of a source, an operator or a sink; the unit of high availability.

    Pydantic models hold it typed and serialise it as text: `SliceId("counts", 0)` is "counts[0]" in JSON. It is a tuple
    because it is the key of most look-ups, and tuples are hashed and compared without running Python code.
    """

    operator: str
    index: int  # type: ignore[assignment]  # hides `tuple.index`, which nobody needs of a pair

    def __str__(self) -> str:
        return f"{self.operator}[{self.index}]"

    @classmethod
    def parse(cls, text: str) -> SliceId:
        match = _SLICE.fullmatch(text)
        if match is None:
            raise InvalidInput(
                f"'{text}' is not a slice",
                why="a slice is written as an operator's name and a number, like counts[1]",
                fix="look the slice up with 'understudy status'",
            )
        return cls(match[1], int(match[2]))

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, __: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validated, serialization=core_schema.to_string_ser_schema(when_used="json")
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, _: CoreSchema, __: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "string", "pattern": f"^{_SLICE.pattern}$", "examples": ["counts[0]"]}

    @classmethod
    def _validated(cls, value: object) -> SliceId:
        if isinstance(value, SliceId):
            return value
        try:
            return cls.parse(str(value))
        except InvalidInput as error:
            raise ValueError(error.what) from None


def valid_name(name: str) -> bool:
    """Names become directories, metrics and command-line words, so they stay simple."""
    return _NAME.fullmatch(name) is not None


NODE_PATTERN = r"[a-z0-9][a-z0-9-]{0,62}"
NodeName = Annotated[str, StringConstraints(pattern=rf"^{NODE_PATTERN}$")]
"""A node's name becomes a directory, a label of metrics and a word of the command line."""

_NODE = re.compile(NODE_PATTERN)
LONGEST_NODE = 63


def valid_node_name(name: str) -> bool:
    return _NODE.fullmatch(name) is not None


def node_name(host: str, pid: int) -> str:
    """The default name of a node that was started by hand: its host and its process, in the letters of a name."""
    end = f"-{pid}"
    simple = re.sub(r"[^a-z0-9]+", "-", host.lower()).strip("-")[: LONGEST_NODE - len(end)].rstrip("-")
    return (simple or "node") + end
