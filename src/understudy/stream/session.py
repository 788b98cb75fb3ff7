"""temporary"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from pyspark.sql import SparkSession


class Profile(StrEnum):
    QUICK = "quick"
    FULL = "full"


def start(name: str, master: str, profile: Profile, local: Path, extra: Mapping[str, str]) -> SparkSession:
    import os, sys

    os.environ["PYSPARK_PYTHON"] = sys.executable
    b = SparkSession.builder.master(master).appName(name)
    for k, v in {
        "spark.driver.extraClassPath": "/tmp/us.jar",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
        "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.driver.extraJavaOptions": "-Xss4m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        **extra,
    }.items():
        b = b.config(k, v)
    s = b.getOrCreate()
    s.sparkContext.setLogLevel("WARN")
    return s
