"""Which slices of a run have working secondaries: a plan, and the proposal of another one.

Plans are computed by `planning/replication`, at the edge. Decisions get them as these values.
"""

from __future__ import annotations

from understudy.model.names import SliceId
from understudy.model.recovery import Scheme
from understudy.model.run import Frozen


class ReplicaPlan(Frozen):
    """The slices that are to have working secondaries.

    - `budget`: how many slices it may name; slices of sources count as well, although only operators get a secondary.
    - `fidelity`: the predicted share of the output that survives if all other slices fail, by the rates known then.
    - `algorithm`, `status`: who planned it, and whether it is proven to be the best.
    - `fixed`: a person named the slices, so the plan is not adapted.
    - `age_s`: the age of the run when the plan was adopted.
    """

    budget: int
    slices: tuple[SliceId, ...]
    fidelity: float
    scheme: Scheme = Scheme.ACTIVE_STANDBY
    algorithm: str = "exact"
    status: str = "optimal"
    fixed: bool = False
    age_s: float = 0.0


class Proposal(Frozen):
    """A plan that might replace `basis`, the one in force when it was computed.

    `before` is the fidelity of `basis` by the same rates as that of `plan`; `note` says what its reader should know.
    """

    plan: ReplicaPlan
    basis: ReplicaPlan | None = None
    before: float = 0.0
    note: str = ""


class ReplicationState(Frozen):
    """What a planner needs of a run that goes on: the problem with measured rates, as `understudy plan` reads it.

    - `problem`: operators, streams and sinks; every slice of a source or an operator is a task.
    - `schemes`: how every task is protected now; a slice of a source has no scheme of its own.
    - `plan`: the one in force, if any.
    """

    app: str
    problem: dict[str, object]
    schemes: dict[str, str]
    scheme: Scheme
    plan: ReplicaPlan | None = None
