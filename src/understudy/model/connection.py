"""Parameters that say how to reach a service: they may hold secrets, and a service may move during a run."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

CONNECTION: Mapping[str, Any] = MappingProxyType({"fingerprint": False})
"""Metadata of such a field: `dsn: str = field(repr=False, metadata=CONNECTION)`.

It is left out of the fingerprint: a rotated password or a new address must not keep a run from being resumed. With
`repr=False` it is also left out of every error that shows the source or the sink.
"""
