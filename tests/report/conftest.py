"""Fixtures of the report's tests: logs of real runs, what a page holds, and a real browser."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from prism.agents import opening_posts, synthetic_population
from prism.analysis import RunLogs, read_log
from prism.llm import OllamaChatClient
from prism.report import Report, make_report
from prism.runlog import RunLog, SimulatedClock
from prism.social import Simulation
from prism.statechart import AgentState, Reasoner
from prism.testing import FakeOllama, Fault

HOSTILE = (
    "</script><script>window.hacked = 1</script>",
    '<img src=x onerror="window.hacked = 1">',
    "'\"><svg onload='window.hacked = 1'>",
    "]]>--><!--<script>window.hacked = 1",
    "{{ 7 * 7 }}{% raw %}",
    "a\x00b\u2028c\u2029d\u202ee\ud7ff\ufffe",
    "javascript:window.hacked=1",
    "x" * 100_000,
)


@dataclass
class Element:
    """An element of a page with its attributes and all text in it."""

    tag: str
    attributes: dict[str, str | None]
    text: str = ""


@dataclass
class Page(HTMLParser):
    """A page as html.parser reads it."""

    elements: list[Element] = field(default_factory=list)
    _open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def __hash__(self) -> int:
        return id(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self.elements.append(element)
        if tag not in ("meta", "link", "input", "br"):
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        closed = self._open.pop()
        assert closed.tag == tag, f"<{closed.tag}> is closed by </{tag}>"

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def close(self) -> None:
        super().close()
        assert not self._open, "an element is left open"

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """Return the elements with a tag and attributes."""
        return [
            element
            for element in self.elements
            if element.tag == tag
            and all(element.attributes.get(name) == value for name, value in attributes.items())
        ]

    def data(self, name: str) -> Any:
        """Return the JSON that the page holds under an id."""
        (script,) = self.all("script", id=name)
        return json.loads(script.text)


@pytest.fixture
def parse() -> Callable[[str], Page]:
    """Return a function that reads a page, and refuses one with elements left open."""

    def read(html: str) -> Page:
        page = Page()
        page.feed(html)
        page.close()
        return page

    return read


@pytest.fixture
def logs(folder: Path) -> RunLogs:
    """Return the log of the real run."""
    return read_log(folder)


@pytest.fixture(scope="session")
def report(run: tuple[Path, Any]) -> Report:
    """Return the report of the real run."""
    return make_report(read_log(run[0]))


@pytest.fixture(scope="session")
def model_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the log of a run decided by a model server, with quick, slow and bad answers."""
    path = tmp_path_factory.mktemp("model") / "model.jsonl"
    population, clock = synthetic_population(40, seed=5), SimulatedClock()
    with FakeOllama() as server, RunLog(path, clock) as log:
        server.choose = lambda asked: _answer(server, asked.options)
        Simulation(
            population.agents,
            opening_posts(population.agents, seed=5),
            reasoner=Reasoner(
                OllamaChatClient(server.host, "nimble"), fallback=AgentState.SCROLLING, seed=5
            ),
            rounds=3,
            seed=5,
            logger=log.logger,
            clock=clock,
        ).run()
    return path


def _answer(server: FakeOllama, options: Sequence[str]) -> str:
    asked = len(server.questions)
    server.latency = 0.0005 * (asked % 7)
    if asked % 9 == 8:
        server.fail(Fault.body(b"</script><script>window.hacked = 1</script>"))
    return options[asked % len(options)]


@pytest.fixture
def hostile_log(write_log: Callable[..., Path], make: Any) -> Path:
    """Return a log in which every text tries to get out of its place on the page."""
    events = [make.started()]
    for number, text in enumerate(HOSTILE):
        agent, state, post = f"{number}{text}", f"{text}{number}", f"p{number}{text}"
        events += [
            make.joined(agent, state, name=text, archetype=text),
            make.move(agent, state, f"other {text}", trigger=text, ticks_in_state=number % 3),
            make.decision(
                agent,
                [state, text],
                text,
                state=state,
                source="fallback",
                reason=text,
                model=text,
                latency=0.1,
            ),
            make.post(agent, post, text=text),
            make.post(agent, f"answer {post}", post, post, text=text),
            make.like(agent, post, agent),
        ]
    return write_log(events, f"{HOSTILE[1][:8].replace('<', '(')}&'.jsonl")


_PAGES_OF_ITS_OWN = ("chrome://", "chrome-untrusted://")


@dataclass
class Browser:
    """A real browser without a window, and what it tells of a page."""

    driver: Any

    def open(self, html: str, folder: Path) -> None:
        """Show a page from a file, and wait until its figures are drawn."""
        path = folder / "report.html"
        path.write_text(html, encoding="utf-8")
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(path.as_uri())
        self.wait("document.body.dataset.drawn")

    def prefer(self, scheme: str) -> None:
        """Prefer ``light`` or ``dark`` pages."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def be_a_phone(self, width: int) -> None:
        """Show pages as a phone of this width does; 0 ends that."""
        if not width:
            self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
            return

        metrics = {"width": width, "height": 800, "deviceScaleFactor": 2, "mobile": True}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def run(self, script: str) -> Any:
        """Evaluate a script in the page."""
        return self.driver.execute_script(script)

    def wait(self, condition: str) -> None:
        """Wait until something is true in the page."""
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, 60, 0.05).until(
            lambda driver: driver.execute_script(f"return {condition}")
        )

    def console(self) -> list[str]:
        """Return what was written to the console since the page was opened."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return the addresses requested since the page was opened, except the browser's own."""
        messages = [
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        ]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
            and not message["params"]["documentURL"].startswith(_PAGES_OF_ITS_OWN)
        ]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Start a headless Chromium that keeps all that its pages log and ask for."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    found = [shutil.which(name) for name in ("chromium", "chromedriver")]
    assert all(found), "needs a browser: apt-get install chromium chromium-driver"
    options = ChromeOptions()
    options.binary_location = str(found[0])
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    for argument in (
        *(
            "headless=new",
            "no-sandbox",
            "disable-gpu",
            "disable-quic",
            "no-first-run",
            "disable-component-update",
        ),
        *("disable-background-networking", "disable-sync", "window-size=1200,1000"),
        f"user-data-dir={tmp_path_factory.mktemp('browser')}",
    ):
        options.add_argument(f"--{argument}")
    options.add_argument("about:blank")
    driver = Chrome(options=options, service=Service(found[1]))
    try:
        yield Browser(driver)
    finally:
        driver.quit()


@pytest.fixture(scope="session")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run that is drawn by round, with large cascades."""
    folder = tmp_path_factory.mktemp("runs") / "long"
    folder.mkdir()
    population, clock = synthetic_population(150, seed=2), SimulatedClock()
    with RunLog(folder / "events.jsonl", clock) as log:
        posts = opening_posts(population.agents, seed=2)
        Simulation(
            population.agents, posts, rounds=25, seed=2, logger=log.logger, clock=clock
        ).run()
    return folder


@pytest.fixture
def shown(browser: Any, report: Report, tmp_path: Path) -> Any:
    """Return a browser that shows the report of the real run."""
    browser.open(report.html(), tmp_path)
    return browser
