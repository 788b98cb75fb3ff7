"""A real run with Spark, watched and broken through its page.

With UNDERSTUDY_IMAGES=docs/img the pictures of the README are taken on the way.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from understudy.runtime.client import Client
from understudy.runtime.home import Home

pytestmark = [pytest.mark.browser, pytest.mark.spark, pytest.mark.timeout(900)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "sentiment.py"
SLICES = 5
NODES = ("node-1", "node-2", "node-3")
VICTIM = "mentions[0]"
SETTINGS = ["--set", "rate=200", "--set", "objective=2"]
START_MS = 180_000
BACK_MS = 120_000
LENGTH_S = 600
IMAGES = os.environ.get("UNDERSTUDY_IMAGES")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "home"
    command = [sys.executable, "-m", "understudy", "run", str(EXAMPLE), "--home", str(place), "--port", "0"]
    options = ["--nodes", str(len(NODES)), "--for", f"{LENGTH_S}s", "--allow-faults", *SETTINGS]
    with (tmp_path / "output").open("wb") as output:
        run = subprocess.Popen([*command, *options], stderr=output, stdout=output)
        try:
            while not answers(place):
                assert run.poll() is None, (tmp_path / "output").read_text()
                time.sleep(0.1)
            yield place
        finally:
            run.send_signal(signal.SIGINT)
            run.wait(120)


def answers(home: Path) -> bool:
    url = Home(home).address()
    return url is not None and Client(url).answers()


def shoot(page: Page, name: str) -> None:
    if IMAGES:
        page.screenshot(path=Path(IMAGES) / f"dashboard-{name}.png")


KEEPS_UP = """least => {
  const { epoch, latency_s } = window.understudy.model.view;
  return epoch >= least && latency_s < 1.5;
}"""


def settle(page: Page, epoch: int) -> None:
    """For pictures only: every node is busy when a run starts, and a picture shall show one that keeps up."""
    if IMAGES:
        page.wait_for_function(KEEPS_UP, arg=epoch, timeout=START_MS)


def view(page: Page, name: str) -> None:
    page.locator("nav a", has_text=name).click()


def primaries(page: Page, node: str) -> list[str]:
    return page.locator(f"[data-node={node}] .chip.primary").all_text_contents()


def test_a_node_of_a_real_run_is_killed_from_the_page(browser: Browser, home: Path) -> None:
    page = browser.new_page(viewport={"width": 1366, "height": 768}, color_scheme="light")
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    url = json.loads((home / "address").read_text())["url"]
    page.goto(f"{url}/#token={(home / 'token').read_text()}", timeout=START_MS)
    healthy = page.locator("[data-slice][data-health=healthy]")
    expect(healthy).to_have_count(SLICES, timeout=START_MS)
    # Some epochs, so that there is something to replay.
    expect(page.locator('[data-slice="out[0]"]')).to_contain_text("epoch 1", timeout=BACK_MS)
    settle(page, 90)
    shoot(page, "topology")
    view(page, "Nodes")
    shoot(page, "nodes")
    node = next(node for node in NODES if VICTIM in primaries(page, node))
    victims = primaries(page, node)
    view(page, "Try it")
    page.locator(f'[data-try="{node}"] [data-verb=kill]').click()
    page.locator("#do-it").click()
    view(page, "Topology")
    if IMAGES:
        # A slice whose secondary is ready may be back before a page could show that it was away.
        page.wait_for_selector("[data-slice][data-health=down]", timeout=BACK_MS)
    shoot(page, "down")
    view(page, "Timeline")
    expect(page.locator("[data-kind=recovered]")).to_have_count(len(victims), timeout=BACK_MS)
    expect(page.locator("[data-kind=fault]")).to_contain_text(f"kill:{node}")
    view(page, "Topology")
    expect(page.locator("[data-slice][data-health=down]")).to_have_count(0, timeout=BACK_MS)
    settle(page, 120)
    view(page, "Timeline")
    shoot(page, "timeline")
    view(page, "Recovery")
    expect(page.locator("[data-recovery]")).to_have_count(len(victims))
    shoot(page, "recovery")
    page.emulate_media(color_scheme="dark")
    view(page, "Cost")
    expect(page.locator("#costs canvas")).to_be_visible()
    shoot(page, "cost")
    page.close()
    assert complaints == []
