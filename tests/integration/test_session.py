"""A real session: its settings, its file system, its checkpoints."""

from __future__ import annotations

import stat
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from understudy.stream.settings import ROCKSDB, STREAMING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

HDFS_BACKED = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
PROVIDER = f"{STREAMING}stateStore.providerClass"


@pytest.fixture(scope="module")
def files(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    conf: Any = spark._jsc
    return jvm.org.apache.hadoop.fs.FileSystem.getLocal(conf.hadoopConfiguration())


def hadoop_path(spark: SparkSession, path: Path) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.hadoop.fs.Path(str(path))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_session_is_quiet_and_stays_at_home(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.driver.host") == "127.0.0.1"
    assert conf.get("spark.scheduler.mode") == "FAIR"
    assert spark.sparkContext.uiWebUrl is None
    assert spark.conf.get("spark.sql.shuffle.partitions") == "1"
    assert spark.range(3).count() == 3
    assert capfd.readouterr() == ("", "")


def test_workers_import_pyspark_from_site_packages(spark: SparkSession) -> None:
    def where(_: Any) -> Iterator[str]:
        import pyspark

        yield pyspark.__file__

    found = spark.sparkContext.parallelize([0], 1).mapPartitions(where).collect()
    assert ".zip" not in found[0]


def test_files_get_hadoop_s_permissions_without_a_crc(spark: SparkSession, files: Any, tmp_path: Path) -> None:
    assert files.getClass().getName() == "org.understudy.QuietLocalFileSystem"
    out = files.create(hadoop_path(spark, tmp_path / "a"))
    out.writeBytes("hello")
    out.close()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert mode(tmp_path / "a") == 0o644
    jvm: Any = spark._jvm
    files.setPermission(hadoop_path(spark, tmp_path / "a"), jvm.org.apache.hadoop.fs.permission.FsPermission("600"))
    assert mode(tmp_path / "a") == 0o600
    status = files.getFileStatus(hadoop_path(spark, tmp_path / "a"))
    assert (status.getLen(), status.getPermission().toString()) == (5, "rw-------")
    assert status.getOwner() == (tmp_path / "a").owner()
    assert files.getFileLinkStatus(hadoop_path(spark, tmp_path / "a")).isFile()


def test_rename_replaces_a_file_and_a_missing_one_is_missing(spark: SparkSession, files: Any, tmp_path: Path) -> None:
    (tmp_path / "new").write_text("new")
    (tmp_path / "old").write_text("old")
    assert files.rename(hadoop_path(spark, tmp_path / "new"), hadoop_path(spark, tmp_path / "old"))
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("old", "new")]
    assert not files.exists(hadoop_path(spark, tmp_path / "new"))
    with pytest.raises(Exception, match="FileNotFoundException"):
        files.getFileStatus(hadoop_path(spark, tmp_path / "new"))
    with pytest.raises(Exception, match="FileNotFoundException"):
        files.getFileStatus(hadoop_path(spark, tmp_path / "old" / "below"))


def test_somebody_else_s_crc_is_still_honoured(spark: SparkSession, files: Any, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("hello")
    (tmp_path / ".a.crc").write_bytes(b"crc\0\0\0\2\0\0\0\0\0")
    with pytest.raises(Exception, match="ChecksumException"):
        files.open(hadoop_path(spark, tmp_path / "a")).read()


def count_until(spark: SparkSession, checkpoint: Path, last: int) -> dict[int, dict[int, int]]:
    """Count per key until batch `last` is done; what every batch showed."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).option("numPartitions", 1)
    rows = source.load()
    seen: dict[int, dict[int, int]] = {}
    done = Event()

    def sink(batch: DataFrame, number: int) -> None:
        seen[number] = {row["key"]: row["count"] for row in batch.toArrow().to_pylist()}
        if number >= last:
            done.set()

    writer = rows.groupBy((rows.value % 5).alias("key")).count().writeStream.foreachBatch(sink)
    query = writer.outputMode("update").option("checkpointLocation", str(checkpoint)).start()
    assert done.wait(240), query.exception()
    query.stop()
    return seen


@pytest.mark.parametrize(
    ("provider", "snapshot"),
    [({PROVIDER: HDFS_BACKED}, "*.snapshot"), (ROCKSDB, "*.zip")],
    ids=["hdfs-backed", "rocksdb"],
)
def test_a_query_snapshots_its_state_and_goes_on_from_its_checkpoint(
    spark: SparkSession, tmp_path: Path, provider: dict[str, str], snapshot: str
) -> None:
    for key, value in provider.items():
        spark.conf.set(key, value)
    before = count_until(spark, tmp_path, last=5)
    after = count_until(spark, tmp_path, last=max(before) + 2)
    # A batch that was cut off by stop() runs again; nothing else may.
    assert min(after) in (max(before), max(before) + 1)
    for number, counts in (before | after).items():
        assert counts == dict.fromkeys(range(5), 2 * (number + 1))
    state = tmp_path / "state"
    assert list(state.rglob(snapshot)), sorted(path.name for path in state.rglob("*"))
    # Spark's own checksums are files like 1.delta.crc; Hadoop's would be hidden.
    assert not list(tmp_path.rglob(".*.crc"))
