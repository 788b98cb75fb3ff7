"""A topology of fifty slices that nobody computes: for measuring the manager and its dashboard."""

from __future__ import annotations

from typing import Any

import understudy as us

app = us.Topology("fifty", epoch="1 second")
clicks = app.source("clicks", us.sources.Generator(lambda *_: None, "user long", rate=1), slices=9)


def same(rows: Any) -> Any:
    return rows


users = app.operator(clicks, name="users", key="user", slices=16)(same)
sessions = app.operator(users, name="sessions", key="user", slices=16)(same)
totals = app.operator(sessions, name="totals", key="user", slices=8)(same)
app.sink("out", totals, us.sinks.Console())
