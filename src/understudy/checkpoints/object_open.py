"""Opens checkpoints in an object store, and says before a run begins whether that can work."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from understudy.checkpoints.object_store import ObjectStore, Patience, Pools
from understudy.checkpoints.place import URL, CheckpointsPlace
from understudy.clients.object_address import ObjectSettings, open_folder, settings_of
from understudy.clients.objects import Folder
from understudy.log.disk import Disk
from understudy.model.address import Address
from understudy.model.names import SliceId

OPTIONS = ("patience_s", "linger_s")
WORKERS = 16
"""Files that a node sends or fetches at a time. Most are small, so that it is the request that takes the time."""
LOOKERS = 2


class ObjectCheckpoints:
    """The checkpoints of a run, in one folder of an object store."""

    def __init__(self, folder: Folder, disk: Disk, patience: Patience, workers: int = WORKERS) -> None:
        self._folder, self._disk, self._patience = folder, disk, patience
        self._pools = Pools(
            ThreadPoolExecutor(workers, thread_name_prefix="checkpoints"),
            ThreadPoolExecutor(LOOKERS, thread_name_prefix="checkpoints look"),
        )

    def of(self, slice_id: SliceId) -> ObjectStore:
        return ObjectStore(self._folder, slice_id, self._disk, self._pools, self._patience)

    def close(self) -> None:
        for pool in (self._pools.workers, self._pools.looking):
            pool.shutdown(wait=False, cancel_futures=True)


def check(address: Address) -> None:
    """Raises if the address is wrong, obstore is not installed, or the store is away, refuses us or lacks conditional
    writes."""
    settings = _settings(address)
    _patience(address)
    open_folder(settings, URL).probe()


def open_checkpoints(place: CheckpointsPlace) -> ObjectCheckpoints:
    """Asks nothing of the store yet."""
    folder = open_folder(_settings(place.address), URL)
    return ObjectCheckpoints(folder.below(place.run), place.disk, _patience(place.address))


def _settings(address: Address) -> ObjectSettings:
    return settings_of(address, URL, OPTIONS)


def _patience(address: Address) -> Patience:
    usual = Patience()
    return Patience(
        patience_s=float(address.number("patience_s", int(usual.patience_s))),
        linger_s=float(address.number("linger_s", int(usual.linger_s), least=0)),
    )
