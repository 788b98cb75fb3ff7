"""What docs and code point to exists: cited works, pages, files and headings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CITATION = re.compile(
    r"\b([A-ZÄÖÜ][\w-]+)(?: et al\.| and [A-Z]\w+|, [A-Z]\w+ and [A-Z]\w+)? ((?:19|20)\d\d)(?=, (?:§|Fig|ch))"
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def _cited() -> set[tuple[str, str]]:
    texts = [*PAGES, *(ROOT / "src").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]
    return {match for path in texts for match in CITATION.findall(path.read_text())}


def _anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_cited_works_are_listed() -> None:
    listed = (ROOT / "docs" / "references.md").read_text()
    headings = re.findall(r"^### (.*) ((?:19|20)\d\d)$", listed, re.MULTILINE)
    known = {(name.split()[0].rstrip(","), year) for name, year in headings}
    assert _cited() >= {("Su", "2016"), ("Martin", "2015")}
    assert _cited() <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text()):
        target, _, anchor = link.partition("#")
        if "://" in target:
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{page.name} links to {target}, which does not exist"
        assert not anchor or anchor in _anchors(path), f"{page.name} links to {link}, which has no such heading"
