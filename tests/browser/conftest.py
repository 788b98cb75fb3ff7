"""A headless Chromium, the machine's own: Playwright's download is not needed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, expect, sync_playwright

from tests.theatre import TOKEN, Theatre

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_MS = 60_000
"""Every expectation is waited for; only a busy machine needs as long as this."""


def find_browser() -> str:
    given = os.environ.get("UNDERSTUDY_BROWSER")
    found = given or next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium is on the PATH; 'make browser' installs Debian's, or set UNDERSTUDY_BROWSER")
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = find_browser()
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        # Root in a container has no namespace to build a sandbox in.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        chromium = playwright.chromium.launch(executable_path=path, args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture
def theatre(tmp_path: Path) -> Iterator[Theatre]:
    with Theatre(tmp_path, pace_s=0.1) as made:
        yield made


class Watched:
    """A page, and whatever it complained about."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", self._hear)
        page.on("pageerror", self._raise)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _raise(self, error: Error) -> None:
        self.complaints.append(str(error))


@pytest.fixture
def watched(browser: Browser, theatre: Theatre) -> Iterator[Watched]:
    """The page as 'understudy run --allow-faults' prints its address, at the size of a laptop's screen."""
    page = browser.new_page(viewport={"width": 1366, "height": 768}, color_scheme="light")
    page.set_default_timeout(PATIENCE_MS)
    made = Watched(page)
    page.goto(f"{theatre.url}/#token={TOKEN}")
    yield made
    page.close()
    assert made.complaints == []
