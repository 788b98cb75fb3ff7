"""The report's page draws its plots, offline."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.unit.test_report_page import REPORT
from understudy.web.report_page import report_page

pytestmark = pytest.mark.browser


def test_the_plots_are_drawn(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(report_page(REPORT))
    context = browser.new_context(offline=True)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(file.as_uri())
    for name in ("timeline", "nodes", "rows"):
        expect(page.locator(f"#{name} canvas")).to_be_visible()
    expect(page.locator("#verdict")).to_have_text("exact")
    assert complaints == []
    context.close()
