"""Fixtures of the report's tests: logs of real runs, what a page holds, and a real browser."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from prism.analysis import read_log
from prism.report import Page as Report
from prism.report import make_report


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

    def figures(self) -> dict[str, Any]:
        """Return the figures of the page by name."""
        (script,) = self.all("script", id="figures")
        figures: dict[str, Any] = json.loads(script.text)
        return {
            name: _with_rows(figure, figure.get("datasets", {})) for name, figure in figures.items()
        }

    def rows(self, name: str) -> list[list[str]]:
        """Return the cells of a table, with numbers in full."""
        begin = self.elements.index(self.all("table", id=f"table-{name}")[0])
        rows: list[list[str]] = []
        for element in self.elements[begin + 1 :]:
            if element.tag == "table":
                break
            if element.tag == "tr":
                rows.append([])
            elif element.tag in ("td", "th"):
                rows[-1].append(element.attributes.get("data-value") or element.text)
        return rows


def _with_rows(part: Any, datasets: dict[str, Any]) -> Any:
    """Return a figure whose parts have their rows themselves."""
    if isinstance(part, list):
        return [_with_rows(each, datasets) for each in part]
    if not isinstance(part, dict):
        return part
    if part.keys() == {"name"} and part["name"] in datasets:
        return {"values": datasets[part["name"]]}
    return {key: _with_rows(each, datasets) for key, each in part.items() if key != "datasets"}


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
    """Return a function that gives the page of a log, made once for all tests."""
    return cache(lambda path: make_report(read_log(path)).html())


@pytest.fixture(scope="session")
def page(html: str) -> Page:
    """Return the page of the real run, to read."""
    return read_page(html)


@pytest.fixture(scope="session")
def hostile(hostile_log: Path) -> Report:
    """Return the report of the hostile log."""
    return make_report(read_log(hostile_log))


@pytest.fixture
def shown(browser: Any, report: Report, tmp_path: Path) -> Any:
    """Return a browser that shows the report of the real run."""
    browser.open(report.html(), tmp_path)
    return browser
