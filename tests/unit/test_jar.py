"""The jar in the package was built from the sources beside it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BUILD = Path(__file__).parents[2] / "jvm" / "build.py"


def test_the_committed_jar_was_built_from_the_committed_sources() -> None:
    done = subprocess.run([sys.executable, str(BUILD), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
