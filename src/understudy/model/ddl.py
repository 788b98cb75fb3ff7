"""Reads Spark's way of writing schemas, "word string, at timestamp, tags array<string>", without Spark.

The answer is the Arrow type Spark itself would use for the column, so that what we write is what Spark reads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa

from understudy.errors import InvalidInput

TIMESTAMP = pa.timestamp("us", tz="UTC")

_PLAIN: dict[str, pa.DataType] = {
    **dict.fromkeys(["boolean", "bool"], pa.bool_()),
    **dict.fromkeys(["tinyint", "byte"], pa.int8()),
    **dict.fromkeys(["smallint", "short"], pa.int16()),
    **dict.fromkeys(["int", "integer"], pa.int32()),
    **dict.fromkeys(["bigint", "long"], pa.int64()),
    **dict.fromkeys(["float", "real"], pa.float32()),
    "double": pa.float64(),
    **dict.fromkeys(["string", "char", "character", "varchar"], pa.string()),
    "binary": pa.binary(),
    "date": pa.date32(),
    **dict.fromkeys(["timestamp", "timestamp_ltz"], TIMESTAMP),
    "timestamp_ntz": pa.timestamp("us"),
    "time": pa.time64("ns"),
    **dict.fromkeys(["void", "null"], pa.null()),
}
_DECIMAL = ("decimal", "dec", "numeric")
_MAX_DIGITS = 38

_TOKEN = re.compile(
    r"\s*(?:(?P<quoted>`(?:[^`]|``)*`)|(?P<text>'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<word>\w+)|(?P<mark>[<>(),:\-]))"
)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str

    @property
    def lower(self) -> str:
        return self.text.lower() if self.kind in ("word", "mark") else ""


_END = _Token("end", "the end")


def columns(text: str) -> list[pa.Field]:
    """The columns of a DDL string; Spark's defaults, every column nullable."""
    parser = _Parser(text)
    fields = parser.fields(colon="maybe")
    parser.finish()
    return fields


def column_type(text: str) -> pa.DataType:
    """One type, as in a DDL string or in the JSON form of a Spark schema."""
    parser = _Parser(text)
    answer = parser.type()
    parser.finish()
    return answer


class _Parser:
    def __init__(self, text: str) -> None:
        self.source = text
        self.tokens = list(self._tokens(text))
        self.at = 0

    def _tokens(self, text: str) -> list[_Token]:
        tokens, at = [], 0
        text = text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self._error(f"cannot read '{text[at : at + 10].strip()}'")
            kind = str(match.lastgroup)
            tokens.append(_Token(kind, match[kind]))
            at = match.end()
        return tokens

    def _error(self, why: str) -> InvalidInput:
        return InvalidInput(
            f"'{self.source}' is not a schema",
            why=why,
            fix='write columns as Spark does: "word string, at timestamp, tags array<string>"',
        )

    @property
    def next(self) -> _Token:
        return self.tokens[self.at] if self.at < len(self.tokens) else _END

    def accept(self, text: str) -> bool:
        if self.next.lower == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self._error(f"'{text}' expected, found '{self.next.text}'")

    def take(self, *kinds: str) -> str:
        token = self.next
        if token.kind not in kinds:
            raise self._error(f"a {kinds[0]} expected, found '{token.text}'")
        self.at += 1
        return token.text

    def finish(self) -> None:
        if self.next is not _END:
            raise self._error(f"'{self.next.text}' was not expected")

    def fields(self, colon: str) -> list[pa.Field]:
        fields: list[pa.Field] = []
        while True:
            name = self.name()
            if not self.accept(":") and colon == "must":
                raise self._error(f"':' expected after '{name}', found '{self.next.text}'")
            fields.append(pa.field(name, self.type()))
            self.constraints()
            if not self.accept(","):
                return fields

    def name(self) -> str:
        text = self.take("word", "quoted")
        return text[1:-1].replace("``", "`") if text.startswith("`") else text

    def constraints(self) -> None:
        """NOT NULL and COMMENT are read over: nullability is never relied on, comments are not data."""
        if self.accept("not"):
            self.expect("null")
        if self.accept("comment"):
            self.take("text")

    def type(self) -> pa.DataType:
        word = self.take("word").lower()
        nested = {"array": self._array, "map": self._map, "struct": self._struct, "interval": self._interval}
        if word in nested:
            return nested[word]()
        numbers = self._numbers()
        if word in _DECIMAL:
            return self._decimal(numbers)
        if self.accept("collate"):
            self.take("word")
        if word not in _PLAIN:
            raise self._error(f"'{word}' is not a type that can be carried")
        return _PLAIN[word]

    def _numbers(self) -> list[int]:
        if not self.accept("("):
            return []
        numbers = []
        while True:
            sign = -1 if self.accept("-") else 1
            digits = self.take("word")
            if not digits.isdigit():
                raise self._error(f"a number expected, found '{digits}'")
            numbers.append(sign * int(digits))
            if not self.accept(","):
                break
        self.expect(")")
        return numbers

    def _decimal(self, numbers: list[int]) -> pa.DataType:
        precision, scale = (*numbers, *(10, 0)[len(numbers) :])[:2]
        if not 1 <= precision <= _MAX_DIGITS or not 0 <= scale <= precision:
            raise self._error(f"decimal({precision},{scale}) is out of range")
        return pa.decimal128(precision, scale)

    def _array(self) -> pa.DataType:
        self.expect("<")
        item = self.type()
        self.expect(">")
        return pa.list_(pa.field("element", item))

    def _map(self) -> pa.DataType:
        self.expect("<")
        key = self.type()
        self.expect(",")
        item = self.type()
        self.expect(">")
        return pa.map_(pa.field("key", key, nullable=False), pa.field("value", item))

    def _struct(self) -> pa.DataType:
        self.expect("<")
        fields = [] if self.next.lower == ">" else self.fields(colon="maybe")
        self.expect(">")
        return pa.struct(fields)

    def _interval(self) -> pa.DataType:
        unit = self.take("word").lower()
        if self.accept("to"):
            self.take("word")
        if unit not in ("day", "hour", "minute", "second"):
            raise self._error(f"Arrow has no interval of '{unit}' that Spark reads back")
        return pa.duration("us")
