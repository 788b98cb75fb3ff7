"""The one place that makes or takes a SparkSession for simulations."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

import understudy

LOCAL = "local[2]"


def session(master: str | None = None) -> SparkSession:
    """The running session if there is one; otherwise a plain one on `master`."""
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    where = master or LOCAL
    spark = (
        SparkSession.builder.master(where)
        .appName("understudy availability")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.adaptive.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    if not where.startswith("local"):
        _ship(spark)
    return spark


def _ship(spark: SparkSession) -> None:
    """Executors elsewhere have no understudy of their own: send this one along."""
    package = Path(understudy.__file__).parent
    folder = Path(tempfile.mkdtemp(prefix="understudy-"))
    copy = shutil.copytree(
        package, folder / "source" / "understudy", ignore=shutil.ignore_patterns("__pycache__")
    )
    archive = shutil.make_archive(str(folder / "understudy"), "zip", root_dir=copy.parent)
    spark.sparkContext.addPyFile(archive)
