"""Secrets in names and in text: which parameters hold one, and how a text is shown without them.

Hiding works on text, because a secret gets into logs and events through the messages of other programs. It hides too
much rather than too little: whatever follows a name like `password`, and whatever stands before '@' in an address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

HIDDEN = "***"
SECRET = re.compile(
    r"passw|passphrase|pwd|secret|token|credential|jaas|private|access.?key|api.?key|sas.?key|account.?key", re.I
)
"""Found in the names of parameters that hold a secret."""
_WORDS = (
    *("passw", "passphrase", "pwd", "secret", "token", "credential", "jaas", "private", "key"),
    *("bearer", "basic", "://", "akia", "asia"),
)
"""A line without any of these holds nothing that one of the expressions below would find."""
_SHORTEST = 4
"""Shorter values are not looked for: they would be found inside other words."""

_NAME = rf"(?:{SECRET.pattern})[\w.\-]*"
"""From the word that tells it on: to look for where a name begins would take the square of a long word's length."""
_VALUE = r"""
    \\+["'].*?(?:\\+["']|$)         # a quoted value within quotes
  | "(?:\\.|[^"\\\n])*"?            # a quoted value, or the part of one that is left
  | '(?:\\.|[^'\\\n])*'?
  | (?!(?:true|false|null|none)\b)[^\s,;&)}\]"']+
"""
_ASSIGNED = re.compile(rf"""(?P<name>{_NAME}\\*["']?\s*[:=]>?\s*)(?P<value>{_VALUE})""", re.I | re.M | re.X)
_QUOTE = re.compile(r"""\\*["']""")
_OPTION = re.compile(rf"(?P<name>--[\w\-]{{0,40}}{_NAME}[ \t]+)(?!-)\S+", re.I)
_USER = re.compile(r"""(?P<name>\w://)[^\s"'<>]*@""")
_BEARER = re.compile(r"(?P<name>\b(?:bearer|basic)\s+)[\w.~+/=\-]{6,}", re.I)
_KEY = r"PRIVATE\ KEY(?:\ BLOCK)?-----"
_BLOCK = re.compile(
    rf"(?:-----BEGIN[\w ]*{_KEY}|\A)(?:(?!-----BEGIN).)*?-----END[\w ]*{_KEY}|-----BEGIN[\w ]*{_KEY}.*\Z", re.S
)
"""Also one whose begin or end is not in the text."""
_AMAZON = re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")


def is_secret(name: str) -> bool:
    """Whether a parameter of this name holds a secret.

    Examples
    --------
    >>> is_secret("sasl.password"), is_secret("fs.s3a.access.key"), is_secret("rate")
    (True, True, False)
    """
    return SECRET.search(name) is not None


def hide(text: str, known: Iterable[str] = ()) -> str:
    """The text without secrets.

    Parameters
    ----------
    text : str
        Lines of a log, JSON, TOML or any other text.
    known : iterable of str, optional
        Secrets that are known, to be hidden wherever they stand. Those shorter than four characters are passed over.

    Returns
    -------
    str
        The text with ``***`` in place of every secret that was recognised.

    Examples
    --------
    >>> hide("connecting to postgresql://loader:hunter2@db:5432/shop")
    'connecting to postgresql://***@db:5432/shop'
    >>> hide('{"sasl.password": "hunter2", "rate": 100}')
    '{"sasl.password": "***", "rate": 100}'
    >>> hide("refused abc123", known=["abc123"])
    'refused ***'
    """
    for secret in sorted({one for one in known if len(one) >= _SHORTEST}, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = _BLOCK.sub(HIDDEN, text) if "PRIVATE KEY" in text else text
    lines = text.split("\n")
    suspicious = [any(word in line.lower() for word in _WORDS) for line in lines]
    # A value may stand on the line after its name.
    near = [now or before for now, before in zip(suspicious, [False, *suspicious], strict=False)]
    blocks = groupby(zip(near, lines, strict=True), key=itemgetter(0))
    return "\n".join(_hide("\n".join(line for _, line in block), look) for look, block in blocks)


def _hide(text: str, look: bool) -> str:
    """Regular expressions are a hundred times slower than the search for words that are in all of them."""
    if not look:
        return text
    text = _USER.sub(rf"\g<name>{HIDDEN}@", text)
    for pattern in (_BEARER, _OPTION):
        text = pattern.sub(rf"\g<name>{HIDDEN}", text)
    return _AMAZON.sub(HIDDEN, _ASSIGNED.sub(_in_its_quotes, text))


def _in_its_quotes(found: re.Match[str]) -> str:
    """So that JSON stays JSON."""
    quote = _QUOTE.match(found["value"])
    mark = quote[0] if quote else ""
    return f"{found['name']}{mark}{HIDDEN}{mark}"


def hidden(data: Any) -> Any:
    """Nested data with ``***`` for every value whose name says that it is a secret.

    Examples
    --------
    >>> hidden({"kafka": {"sasl.password": "hunter2", "acks": "all"}, "token_to_read": False})
    {'kafka': {'sasl.password': '***', 'acks': 'all'}, 'token_to_read': False}
    """
    if isinstance(data, Mapping):
        return {name: HIDDEN if _holds(str(name), value) else hidden(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [hidden(value) for value in data]
    return data


def secrets_in(data: Any) -> set[str]:
    """The values that `hidden` hides, and passwords of addresses: to be hidden wherever else they stand.

    Examples
    --------
    >>> sorted(secrets_in({"dsn": "postgresql://loader:hunter2@db/shop", "api_key": "k-123"}))
    ['hunter2', 'k-123']
    """
    if isinstance(data, Mapping):
        named = {str(value) for name, value in data.items() if _holds(str(name), value)}
        return named.union(*(secrets_in(value) for value in data.values()))
    if isinstance(data, list | tuple):
        return set().union(*(secrets_in(value) for value in data))
    return set(re.findall(r"""\w://[^\s:/@]*:([^\s"'<>]+)@""", data)) if isinstance(data, str) else set()


def _holds(name: str, value: Any) -> bool:
    return is_secret(name) and not isinstance(value, bool | Mapping | list | tuple) and value is not None
