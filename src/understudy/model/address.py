"""Where something lives: `scheme://host:port,host:port/path?option=value`, or `scheme:path`.

An address is written into reports, events and messages. So it never holds a credential: it is refused where one is
given, and services read theirs from a file that the address names, or from the environment.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote

from understudy.errors import InvalidInput
from understudy.model.secrets import is_secret

_FORM = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*):(?://(?P<hosts>[^/?#]*)(?P<below>/[^?#]*)?|(?P<path>[^?#]*))(?:\?(?P<options>[^#]*))?"
)
_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[^\s:@\[\]]+)(?::(?P<port>\d{1,5}))?")


@dataclass(frozen=True)
class Address:
    """An address, taken apart. `str` gives it back.

    Parameters
    ----------
    scheme
        Which kind of service: the name it has in a registry.
    hosts
        `host`, `host:port` or the name of a bucket, in the order they were given; none for a local path.
    path
        As it was given, with its leading slash if it has one.
    options
        Pairs of names and values; `option` finds one.

    Examples
    --------
    >>> where = parse("kafka://broker-1:9092,broker-2:9092/orders?replicas=3", "log.url")
    >>> where.scheme, where.hosts, where.name, where.option("replicas")
    ('kafka', ('broker-1:9092', 'broker-2:9092'), 'orders', '3')
    >>> str(where)
    'kafka://broker-1:9092,broker-2:9092/orders?replicas=3'
    >>> parse("file:", "log.url").path
    ''
    """

    scheme: str
    hosts: tuple[str, ...] = ()
    path: str = ""
    options: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """The path without slashes around it: a prefix, a name, a folder of a bucket."""
        return self.path.strip("/")

    def option(self, name: str, default: str = "") -> str:
        return dict(self.options).get(name, default)

    def only(self, names: Iterable[str]) -> None:
        """Raises an error for an option that is not among these.

        Raises
        ------
        InvalidInput
            With the name that was probably meant, or with all of them.
        """
        known = sorted(names)
        for name, _ in self.options:
            if name not in known:
                close = difflib.get_close_matches(name, known, 1)
                offered = f"the options are {', '.join(known)}" if known else "leave it away: there are no options"
                raise InvalidInput(
                    f"the address {self} has the option '{name}'",
                    why=f"an address that begins with '{self.scheme}:' has no such option",
                    fix=f"did you mean '{close[0]}'?" if close else offered,
                )

    def number(self, name: str, default: int, *, least: int = 1) -> int:
        """The value of an option that is a whole number.

        Raises
        ------
        InvalidInput
            If it is none, or smaller than `least`.
        """
        text = self.option(name, str(default))
        if not text.isdecimal() or int(text) < least:
            raise InvalidInput(
                f"the address {self} has {name}={text}",
                why=f"{name} is a whole number, {least} or more",
                fix=f"give a value like {name}={max(default, least)}",
            )
        return int(text)

    def __str__(self) -> str:
        where = f"//{','.join(self.hosts)}" if self.hosts else ""
        options = "&".join(f"{quote(name, safe='')}={quote(value, safe='/:,')}" for name, value in self.options)
        return f"{self.scheme}:{where}{quote(self.path)}{f'?{options}' if options else ''}"


def parse(text: str, what: str) -> Address:
    """Takes an address apart.

    Parameters
    ----------
    text
        Such as `kafka://broker-1:9092,broker-2:9092/orders?replicas=3`, `s3://bucket/folder` or `file:`.
    what
        What the address is for, in errors: the name of the setting.

    Returns
    -------
    Address
        Names and values with `%20` and the like replaced.

    Raises
    ------
    InvalidInput
        If the text is no address, if a host or a port cannot be one, if an option is given twice, or if the address
        holds a credential. The message then leaves the credential out.

    Examples
    --------
    >>> parse("zookeeper://zk-1:2181/understudy", "coordination.url").hosts
    ('zk-1:2181',)
    """
    matched = _FORM.fullmatch(text.strip())
    if matched is None:
        raise _wrong(what, _without_secrets(text), "it does not begin with a scheme such as 'file:' or 'kafka://'")
    given = matched["hosts"]
    if "@" in (given or matched["path"] or "").partition("/")[0]:
        raise _credential(what, matched["scheme"], "a user or a password before '@'")
    hosts = tuple(_host(what, text, part) for part in given.split(",")) if given else ()
    pairs = tuple(parse_qsl(matched["options"] or "", keep_blank_values=True))
    for name, _ in pairs:
        if is_secret(name):
            raise _credential(what, matched["scheme"], f"the option '{name}'")
    names = [name for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise _wrong(what, text, f"the option '{twice}' is given twice")
    path = matched["below"] if given is not None else matched["path"]
    return Address(matched["scheme"], hosts, unquote(path or ""), pairs)


def _host(what: str, text: str, part: str) -> str:
    matched = _HOST.fullmatch(part)
    if matched is None or int(matched["port"] or 1) not in range(1, 65536):
        raise _wrong(what, text, f"'{part}' is no host with a port, such as broker-1:9092")
    return part


def _without_secrets(text: str) -> str:
    """The text as far as it can be shown: nothing before an '@', and no options."""
    return text.partition("?")[0].rpartition("@")[2]


def _wrong(what: str, text: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"{what} is '{_without_secrets(text)}'",
        why=why,
        fix="write it like file:, file:/data/folder, s3://bucket/folder or kafka://broker-1:9092,broker-2:9092/name",
    )


def _credential(what: str, scheme: str, which: str) -> InvalidInput:
    return InvalidInput(
        f"{what} is an address '{scheme}://…' with {which}",
        why="addresses are shown in reports and messages, so they must not hold credentials",
        fix="take it out; give credentials in a file that the address names, or in the environment "
        "(docs/logs.md, docs/checkpoints.md)",
    )
