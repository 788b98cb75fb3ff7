"""Values an application asks for and the command line gives: `--set words=500` and `us.setting("words", 1000)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from understudy.errors import InvalidInput

Value = TypeVar("Value", str, int, float, bool)

_given: dict[str, str] = {}
_asked: dict[str, str | int | float | bool] = {}


def setting(name: str, default: Value) -> Value:
    """Returns a value that the command line can set: `--set NAME=VALUE` of `understudy run`.

    Call it in the application file. A value given for a name that the application never reads is refused.

    Parameters
    ----------
    name : str
        Name of the setting.
    default : str, int, float or bool
        Value without `--set`. Its type is the type of the result.

    Returns
    -------
    str, int, float or bool
        The given value converted to the type of the default, or the default.

    Raises
    ------
    InvalidInput
        If the given text cannot be converted.

    Examples
    --------
    >>> import understudy as us
    >>> us.setting("words", 1000)
    1000

    With `--set words=500` on the command line it returns 500.
    """
    _asked[name] = default
    text = _given.get(name)
    if text is None:
        return default
    try:
        return _convert(text, default)
    except ValueError:
        raise InvalidInput(
            f"--set {name}={text}",
            why=f"the application expects {type(default).__name__}, like {default!r}",
            fix="give a value of that kind",
        ) from None


def _convert(text: str, default: Value) -> Value:
    if isinstance(default, bool):
        if text.lower() not in ("true", "false", "1", "0", "yes", "no"):
            raise ValueError(text)
        return text.lower() in ("true", "1", "yes")
    return type(default)(text)


def give(values: Mapping[str, str]) -> None:
    """Replaces all given values; called before an application is loaded."""
    _given.clear()
    _asked.clear()
    _given.update(values)


def check_all_asked() -> None:
    """A misspelt setting must not be ignored silently; called after an application is loaded."""
    unknown = sorted(_given.keys() - _asked.keys())
    if unknown:
        known = ", ".join(f"{name}={default}" for name, default in sorted(_asked.items())) or "none"
        raise InvalidInput(
            f"the application has no setting '{unknown[0]}'",
            why=f"its settings and their defaults are: {known}",
            fix="correct the name after --set",
        )
