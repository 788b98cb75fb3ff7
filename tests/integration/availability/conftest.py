from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession as Session

    from understudy.simulate.availability.session import session

    running = Session.getActiveSession()
    made = session()
    yield made
    if running is None:
        made.stop()
