"""Epochs in order: what a target that remembers its last epoch makes of the next one."""

from __future__ import annotations

from understudy.errors import InvalidInput

NOTHING = -1
"""The last epoch of a target that holds none."""


def is_there(target: str, epoch: int, last: int) -> bool:
    """Whether a target whose last epoch is `last` holds `epoch` already.

    Parameters
    ----------
    target
        How the target is called in an error.
    epoch
        The epoch offered now.
    last
        The newest epoch the target holds, `NOTHING` for none.

    Raises
    ------
    InvalidInput
        If epochs before this one are missing: the target is not the one the run has written to so far, or it was
        restored from an older backup.

    Examples
    --------
    >>> is_there("table counts", 3, last=3), is_there("table counts", 4, last=3)
    (True, False)
    """
    if epoch > last + 1:
        missing = f"epoch {epoch - 1}" if epoch == last + 2 else f"epochs {last + 1} to {epoch - 1}"
        raise InvalidInput(
            f"{target} lacks {missing}",
            why=f"the run delivered them, and the target now ends with {f'epoch {last}' if last >= 0 else 'none'}",
            fix="point the sink at the target it wrote to before, or run again in a new --home",
        )
    return epoch <= last


def foreign(target: str, run: str, sink: str, release: str) -> InvalidInput:
    """The error for a target that holds the epochs of another run or sink; `release` tells how to give it up."""
    return InvalidInput(
        f"{target} holds epochs of run {run}, sink '{sink}'",
        why="epochs of two runs or two sinks in one target could not be told apart",
        fix=f"give the sink another target, go on with that run by --resume, or {release}",
    )
