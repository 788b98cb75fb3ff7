"""Every Spark setting of a node, as a pure function: what paid on Spark 4.3 and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.stream.profile import Profile

STREAMING = "spark.sql.streaming."
EXECUTION = "org.apache.spark.sql.execution.streaming."

# For both of Hadoop's front doors, FileSystem and FileContext: no child processes, no .crc files.
FILES = {
    "spark.hadoop.fs.file.impl": "org.understudy.QuietLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.understudy.QuietLocalFs",
    f"{STREAMING}checkpointFileManagerClass": (f"{EXECUTION}checkpointing.FileSystemBasedCheckpointFileManager"),
}

STREAM = {
    # A slice is the unit of parallelism; more partitions inside it only add tasks to every batch.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    # One epoch is one batch: a batch without data would be an epoch nobody closed.
    f"{STREAMING}noDataMicroBatches.enabled": "false",
    # A waiting query waits at its gate; Spark's own pause between two questions only adds to the latency.
    f"{STREAMING}pollingDelay": "10ms",
    # Version 2 names state files by ids only the commit file knows; version 1 can be copied file by file.
    f"{STREAMING}stateStore.checkpointFormatVersion": "1",
    # Rewinding starts from a shipped checkpoint; every batch retained costs files, and listing them costs time.
    f"{STREAMING}minBatchesToRetain": "10",
    # Old state files go, and RocksDB makes snapshots, only when this comes round; both shorten a restore.
    f"{STREAMING}stateStore.maintenanceInterval": "5s",
    f"{STREAMING}ratioExtraSpaceAllowedInCheckpoint": "0",
    f"{STREAMING}metricsEnabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.scheduler.mode": "FAIR",
    "spark.scheduler.allocation.file": str(Path(__file__).with_name("jvm") / "pools.xml"),
    # Spark removes the shuffle files of old batches when the JVM collects their objects, by default every 30 minutes.
    "spark.cleaner.periodicGC.interval": "30s",
}

QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.sql.catalogImplementation": "in-memory",
}

ROCKSDB = {
    f"{STREAMING}stateStore.providerClass": f"{EXECUTION}state.RocksDBStateStoreProvider",
    f"{STREAMING}stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # To count rows Spark looks up every key it writes; a standby that follows, or a restore, does little else.
    f"{STREAMING}stateStore.rocksdb.trackTotalNumberOfRows": "false",
}

FIXED = frozenset(
    {
        "spark.app.name",
        "spark.master",
        "spark.local.dir",
        "spark.sql.adaptive.enabled",
        "spark.sql.session.timeZone",
        "spark.sql.shuffle.partitions",
        f"{STREAMING}minBatchesToRetain",
        f"{STREAMING}noDataMicroBatches.enabled",
        f"{STREAMING}stateStore.checkpointFormatVersion",
        *FILES,
        *ROCKSDB,
    }
)
"""What users may not set: epochs, replays and shipped checkpoints depend on it, or it has an option of its own."""

LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def is_local(master: str) -> bool:
    """Driver and executors on this machine; local-cluster has executors of its own but shares the disk."""
    return master.startswith("local")


def settings(name: str, master: str, profile: Profile, local_dir: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """Ours first, then the caller's, which win."""
    chosen = {"spark.app.name": name, "spark.master": master} | FILES | STREAM | QUIET
    chosen["spark.local.dir"] = str(local_dir)
    chosen["spark.sql.warehouse.dir"] = str(local_dir / "warehouse")
    chosen["spark.driver.memory"] = profile.heap
    if profile.rocksdb:
        chosen |= ROCKSDB
    if is_local(master):
        chosen |= LOOPBACK
    return chosen | dict(extra)
