"""The planning file: queries, hosts, spare load. Described for users in docs/availability.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from understudy.errors import InvalidInput
from understudy.planning.availability.placement import Cluster, Host, cluster_of
from understudy.planning.availability.query import Operator, OperatorType, Query
from understudy.planning.availability.sharing import SharedGraph
from understudy.planning.availability.workload import Workload, workload_of

if TYPE_CHECKING:
    from typing import Self


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=True)


class OperatorEntry(_Strict):
    name: str
    type: OperatorType
    inputs: tuple[str, ...] = ()
    predicate: str = ""
    selectivity: float = Field(1.0, ge=0)
    cost: float = Field(0.0, ge=0)
    size: float = Field(1.0, ge=0)
    rate: float = Field(0.0, ge=0)


class QueryEntry(_Strict):
    name: str
    operators: tuple[OperatorEntry, ...]


class HostEntry(_Strict):
    """`count` > 1 stands for that many equal hosts, numbered from 1."""

    name: str
    count: int = Field(1, ge=1)
    cpu: float = Field(1.0, ge=0)
    network: float = Field(float("inf"), ge=0)
    domain: str | None = None
    crash: float = Field(0.0, ge=0, le=1)
    price: float = Field(1.0, ge=0)

    def hosts(self) -> list[Host]:
        names = [self.name] if self.count == 1 else [f"{self.name}{n}" for n in range(1, self.count + 1)]
        return [Host(name, self.cpu, self.network, self.domain, self.crash, self.price) for name in names]


class PlanningFile(_Strict):
    """`spare` is the load replicas may use; without it, all CPU that primaries leave free.

    `primaries` maps operators to the hosts they run on already: all of them or none.
    """

    queries: tuple[QueryEntry, ...] = Field(min_length=1)
    hosts: tuple[HostEntry, ...] = Field(min_length=1)
    domains: dict[str, float] = {}
    spare: float | None = Field(None, ge=0)
    primaries: dict[str, str] = {}

    @model_validator(mode="after")
    def _names(self) -> Self:
        names = [query.name for query in self.queries]
        if len(set(names)) != len(names):
            raise ValueError("a query name occurs twice")
        return self

    def workload(self) -> Workload:
        queries = [
            Query(query.name, tuple(Operator(**entry.model_dump()) for entry in query.operators))
            for query in self.queries
        ]
        return workload_of(SharedGraph(queries))

    def cluster(self) -> Cluster:
        return cluster_of([host for entry in self.hosts for host in entry.hosts()], self.domains)

    def spare_load(self, workload: Workload, cluster: Cluster) -> float:
        if self.spare is not None:
            return self.spare
        return max(0.0, sum(host.cpu for host in cluster.hosts) - workload.total_load)

    def primary(self, workload: Workload, cluster: Cluster) -> tuple[int, ...] | None:
        if not self.primaries:
            return None
        number = {host.name: position for position, host in enumerate(cluster.hosts)}
        missing = [name for name in workload.operators if name not in self.primaries]
        unknown = [f"operator {name!r}" for name in self.primaries if name not in workload.operators]
        unknown += [f"host {name!r}" for name in self.primaries.values() if name not in number]
        if missing or unknown:
            why = f"unknown: {unknown[0]}" if unknown else f"{missing[0]!r} is not in it"
            raise InvalidInput(
                "`primaries` does not describe the running operators",
                why=why,
                fix=f"name every operator and its host; operators are {', '.join(workload.operators[:8])} …",
            )
        return tuple(number[self.primaries[name]] for name in workload.operators)


def parse(text: str, source: str) -> PlanningFile:
    """YAML, and so JSON too; `source` is named in errors."""
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise _refuse(source, str(error), "correct the YAML or JSON") from None
    try:
        return PlanningFile.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise _refuse(source, f"{where}: {first['msg']}{more}", "see docs/availability.md for the format") from None


def _refuse(source: str, why: str, fix: str) -> InvalidInput:
    return InvalidInput(f"{source} is not a planning file", why=why, fix=fix)
