"""How the JVM of a node is tuned: for a quick start, or for a long busy life."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from understudy.model.config import ProfileName

if TYPE_CHECKING:
    from understudy.model.config import JvmSection


@dataclass(frozen=True)
class Profile:
    name: str
    jvm: tuple[str, ...]
    heap: str
    rocksdb: bool = True
    """RocksDB with changelog checkpointing: a batch costs what it changes, with the HDFS-backed store all keys."""


# Deep plans overflow the default stack in the analyser, and a stream thread that dies of it dies silently.
# A JVM that has run out of memory limps on without the threads that died of it: better it ends, and its node with it.
_COMMON = ("-Xss4m", "-XX:-UsePerfData", "-XX:+ExitOnOutOfMemoryError")

QUICK = Profile(ProfileName.QUICK, (*_COMMON, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"), heap="1g")
"""Tests, standbys, fresh nodes: half the CPU of a start, half the throughput at a million rows an epoch."""

FULL = Profile(ProfileName.FULL, (*_COMMON, "-XX:+UseSerialGC"), heap="2g")
"""Busy primaries. Serial collection loses nothing on two cores and starts faster."""

PROFILES = {profile.name: profile for profile in (QUICK, FULL)}


def chosen(jvm: JvmSection) -> Profile:
    """The profile a run was configured with, and the heap, where that is given by itself."""
    found = PROFILES[jvm.profile]
    return found if jvm.heap is None else replace(found, heap=jvm.heap)
