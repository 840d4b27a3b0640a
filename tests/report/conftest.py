"""Fixtures of the report's tests: logs of real runs, what a page holds, and a real browser."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.agents import opening_posts, synthetic_population
from prism.analysis import Log, read_log
from prism.llm import OllamaChatClient
from prism.report import Report, make_report
from prism.report._facts.run_facts import RunFacts, facts_of
from prism.runlog import RunLog, SimulatedClock
from prism.social import Feed
from prism.statechart import AgentState, Reasoner
from prism.testing import FakeOllama, Fault


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


def read_page(html: str) -> Page:
    """Read a page, and refuse one with elements left open."""
    page = Page()
    page.feed(html)
    page.close()
    return page


@pytest.fixture
def parse() -> Callable[[str], Page]:
    """Return a function that reads a page, and refuses one with elements left open."""
    return read_page


@pytest.fixture
def logs(folder: Path) -> Log:
    """Return the log of the real run."""
    return read_log(folder)


@pytest.fixture(scope="session")
def report(run: tuple[Path, Any]) -> Report:
    """Return the report of the real run."""
    return make_report(read_log(run[0]))


@pytest.fixture(scope="session")
def html(report: Report) -> str:
    """Return the page of the real run."""
    return report.html()


@pytest.fixture(scope="session")
def page_of() -> Callable[..., str]:
    """Return a function that gives the page of logs, made once for all tests."""
    return cache(lambda *paths: make_report(read_log(*paths)).html())


@pytest.fixture(scope="session")
def page(html: str) -> Page:
    """Return the page of the real run, to read."""
    return read_page(html)


@pytest.fixture(scope="session")
def side_by_side(run: tuple[Path, Any], model_log: Path) -> Report:
    """Return the report of the real run beside that of the model."""
    return make_report(read_log(run[0], model_log))


@pytest.fixture(scope="session")
def both(side_by_side: Report) -> Page:
    """Return the page of the two runs, to read."""
    return read_page(side_by_side.html())


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory, make: Any) -> RunFacts:
    """Return the facts of a run in which an agent joins and nothing happens."""
    path = tmp_path_factory.mktemp("bare") / "events.jsonl"
    path.write_text(json.dumps(make.joined("x")) + "\n")
    return facts_of(read_log(path))[0][0]


@pytest.fixture
def facts(write_log: Callable[..., Path]) -> Callable[..., RunFacts]:
    """Return a function that writes a log and gives its facts, without figures and a page."""
    return lambda lines, *name: facts_of(read_log(write_log(lines, *name)))[0][0]


@pytest.fixture(scope="session")
def model_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the log of a run decided by a model server, with quick, slow and bad answers."""
    path = tmp_path_factory.mktemp("model") / "model.jsonl"
    population, clock = synthetic_population(16, seed=5), SimulatedClock()
    with FakeOllama() as server, RunLog(path, clock) as log:
        server.choose = lambda asked: _answer(server, asked.options)
        Run(
            Feed(first_posts=opening_posts(population.agents, seed=5)),
            population.agents,
            reasoner=Reasoner(
                OllamaChatClient(server.host, "llama3.2"), fallback=AgentState.SCROLLING, seed=5
            ),
            rounds=2,
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


@pytest.fixture(scope="session")
def hostile(hostile_log: Path) -> Report:
    """Return the report of the hostile log."""
    return make_report(read_log(hostile_log))


@pytest.fixture(scope="session")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run that is drawn by round, with large cascades."""
    folder = tmp_path_factory.mktemp("runs") / "long"
    folder.mkdir()
    population, clock = synthetic_population(150, seed=2), SimulatedClock()
    with RunLog(folder / "events.jsonl", clock) as log:
        posts = opening_posts(population.agents, seed=2)
        Run(
            Feed(first_posts=posts),
            population.agents,
            rounds=25,
            seed=2,
            logger=log.logger,
            clock=clock,
        ).run()
    return folder


@pytest.fixture
def shown(browser: Any, report: Report, tmp_path: Path) -> Any:
    """Return a browser that shows the report of the real run."""
    browser.open(report.html(), tmp_path)
    return browser
