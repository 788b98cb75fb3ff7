"""Packages that only some connectors need: each is an extra of ours, imported where it is used."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from understudy.errors import Unavailable


def need(modules: Sequence[str], *, extra: str, user: str) -> None:
    """Raises an error that names the extra to install when one of these modules is missing.

    Parameters
    ----------
    modules
        Names as they are imported, such as `confluent_kafka`.
    extra
        The extra of the package that brings them.
    user
        What the user wrote that needs them, such as `us.sinks.Kafka`.

    Raises
    ------
    Unavailable
        If a module is not installed.

    Examples
    --------
    >>> need(["json"], extra="kafka", user="us.sinks.Kafka")
    >>> need(["no_such_module"], extra="kafka", user="us.sinks.Kafka")
    Traceback (most recent call last):
        ...
    understudy.errors.Unavailable: us.sinks.Kafka cannot be used here
      why: not installed: no_such_module
      fix: pip install 'understudy[kafka]'
    """
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise Unavailable(
            f"{user} cannot be used here",
            why=f"not installed: {', '.join(missing)}",
            fix=f"pip install 'understudy[{extra}]'",
        )
