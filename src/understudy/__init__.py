"""Adaptive high availability for PySpark Structured Streaming.

An application file makes a topology of PySpark operators; `understudy run FILE` runs it on several nodes and keeps its
output exact when nodes fail. Everything an application needs is here:

- `Topology`: sources, operators and sinks, and who reads whom. Start reading with `help(understudy.Topology)`.
- `Recovery`: how an operator is protected, by a scheme or by an objective.
- `Costs`: what resources are worth to the controller.
- `query`: an operator written as a query in text instead of a function.
- `setting`: values that the command line can set.
- `sources`, `sinks`: where rows come from and where they go.

`understudy.testing` runs applications with faults in tests.

Examples
--------
>>> import understudy as us
>>> app = us.Topology("clicks", epoch="1 second")
>>> app.epoch_s
1.0
"""

from understudy import sinks, sources
from understudy.model.costs import Costs
from understudy.model.recovery import Recovery
from understudy.model.topology import Topology
from understudy.queries.query import query
from understudy.settings import setting

__all__ = ["Costs", "Recovery", "Topology", "query", "setting", "sinks", "sources"]

__version__: str
"""The version that is installed. It is looked up when it is asked for: that takes some milliseconds."""


def __getattr__(name: str) -> str:
    if name == "__version__":
        from importlib.metadata import version

        return version("understudy")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
