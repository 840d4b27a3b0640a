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
from prism.report import make_report
from tests.kit.logs import WriteLog


@dataclass
class Element:
    """An element of a page with its attributes and all text in it."""

    tag: str
    attributes: dict[str, str | None]
    text: str = ""


@dataclass
class Page(HTMLParser):
    """A page as html.parser reads it, none of whose elements is left open."""

    html: str
    elements: list[Element] = field(default_factory=list)
    _open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.feed(self.html)
        self.close()
        assert not self._open, "an element is left open"

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

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """Return the elements with a tag and attributes."""
        wanted = attributes.items()
        return [
            each for each in self.elements if each.tag == tag and wanted <= each.attributes.items()
        ]

    def figures(self) -> dict[str, Any]:
        """Return the figures of the page by name."""
        (script,) = self.all("script", id="figures")
        return {
            name: _with_rows(figure, figure.get("datasets", {}))
            for name, figure in json.loads(script.text).items()
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


@pytest.fixture(scope="session")
def html_of() -> Callable[[Path], str]:
    """Return a function that gives the page of a log, made once for all tests."""
    return cache(lambda path: make_report(read_log(path)).html())


@pytest.fixture
def page_of(write_log: WriteLog) -> Callable[..., Page]:
    """Return a function that reads the page of a log, or of some events."""

    def page_of(log: Any) -> Page:
        path = log if isinstance(log, Path) else write_log(log)
        return Page(make_report(read_log(path)).html())

    return page_of


@pytest.fixture
def html(html_of: Callable[[Path], str], folder: Path) -> str:
    """Return the page of the real run."""
    return html_of(folder)


@pytest.fixture
def page(html: str) -> Page:
    """Return the page of the real run, to read."""
    return Page(html)


@pytest.fixture
def browser_page(browser: Any, html: str, tmp_path: Path) -> Any:
    """Return a browser that shows the report of the real run."""
    browser.open(html, tmp_path)
    return browser
