"""The Python clients of the services: an extra of the package, so each may be missing."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from understudy.errors import Unavailable


def require(service: str, modules: Sequence[str]) -> None:
    """Raises `Unavailable` when one of these modules cannot be imported."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise Unavailable(
            f"{service} cannot be used from here.",
            why=f"not installed: {', '.join(missing)}.",
            fix="pip install 'understudy[services]'",
        )
