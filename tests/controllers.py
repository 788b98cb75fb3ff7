"""Slices for tests of the controller."""

from __future__ import annotations

from hypothesis import strategies as st

from understudy.control.schemes.costs import Usage
from understudy.control.schemes.history import History, Observation, observe
from understudy.control.schemes.objectives import Watched
from understudy.control.schemes.series import Transfer
from understudy.model.capabilities import LADDER
from understudy.model.messages import ReplicaStatus, Steps
from understudy.model.names import SliceId
from understudy.model.recovery import Guarantee

MB = 1 << 20


def status(epoch: int, batch_s: float, state_bytes: int, name: str = "counts[0]", deploy: float = 1.5) -> ReplicaStatus:
    steps = Steps(deploy=deploy, wire_receive=0.05, done=True)
    return ReplicaStatus(
        slice=SliceId.parse(name), generation=1, epoch=epoch, batch_s=batch_s, state_bytes=state_bytes, steps=steps
    )


def epochs(
    history: History, batches: list[float], sizes: list[int], transfer: Transfer | None = None, interval: int = 1
) -> History:
    """One observation for each epoch; a checkpoint is shipped every `interval` epochs."""
    for batch_s, size in zip(batches, sizes, strict=True):
        epoch = history.epoch + 1
        shipped = epoch if (epoch + 1) % interval == 0 else None
        seen = Observation(status(epoch, batch_s, size, history.slice), shipped, shipped=transfer, loaded=transfer)
        history = observe(history, seen)
    return history


def settled(
    batch_s: float = 0.3, size: int = 20 * MB, rate: float = 100 * MB, name: str = "counts[0]", count: int = 10
) -> History:
    """A slice that has run steadily for some epochs."""
    fresh = History(name, detect_s=0.4)
    return epochs(fresh, [batch_s] * count, [size] * count, Transfer(4 * MB, 4 * MB / rate))


@st.composite
def histories(draw: st.DrawFn, name: str = "counts[0]") -> History:
    count = draw(st.integers(0, 12))
    batches = draw(st.lists(st.floats(0.01, 5), min_size=count, max_size=count))
    sizes = draw(st.lists(st.integers(0, 1 << 30), min_size=count, max_size=count))
    transfer = draw(st.none() | st.builds(Transfer, st.integers(1, 1 << 30), st.floats(0.001, 20)))
    fresh = History(
        name,
        quantile=draw(st.sampled_from([1.0, 0.9])),
        detect_s=draw(st.floats(0.1, 3)),
        neighbours=draw(st.integers(0, 4)),
        free_node=draw(st.booleans()),
        source=draw(st.booleans()),
    )
    return epochs(fresh, batches, sizes, transfer, draw(st.integers(1, 5)))


usages = st.builds(
    Usage,
    cpu=st.floats(0, 2),
    received_bps=st.floats(0, 1e8),
    published_bps=st.floats(0, 1e8),
    changed_bps=st.floats(0, 1e7),
    standby_sharers=st.integers(1, 4),
)


@st.composite
def watched(draw: st.DrawFn, name: str = "counts[0]") -> Watched:
    return Watched(
        draw(histories(name)),
        draw(usages),
        objective_s=draw(st.sampled_from([0.0, 0.5, 1.0, 2.0, 5.0, 20.0])),
        guarantee=draw(st.sampled_from(list(Guarantee))),
        strongest=draw(st.sampled_from(LADDER[2:])),
        ship_every=draw(st.none() | st.integers(1, 10)),
    )
