"""What a replica can be told to do next. Each action is one step, and whoever interrupts it loses nothing.

Waiting is an action too: a replica that waits and is asked to be something else, or to stop, decides anew at once.
Steps that copy take as long as their copy: `PrepareQuery` restores a checkpoint, `Follow`, `CatchUp` and `ReadBack`
pull what is new and wait for the query to jump, five seconds at most. `AwaitInput` waits at the log, a tenth of a
second at most.
"""

from __future__ import annotations

from dataclasses import dataclass

from understudy.model.capabilities import Capability
from understudy.model.names import SliceId


@dataclass(frozen=True)
class Wait:
    """Decide again after so many seconds, or as soon as something changes."""

    seconds: float


@dataclass(frozen=True)
class AwaitInput:
    """The next epoch is not published yet: wait for it at the log, not longer than `seconds`."""

    epoch: int
    seconds: float


@dataclass(frozen=True)
class Throttle:
    """Leave the node to primaries that are behind, and look again after so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Turn:
    """A capability is reached, or given up."""

    capability: Capability
    on: bool


@dataclass(frozen=True)
class StartTrial:
    """Run the plan once on an empty epoch, so that the first real batch is not the first ever."""


@dataclass(frozen=True)
class EndTrial:
    pass


@dataclass(frozen=True)
class PrepareQuery:
    """Start a query on the newest shipped checkpoint, beside the one that may be there.

    `load`: let Spark load the state, by running the last batch of the checkpoint again.
    """

    load: bool


@dataclass(frozen=True)
class SwapQuery:
    """The prepared query takes the place of the one before, which is stopped."""


@dataclass(frozen=True)
class StandBy:
    """From here on the query waits behind its gate and follows what is shipped."""


@dataclass(frozen=True)
class CatchUp:
    """Before a query that stood by may work: bring it to the newest shipped checkpoint once more."""


@dataclass(frozen=True)
class TakeOver:
    """Become the primary: where a replay may differ, older generations are fenced out."""


@dataclass(frozen=True)
class LeaveGap:
    """Publish what was missed as gaps and go on with what comes next; for guarantees that replay nothing."""


@dataclass(frozen=True)
class StartShipping:
    pass


@dataclass(frozen=True)
class StopShipping:
    pass


@dataclass(frozen=True)
class ReadBack:
    """Take over the newer state that another replica has shipped."""


@dataclass(frozen=True)
class Follow:
    """Bring a waiting query to the newest shipped checkpoint."""


@dataclass(frozen=True)
class FetchAhead:
    """Copy published input into the node's own directory before it is needed."""


@dataclass(frozen=True)
class TrimSpool:
    """Drop bags that were held back and that the primary has published meanwhile."""


@dataclass(frozen=True)
class Announce:
    """Let the query see one more epoch."""

    epoch: int


@dataclass(frozen=True)
class FailInputGone:
    """The input is trimmed and no shipped state covers it."""

    upstream: SliceId
    epoch: int


QueryAction = (
    Wait
    | AwaitInput
    | Throttle
    | Turn
    | StartTrial
    | EndTrial
    | PrepareQuery
    | SwapQuery
    | StandBy
    | CatchUp
    | TakeOver
    | LeaveGap
    | StartShipping
    | StopShipping
    | ReadBack
    | Follow
    | FetchAhead
    | TrimSpool
    | Announce
    | FailInputGone
)
