"""The page in a real browser: live, at any round, with hostile names, on a phone, in two tabs."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from subprocess import DEVNULL, Popen
from typing import Any

import pytest

from prism.watch import Watching
from prism.watch._playing import Playing
from prism.watch.server import Viewer
from tests.kit import make
from tests.kit.browsers import MORE_HOSTILE
from tests.kit.commands import MAIN, signalled
from tests.kit.logs import WriteLog
from tests.kit.waiting import has_ended, has_stopped, wait_until

pytestmark = pytest.mark.slow

Show = Callable[[Path], Watching]

PAGES = """
    const text = (id) => document.getElementById(id).textContent;
    return {state: text("state"), where: text("where"), notes: text("notes"),
        round: document.getElementById("at").dataset.round};
"""
UNNAMED = """
    return [...document.querySelectorAll(arguments[0])].filter((each) => {
        const labels = [each.textContent, each.title, each.getAttribute("aria-label")];
        return !each.closest("[hidden]") && ![...labels, ...(each.labels ?? [])].some(Boolean);
    }).map((each) => each.outerHTML);
"""
OVERFLOW = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


STATE = "document.getElementById('state').dataset.state === '%s'"
PRESS = "document.dispatchEvent(new KeyboardEvent('keydown', {key: '%s', bubbles: true}))"


def see(browser: Any, watching: Watching, fragment: str = "") -> None:
    """Open the page, and wait until its figures are drawn."""
    browser.visit(watching.url + fragment)
    browser.wait("Number(document.body.dataset.drawn) > 0")


def wait_for_round(browser: Any, number: int) -> None:
    """Wait until the page shows a round."""
    browser.wait(f"document.getElementById('at').dataset.round === '{number}'")


def simulate(folder: Path, *options: object, pauses_at: int) -> Popen[bytes]:
    """Begin a run, or go on with it, in a process that pauses itself at the end of a round."""
    words = ("simulate", *options, "--out", folder) if options else ("resume", folder)
    code = f"{signalled(SIGSTOP, pauses_at)}\n{MAIN}"
    line = [sys.executable, "-c", code, *map(str, words)]
    return Popen(line, stdout=DEVNULL, stderr=DEVNULL)


def test_a_run_is_seen_from_its_first_round_to_its_end_killed_and_resumed(
    browser: Any, show_run: Show, tmp_path: Path
) -> None:
    """Rounds come by themselves; a kill and a resume are seen, and nothing is lost."""
    folder = tmp_path / "run"
    options = ("--agents", 300, "--rounds", 8, "--seed", 3)
    first = simulate(folder, *options, pauses_at=2)
    wait_until(lambda: (folder / "events.jsonl").exists() or has_ended(first))
    see(browser, show_run(folder))
    browser.wait("Number(document.getElementById('at').dataset.round) >= 2")
    first.kill()
    first.wait()
    browser.wait(STATE % "stopped")

    second = simulate(folder, pauses_at=4)
    browser.wait(STATE % "running")
    wait_until(lambda: has_stopped(second))
    os.kill(second.pid, SIGCONT)
    assert second.wait() == 0
    browser.wait(STATE % "complete")
    wait_for_round(browser, 8)
    page = browser.run(PAGES)
    assert "round 8 of 8" in page["state"]
    assert browser.console() == []


def test_the_slider_the_keys_and_the_fragment_choose_the_round(
    browser: Any, show_run: Show, folder: Path
) -> None:
    """Any round can be looked at, kept as an address, and left again for the last."""
    watching = show_run(folder)
    see(browser, watching, "#round=2")
    wait_for_round(browser, 2)
    browser.run(PRESS % "ArrowRight")
    wait_for_round(browser, 3)
    assert "round=3" in browser.run("return location.hash")
    browser.driver.refresh()
    wait_for_round(browser, 3)
    browser.run(PRESS % "l")
    wait_for_round(browser, 4)
    assert "token" not in browser.run("return location.href")


def test_a_heading_sorts_all_agents_and_leads_to_one_and_its_post(
    browser: Any, show_run: Show, folder: Path
) -> None:
    """Who composed most is found by a click, opens at the chosen round, and leads to a post."""
    see(browser, show_run(folder), "#round=2")
    heading = """[...document.querySelectorAll('#time-agents th button')]
        .find((one) => one.textContent === 'posts')"""
    browser.wait(heading)
    browser.run(f"{heading}.click()")
    browser.wait("document.querySelector('#time-agents [aria-sort=descending]')")
    browser.run("document.querySelector('#time-agents tbody [data-agent]').click()")
    browser.wait("document.getElementById('agent-what-it-did')")
    browser.wait("document.activeElement.id === 'panel-title'")
    about = "document.querySelector('#agent-what-it-did p')?.textContent"
    assert browser.run(f"return {about}") == "In round 2."
    press = "document.getElementById('panel-title').dispatchEvent(new KeyboardEvent('keydown', %s))"
    browser.run(press % "{key: 'ArrowRight', bubbles: true}")
    browser.wait(f"/round 3/.test({about})")
    browser.run("document.querySelector('#panel [data-post]').click()")
    browser.wait("document.querySelector('#post-the-thread [data-agent]')")
    browser.run("history.back()")
    browser.wait("document.getElementById('agent-what-it-did')")
    assert browser.console() == []


CLICKED_STATE = """
    const place = [...document.querySelectorAll('g[data-state]')]
        .find((one) => !/\\D0 agents/.test(one.textContent));
    place.dispatchEvent(new MouseEvent('click', {bubbles: true}));
