"""Every log keeps the same promises: files, and Kafka with its brokers in memory. Real brokers: tests/services."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.log_contract import LogContract, Logs
from tests.memory_wire import MemoryLogs

from understudy.log.disk import Disk
from understudy.log.file_log import FileLog


class FileLogs:
    def __init__(self, root: Path) -> None:
        self._root = root

    def open(self) -> FileLog:
        return FileLog(self._root, Disk())


class TestFileLog(LogContract):
    @pytest.fixture
    def logs(self, tmp_path: Path) -> Logs:
        return FileLogs(tmp_path)


class TestKafkaLog(LogContract):
    @pytest.fixture
    def logs(self, tmp_path: Path) -> Logs:
        return MemoryLogs(tmp_path)
