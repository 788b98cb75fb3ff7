"""The dashboard as a person meets it, in a headless browser over a simulated run."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Watched
from tests.simulated.query import Pace
from tests.simulated.topologies import word_count
from tests.theatre import TOKEN, Theatre

pytestmark = pytest.mark.browser


def view(page: Page, name: str) -> None:
    page.locator("nav a", has_text=name).click()


def hosted_by(theatre: Theatre, node: str) -> list[str]:
    return [str(slice_id) for slice_id, hosts in theatre.cluster.hosts().items() if hosts and hosts[0][0] == node]


def all_healthy(page: Page, theatre: Theatre) -> None:
    healthy = page.locator("[data-slice][data-health=healthy]")
    expect(healthy).to_have_count(len(theatre.cluster.layout.slices))


def test_the_topology_appears_with_every_slice(watched: Watched, theatre: Theatre) -> None:
    page = watched.page
    all_healthy(page, theatre)
    assert [box.get_attribute("data-vertex") for box in page.locator("[data-vertex]").all()] == [
        "lines",
        "words",
        "counts",
        "out",
    ]
    expect(page.locator("#edges path")).to_have_count(3)
    expect(page.locator(".legend li")).to_have_count(6)
    words = page.locator('[data-slice="counts[0]"]')
    expect(words).to_contain_text("passive replication")
    expect(words).to_contain_text("epoch")
    assert "token" not in page.url, "the token is taken off the address"


def test_killing_a_node_from_the_page(watched: Watched, theatre: Theatre) -> None:
    """Its slices turn red, then healthy again, and the timeline tells cause and effect."""
    page = watched.page
    all_healthy(page, theatre)
    victims = hosted_by(theatre, "node-2")
    view(page, "Try it")
    page.locator('[data-try="node-2"] [data-verb=kill]').click()
    expect(page.locator("dialog")).to_contain_text("Kill node-2?")
    page.get_by_text("Leave it").click()
    assert theatre.hands.done == []
    theatre.pace_s = 1.0
    page.locator('[data-try="node-2"] [data-verb=kill]').click()
    page.locator("#do-it").click()
    for name in victims:
        expect(page.locator(f'[data-chip="{name}"]')).to_have_attribute("data-health", "down")
    view(page, "Topology")
    down = page.locator(f'[data-slice="{victims[0]}"]')
    expect(down).to_have_attribute("data-health", "down")
    red = page.evaluate(
        "name => getComputedStyle(document.querySelector(name)).borderLeftColor", ".slice[data-health=down]"
    )
    assert red == "rgb(204, 43, 43)"
    theatre.pace_s = 0.05
    all_healthy(page, theatre)
    view(page, "Timeline")
    fault = page.locator("[data-kind=fault]").first
    expect(fault).to_contain_text("kill:node-2")
    lost = page.locator("[data-kind=node_lost]").first
    expect(lost).to_contain_text("node-2")
    number = lost.get_attribute("data-event")
    expect(page.locator(f'[data-kind=assigned] [data-cause="{number}"]')).to_have_count(len(victims))
    page.locator(f'[data-kind=assigned] [data-cause="{number}"]').first.click()
    expect(lost).to_have_class("marked")
    recovered = page.locator("[data-kind=recovered]")
    expect(recovered).to_have_count(len(victims))
    view(page, "Recovery")
    expect(page.locator("[data-recovery]")).to_have_count(len(victims))
    expect(page.locator("[data-recovery]").first).to_contain_text("kill:node-2")
    expect(page.locator("#past canvas")).to_be_visible()


def test_freezing_and_draining_from_the_page(watched: Watched, theatre: Theatre) -> None:
    page = watched.page
    all_healthy(page, theatre)
    view(page, "Try it")
    page.locator("#length").fill("1")
    page.locator("#length").blur()
    page.locator('[data-try="node-1"] [data-verb=freeze]').click()
    page.locator("#do-it").click()
    expect(page.locator("[data-kind=fault]")).to_contain_text("freeze:node-1")
    expect(page.locator("[data-kind=fault]")).to_contain_text("+1s")


def test_every_view_says_what_it_knows(watched: Watched, theatre: Theatre) -> None:
    page = watched.page
    all_healthy(page, theatre)
    view(page, "Nodes")
    expect(page.locator("[data-node]")).to_have_count(3)
    expect(page.locator(".chip.primary")).to_have_count(len(theatre.cluster.layout.slices))
    expect(page.locator("[data-node]").first).to_contain_text("last heartbeat")
    view(page, "Recovery")
    expect(page.locator("#no-predictions")).to_have_count(0)
    predicted = page.get_by_role("row", name="words[0]")
    expect(predicted.first).to_contain_text("ms")
    expect(predicted.first).to_contain_text("\N{CHECK MARK}")
    expect(page.locator("#no-recoveries")).to_be_visible()
    view(page, "Cost")
    expect(page.locator("[data-cost]")).to_have_count(4)
    expect(page.locator("#costs canvas")).to_be_visible()
    view(page, "Timeline")
    expect(page.locator("#timeline canvas")).to_be_visible()
    expect(page.locator("[data-kind=running]")).to_be_visible()


def test_tentative_output_is_shown_while_slices_are_missing(browser: Browser, tmp_path: Path) -> None:
    topology = word_count()
    topology.tentative_s = 0.2
    with Theatre(tmp_path, pace_s=0.05, topology=topology, pace=Pace(start_s=4.0)) as theatre:
        page = browser.new_page()
        page.goto(f"{theatre.url}/#token={TOKEN}")
        all_healthy(page, theatre)
        # Slowly, so that the page sees the branch however busy the machine is.
        theatre.pace_s = 0.5
        theatre.hands.todo.append(lambda: theatre.cluster.kill("node-2"))
        branch = page.locator("#branch")
        expect(branch).to_contain_text("without counts")
        expect(branch).to_contain_text("predicted fidelity")
        expect(page.locator("[data-slice][data-health=tentative]")).not_to_have_count(0)
        theatre.pace_s = 0.05
        expect(branch).to_have_count(0)
        all_healthy(page, theatre)
        page.close()


def test_a_manager_that_goes_away_is_said_and_waited_for(watched: Watched, theatre: Theatre) -> None:
    page = watched.page
    all_healthy(page, theatre)
    theatre.close_pages()
    page.wait_for_selector("#offline")
    expect(page.locator("#offline")).to_be_hidden()
    all_healthy(page, theatre)
    assert page.evaluate("window.understudy.model.connection") == "open"


def test_themes(watched: Watched, theatre: Theatre) -> None:
    page = watched.page
    all_healthy(page, theatre)

    def ground() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    light = ground()
    page.emulate_media(color_scheme="dark")
    dark = ground()
    assert light != dark
    page.locator("#theme").click()
    expect(page.locator("#theme")).to_have_text("light")
    assert ground() == light
    page.locator("#theme").click()
    assert ground() == dark


def test_faults_are_offered_only_where_they_are_allowed(browser: Browser, theatre: Theatre) -> None:
    manager = theatre.cluster.manager
    manager.memory.run = manager.run.changed(allow_faults=False)
    page = browser.new_page()
    page.goto(f"{theatre.url}/#tryit")
    expect(page.locator("main[data-view=topology]")).to_be_visible()
    expect(page.locator("nav a")).to_have_count(5)
    page.close()


def test_nothing_comes_from_elsewhere(browser: Browser, theatre: Theatre) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(theatre.url)
    for name in ("Nodes", "Recovery", "Cost", "Timeline"):
        view(page, name)
    assert len(asked) > 8
    assert all(url.startswith((theatre.url, "data:")) for url in asked)
    page.close()
