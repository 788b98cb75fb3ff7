"""Whether a user's function takes the arguments it will be called with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from understudy.errors import InvalidInput


def check_arity(function: Callable[..., Any], what: str, arguments: Sequence[str]) -> None:
    """Refuses a function that cannot be called with these arguments by position.

    A function whose signature Python does not know, as of some built-in ones, is taken as it is.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        listed = ", ".join(arguments)
        raise InvalidInput(
            f"{what} cannot be called with {listed}",
            why=f"its parameters are {signature} ({error})",
            fix=f"let it take {len(arguments)} parameters: {listed}",
        ) from None
