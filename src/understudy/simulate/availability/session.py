"""The one place that makes or takes a SparkSession for simulations."""

from __future__ import annotations

import atexit
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
    if where != "local" and not where.startswith("local["):
        # Executors elsewhere have no understudy of their own: send this one along.
        folder = Path(tempfile.mkdtemp(prefix="understudy-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        spark.sparkContext.addPyFile(str(archive(folder)))
    return spark


def archive(folder: Path) -> Path:
    """This package as a zip file Python can import from."""
    package = Path(understudy.__file__).parent
    copy = shutil.copytree(package, folder / "source" / "understudy", ignore=shutil.ignore_patterns("__pycache__"))
    return Path(shutil.make_archive(str(folder / "understudy"), "zip", root_dir=copy.parent))
