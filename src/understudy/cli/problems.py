"""Finding the planning problem a command line talks about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from understudy.planning.replication.problem import ReplicationProblem


def load_problem(path: Path, rates: Path | None = None) -> ReplicationProblem:
    """A problem file, or an application: the one place where both meet."""
    if path.suffix == ".py":
        return problem_of_application(path, rates)
    from understudy.planning.replication.files import load

    return load(path)


def problem_of_application(path: Path, rates: Path | None = None) -> ReplicationProblem:
    """The application's slices are the tasks; a slice without a rate in the file counts 1.0."""
    from understudy.errors import Unavailable
    from understudy.planning.replication.files import load_rates
    from understudy.planning.replication.from_topology import problem_from

    try:
        from understudy.runtime import application  # type: ignore[attr-defined, unused-ignore]
    except ImportError as error:
        raise Unavailable(
            f"{path} cannot be loaded as an application",
            why=str(error),
            fix="give the problem as a JSON or YAML file",
        ) from error
    return problem_from(application.load(path), load_rates(rates) if rates else None)
