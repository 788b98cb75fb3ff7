"""Where a service keeps data that another account than root must reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from understudy.errors import Unavailable
from understudy.testing.services.postgres import open_to_all


def test_a_private_directory_is_passed_over_also_further_up(tmp_path: Path) -> None:
    private = tmp_path / "private"
    inner = private / "inner"
    inner.mkdir(parents=True)
    private.chmod(0o700)
    assert open_to_all([str(inner), "/"]) == Path("/")


def test_without_an_open_directory_the_error_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "private").mkdir(mode=0o700)
    with pytest.raises(Unavailable, match="no place for its data") as refused:
        open_to_all([str(tmp_path / "private")])
    assert "TMPDIR" in refused.value.fix
