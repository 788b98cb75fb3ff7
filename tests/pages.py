"""The examples of docs/connectors/ as files that can be run."""

from __future__ import annotations

import re
from pathlib import Path

PAGES = Path(__file__).parents[1] / "docs" / "connectors"


def example(page: str, directory: Path) -> Path:
    """The first block of Python of a page, as a file."""
    found = re.search(r"^```python\n(.*?)^```", (PAGES / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    path = directory / f"{page}_example.py"
    path.write_text(found[1])
    return path
