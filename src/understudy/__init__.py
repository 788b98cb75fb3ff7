"""Adaptive high availability for PySpark Structured Streaming."""

from understudy import sinks, sources
from understudy.model.costs import Costs
from understudy.model.recovery import Recovery
from understudy.model.topology import Topology
from understudy.settings import setting

__all__ = ["Costs", "Recovery", "Topology", "setting", "sinks", "sources"]
