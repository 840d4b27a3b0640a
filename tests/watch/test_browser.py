"""The page in a real browser: live, at any round, with hostile names, on a phone, in two tabs."""

import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import pytest

from prism.watch import Watching
from tests.kit.commands import MAIN
from tests.kit.processes import Process
from tests.kit.processes import start as fork
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.slow

Show = Callable[[Path], Watching]

PAGES = """
    const text = (id) => document.getElementById(id).textContent;
    return {state: text("state"), where: text("where"), notes: text("notes"),
        round: document.getElementById("at").dataset.round};
"""
OVERFLOW = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


def see(browser: Any, watching: Watching, fragment: str = "") -> None:
    """Open the page, and wait until its figures are drawn."""
    browser.driver.get_log("browser")
    browser.driver.get(watching.url + fragment)
    browser.wait("Number(document.body.dataset.drawn) > 0")


def simulate(folder: Path, *options: object) -> Process:
    """Begin a run in a process of its own."""
    words = ("simulate", *options, folder) if options else ("resume", folder)
    return fork([sys.executable, "-c", MAIN, *map(str, words)], stdout=DEVNULL, stderr=DEVNULL)


def test_a_run_is_seen_from_its_first_round_to_its_end_killed_and_resumed(
    browser: Any, shown: Show, tmp_path: Path
) -> None:
    """Rounds come by themselves; a kill and a resume are told and nothing is lost."""
    folder = tmp_path / "run"
    first = simulate(folder, "--agents", 1500, "--rounds", 8, "--seed", 3, "--out")
    wait_until(lambda: (folder / "events.jsonl").exists())
    see(browser, shown(folder))
    browser.wait("Number(document.getElementById('at').dataset.round) >= 2")
    first.kill()
    first.wait()
    browser.wait("document.getElementById('state').dataset.state === 'stopped'")

    second = simulate(folder)
    browser.wait("document.getElementById('state').dataset.state === 'running'")
    second.wait()
    browser.wait("document.getElementById('state').dataset.state === 'complete'")
    browser.wait("document.getElementById('at').dataset.round === '8'")
    page = browser.run(PAGES)
    assert "round 8 of 8" in page["state"]
    assert "as when a run is resumed" in page["notes"]
    assert browser.console() == []


def test_hostile_names_stay_texts(browser: Any, shown: Show, hostile_log: Path) -> None:
    """No name, text or reason of a log gets out of its place, wherever it is shown."""
    see(browser, shown(hostile_log))
    for step in ("document.querySelector('button.agent').click()", "0"):
        browser.run(step)
        browser.wait("document.getElementById('panel').dataset.shown !== undefined")
        for details in ("details", "#panel details"):
            browser.run(f"document.querySelectorAll('{details}').forEach((one) => one.open = true)")
    for kind in ("faults", "posts", "decisions", "moves"):
        browser.run(f"location.hash += '&kind={kind}'")
        browser.wait("document.querySelector('#at-happened li')")
    assert browser.run("return window.hacked") is None
    assert browser.run("return document.querySelectorAll('main script, dialog script').length") == 0
    assert [line for line in browser.console() if "favicon" not in line] == []


def test_the_slider_the_keys_and_the_fragment_choose_the_round(
    browser: Any, shown: Show, folder: Path
) -> None:
    """Any round can be looked at, kept as an address, and left again for the last."""
    watching = shown(folder)
    see(browser, watching, "#run=real&round=2")
    browser.wait("document.getElementById('at').dataset.round === '2'")
    press = "document.dispatchEvent(new KeyboardEvent('keydown', {key: '%s', bubbles: true}))"
    browser.run(press % "ArrowRight")
    browser.wait("document.getElementById('at').dataset.round === '3'")
    assert "round=3" in browser.run("return location.hash")
    browser.driver.refresh()
    browser.wait("document.getElementById('at').dataset.round === '3'")
    browser.run(press % "l")
    browser.wait("document.getElementById('at').dataset.round === '4'")
    assert "token" not in browser.run("return location.href")


def test_from_a_state_to_an_agent_and_back(browser: Any, shown: Show, folder: Path) -> None:
    """A state leads to its agents, one of these to its page, and the way back to the chart."""
    see(browser, shown(folder))
    chosen = """
        const place = [...document.querySelectorAll('g[data-state]')]
            .find((one) => !/\\D0 agents/.test(one.textContent));
        place.dispatchEvent(new MouseEvent('click', {bubbles: true}));
    """
    browser.run(chosen)
    browser.wait("document.querySelector('#panel .names button')")
    browser.run("document.querySelector('#panel .names button').click()")
    browser.wait("document.getElementById('agent-story')")
    browser.run("history.back()")
    browser.wait("document.querySelector('#panel .names button')")
    browser.run("history.back()")
    browser.wait("!document.getElementById('panel').open")


def test_two_tabs_share_the_cookie(browser: Any, shown: Show, folder: Path) -> None:
    """A second tab opens the page without a token."""
    watching = shown(folder)
    see(browser, watching)
    browser.driver.switch_to.new_window("tab")
    browser.driver.get(watching.url.partition("?")[0])
    browser.wait("Number(document.body.dataset.drawn) > 0")
    browser.driver.close()
    browser.driver.switch_to.window(browser.driver.window_handles[0])


def test_a_phone_need_not_scroll_sideways(browser: Any, shown: Show, folder: Path) -> None:
    """At 400 pixels the page is as wide as the phone, by day and by night."""
    see(browser, shown(folder))
    try:
        browser.be_a_phone(400)
        for scheme in ("dark", "light"):
            browser.prefer(scheme)
            assert browser.run(OVERFLOW) == 0
    finally:
        browser.be_a_phone(0)