"""
CLICKED_BAR = """
    const bar = document.querySelector('#figure-states .mark-rect path');
    bar.scrollIntoView();
    const {left, top, width, height} = bar.getBoundingClientRect();
    const at = {bubbles: true, clientX: left + width / 2, clientY: top + height / 2};
    for (const kind of ['pointermove', 'pointerdown', 'pointerup', 'mousedown', 'click'])
        bar.dispatchEvent(new MouseEvent(kind, at));
"""


@pytest.mark.parametrize(("click", "words"), [(CLICKED_STATE, ""), (CLICKED_BAR, "tick")])
def test_from_agents_in_a_state_to_one_and_back(
    browser: Any, show_run: Show, folder: Path, click: str, words: str
) -> None:
    """A state of the chart, and a bar over time, lead to the agents that they count."""
    see(browser, show_run(folder))
    browser.wait("document.querySelector('#figure-states .mark-rect path')")
    name = "document.querySelector('#panel .names [role=button]')"

    browser.run(click)
    browser.wait(name)
    title = browser.run("return document.getElementById('panel-title').textContent")
    assert title.startswith("Agents in")
    assert words in title
    browser.run(f"{name}.click()")
    browser.wait("document.getElementById('agent-all-that-it-did')")
    browser.run("history.back()")
    browser.wait(name)
    browser.run("history.back()")
    browser.wait("!document.getElementById('panel').open")


def test_a_phone_shows_where_agents_start_and_what_one_did(
    browser: Any, show_run: Show, folder: Path
) -> None:
    """Neither has to be scrolled to, in any round."""
    try:
        browser.be_a_phone(390)
        see(browser, show_run(folder), "#round=2")
        start = "document.querySelector('#at-the-chart .start').getBoundingClientRect()"
        assert 0 < (left := browser.run(f"return {start}.left")) < 390
        browser.run("location.hash = '#round=3'")
        wait_for_round(browser, 3)
        assert browser.run(f"return {start}.left") == left
        browser.run("location.hash = '#round=2&agent=agent_0007'")
        browser.wait("document.querySelector('#agent-what-it-did p')")
        browser.run("""
            const field = document.getElementById('panel-round');
            field.value = '3';
            field.dispatchEvent(new Event('change'));
        """)
        browser.wait("/round 3/.test(document.querySelector('#agent-what-it-did p')?.textContent)")
        assert browser.run(OVERFLOW) == 0
        assert "no faults in the run" in browser.run(PAGES)["state"]
    finally:
        browser.be_a_phone(0)


def hostile_events() -> list[make.Event]:
    """Return a log in which every name, state, label and group is hostile, with a picture."""
    names = [f"{text}{number}" for number, text in enumerate(MORE_HOSTILE)]
    states = [f"{text} state" for text in MORE_HOSTILE]
    pairs = list(zip(names, states, strict=True))
    numbers = list(range(len(names)))
    space = {"space": "grid", "width": 8, "height": 8, "places": numbers}
    agents = {"agent_ids": names, "agent_states": numbers, "state_names": states, "colours": names}
    return [
        make.started(),
        *(make.joined(name, state) for name, state in pairs),
        *(make.move(name, state, states[0], trigger=name) for name, state in pairs),
        make.event("agents.pictured", **space, **agents),
    ]


def test_forty_hostile_names_stay_texts_in_the_picture_and_its_tooltips(
    browser: Any, show_run: Show, write_log: WriteLog
) -> None:
    """Names are drawn, pointed at, chosen and found again, and nothing of them runs."""
    assert len(MORE_HOSTILE) >= 40
    see(browser, show_run(write_log(hostile_events(), "hostile/events.jsonl").parent))
    browser.wait("document.querySelectorAll('#at-the-world .figure path').length > 40")
    browser.run("location.hash = '#'")
    browser.wait("!document.getElementById('panel').open")
    browser.run("""
        const at = {bubbles: true, clientX: 90, clientY: 90};
        for (const mark of document.querySelectorAll('#at-the-world .figure path'))
            for (const kind of ['pointermove', 'mousemove', 'mouseover'])
                mark.dispatchEvent(new PointerEvent(kind, at));
    """)
    for number in range(0, len(MORE_HOSTILE), 16):
        name = json.dumps(f"{MORE_HOSTILE[number]}{number}")
        browser.run(f"location.hash = '#' + new URLSearchParams({{agent: {name}}})")
        browser.wait(f"document.getElementById('panel-title').textContent.length > 0 && {name}")
        browser.wait("document.getElementById('agent-all-that-it-did')")
        browser.run("location.hash = '#'")
        browser.wait("!document.getElementById('panel').open")
    assert browser.run("return window.hacked") is None
    foreign = (
        "[...document.querySelectorAll('main script, main iframe, main form[action], main base')]"
    )
    assert browser.run(f"return {foreign}.length") == 0
    assert [line for line in browser.console() if "favicon" not in line] == []


def test_a_world_is_played_by_hand_and_by_key(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps, a changed parameter, a treatment, keeping and reset work as the page says."""
    monkeypatch.chdir(tmp_path)
    playing = Playing({"world": "rumour", "agents": 30, "rounds": 5})
    watching = Watching(Viewer(playing))
    watching.start()
    try:
        browser.visit(watching.url)
        browser.wait("document.body.dataset.played === 'paused 0 0'")
        browser.wait("document.querySelector('#at-the-world .figure path')")
        browser.run("document.getElementById('play-round').click()")
        browser.wait("document.body.dataset.played === 'paused 1 1'")
        wait_for_round(browser, 1)
        browser.run("""
            const field = document.getElementById('play-field-tiring');
            field.value = '0.9';
            field.dispatchEvent(new Event('change'));
        """)
        browser.wait("/tiring=0.9@2/.test(document.getElementById('play-command').textContent)")
        browser.run("document.querySelector('#play-treatments button').click()")
        browser.wait("/warning@2/.test(document.getElementById('play-command').textContent)")
        browser.run(PRESS % "t")
        browser.wait("document.body.dataset.played === 'paused 2 1'")
        browser.run(PRESS % "p")
        browser.wait("/^complete/.test(document.body.dataset.played)")
        browser.run("document.querySelector('#play-keep button').click()")
        browser.wait("/Kept in/.test(document.getElementById('play-kept').textContent)")
        assert (tmp_path / "runs" / "rumour" / "run.json").is_file()

        browser.run("""
            document.getElementById('play-field-seed').value = '7';
            document.getElementById('play-reset').click();
        """)
        browser.wait("/--seed 7/.test(document.getElementById('play-command').textContent)")
        browser.wait("document.getElementById('title').textContent === 'play 2'")
        try:
            browser.be_a_phone(400)
            for scheme in ("dark", "light"):
                browser.prefer(scheme)
                assert browser.run(OVERFLOW) == 0
        finally:
            browser.be_a_phone(0)
        unnamed = "button, input, select, summary, a[href]"
        assert browser.run(UNNAMED, unnamed) == []
        assert browser.console() == []
    finally:
        watching.stop()
