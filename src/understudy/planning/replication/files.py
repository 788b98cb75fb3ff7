"""Problems from JSON or YAML files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from understudy.errors import InvalidInput
from understudy.planning.replication.problem import Operator, Partitioning, ReplicationProblem, Stream

if TYPE_CHECKING:
    from pathlib import Path

_FORM = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
_EXAMPLE = (
    '{"operators": [{"name": "O1", "tasks": [1, 2]}, {"name": "O2", "tasks": [3.0]}], '
    '"streams": [{"from": "O1", "to": "O2", "partitioning": "merge"}]}'
)


class _Operator(BaseModel):
    model_config = _FORM
    name: Annotated[str, Field(min_length=1, pattern=r"^[^\[\],]+$")]
    tasks: tuple[float, ...]
    input: Literal["independent", "correlated"] = "independent"


class _Stream(BaseModel):
    model_config = _FORM
    source: Annotated[str, Field(alias="from")]
    target: Annotated[str, Field(alias="to")]
    partitioning: Partitioning | None = None
    shares: tuple[tuple[float, ...], ...] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> _Stream:
        if self.partitioning is None and self.shares is None:
            raise ValueError(
                "needs a partitioning (one-to-one, split, merge, full) or shares (a row per upstream task)"
            )
        return self


class _File(BaseModel):
    model_config = _FORM
    operators: tuple[_Operator, ...]
    streams: tuple[_Stream, ...] = ()
    sinks: tuple[str, ...] = ()


def load(path: Path) -> ReplicationProblem:
    return parse(_read(path), place=str(path))


def load_rates(path: Path) -> dict[str, float]:
    """Rates of slices, as `{"counts[1]": 250.0}`."""
    data = _read(path)
    if not isinstance(data, dict) or not all(
        isinstance(name, str) and isinstance(rate, int | float) and not isinstance(rate, bool)
        for name, rate in data.items()
    ):
        raise InvalidInput(
            f"{path} does not map slices to rates",
            why="every entry has the name of a slice and a number",
            fix='write for example {"counts[0]": 250.0, "counts[1]": 180.0}',
        )
    return {name: float(rate) for name, rate in data.items()}


def load_plan(path: Path) -> tuple[str, ...]:
    """The replicas of a plan: what `understudy plan --json` prints, or a list of tasks."""
    data = _read(path)
    found = data.get("replicas") if isinstance(data, dict) else data
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise InvalidInput(
            f"{path} is not a plan",
            why="a plan has a list of tasks under 'replicas'",
            fix='make one with \'understudy plan APP.py --budget 4 --json\', or write ["counts[0]", "counts[1]"]',
        )
    return tuple(dict.fromkeys(found))


def _read(path: Path) -> Any:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"cannot read {path}", why=str(error), fix="give the path of a readable JSON or YAML file"
        ) from error
    try:
        return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        raise InvalidInput(
            f"{path} is not valid {'JSON' if path.suffix == '.json' else 'YAML'}",
            why=" ".join(str(error).split()),
            fix=f"correct the file; a small one looks like {_EXAMPLE}",
        ) from error


def parse(data: Any, *, place: str = "the problem") -> ReplicationProblem:
    try:
        form = _File.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the top level"
        raise InvalidInput(
            f"{place}: {where} is not usable", why=first["msg"], fix=f"a small problem looks like {_EXAMPLE}"
        ) from error
    return ReplicationProblem(
        tuple(Operator(op.name, op.tasks, op.input == "correlated") for op in form.operators),
        tuple(Stream(s.source, s.target, s.partitioning or Partitioning.FULL, s.shares) for s in form.streams),
        form.sinks,
    )


def to_data(problem: ReplicationProblem) -> dict[str, Any]:
    """The file form of a problem; `parse` turns it back."""
    return {
        "operators": [
            {"name": op.name, "tasks": list(op.rates), **({"input": "correlated"} if op.correlated else {})}
            for op in problem.operators
        ],
        "streams": [
            {
                "from": s.source,
                "to": s.target,
                **(
                    {"partitioning": str(s.partitioning)}
                    if s.shares is None
                    else {"shares": [list(r) for r in s.shares]}
                ),
            }
            for s in problem.streams
        ],
        "sinks": list(problem.sinks),
    }
