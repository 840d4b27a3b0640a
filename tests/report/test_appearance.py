"""How the page looks in a real browser: dark and light, on a phone, and side by side."""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from prism.report import Report
from prism.report._figures.page_figures import in_dark
from tests.kit.colours import contrast

pytestmark = pytest.mark.slow

PageOf = Callable[..., str]

COLOURS = """
    const colourOf = (element, name) => getComputedStyle(element)[name];
    const paper = colourOf(document.body, "backgroundColor");
    const of = (selector, name) => [...new Set([...document.querySelectorAll(selector)]
        .map(element => colourOf(element, name)))].filter(colour => colour.startsWith("rgb("));
    return {paper,
        texts: of("h1, h2, p, a, td, th, summary, .key li, .soft", "color"),
        drawn_texts: of(".figure svg text, .prism-chart text", "fill"),
        marks: of(".figure [class*=mark-rect] path, .key circle", "fill"),
        lines: of(".figure [class*=mark-line] path, .prism-chart .line", "stroke")};
"""


def as_hex(colour: str) -> str:
    return "#" + "".join(f"{int(part):02x}" for part in re.findall("[0-9]+", colour))


def rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[start : start + 2], 16)) for start in (1, 3, 5))})"


@pytest.fixture
def dark(browser: Any) -> Iterator[Any]:
    """Return a browser of somebody who prefers dark pages."""
    browser.prefer("dark")
    yield browser
    browser.prefer("light")


def test_a_dark_page_can_be_read(
    dark: Any, page_of: PageOf, folder: Path, model_log: Path, tmp_path: Path
) -> None:
    """In dark mode texts have a contrast of 4.5:1, and marks and lines of 3:1, with the page."""
    dark.open(page_of(folder, model_log), tmp_path)
    found = dark.run(COLOURS)
    assert contrast(found["paper"], "#000000") < 1.5
    for kind, least in (("texts", 4.5), ("drawn_texts", 4.5), ("marks", 3.0), ("lines", 3.0)):
        assert found[kind], kind
        for colour in found[kind]:
            assert contrast(colour, found["paper"]) >= least, (kind, colour)
    assert dark.console() == []


def test_texts_of_a_light_page_can_be_read(
    browser: Any, page_of: PageOf, folder: Path, model_log: Path, tmp_path: Path
) -> None:
    """In light mode texts have a contrast of 4.5:1 with the page."""
    browser.open(page_of(folder, model_log), tmp_path)
    found = browser.run(COLOURS)
    for colour in (*found["texts"], *found["drawn_texts"]):
        assert contrast(colour, found["paper"]) >= 4.5, colour


def test_colours_follow_the_preference_at_once(shown: Any) -> None:
    """Figures that are drawn already change their colours with the preference, and change back."""
    light = shown.run(COLOURS)
    shown.prefer("dark")
    changed = shown.run(COLOURS)
    shown.prefer("light")
    assert set(changed["marks"]) == {rgb(in_dark(as_hex(colour))) for colour in light["marks"]}
    assert set(light["drawn_texts"]).isdisjoint(changed["drawn_texts"])
    assert shown.run(COLOURS) == light


def test_a_figure_saved_from_a_dark_page_is_for_paper(
    dark: Any, report: Report, tmp_path: Path
) -> None:
    """A figure is saved in light colours, with its legend, as wide as those of --figures."""
    from selenium.webdriver.common.by import By

    dark.open(report.html(), tmp_path)
    figure = dark.driver.find_element(By.ID, "figure-states-1")
    assert "composing" not in figure.get_attribute("textContent")
    dark.run("""
        const made = URL.createObjectURL;
        URL.createObjectURL = (blob) => { window.saved = blob.text(); return made(blob); };
    """)
    figure.find_element(By.TAG_NAME, "summary").click()
    figure.find_element(By.CSS_SELECTOR, "[download$=svg]").click()
    dark.wait("window.saved !== undefined")
    saved = dark.run("return window.saved")
    assert ">composing<" in saved
    assert "#332288" in saved
    assert 'fill="white"' in saved or "background-color: white" in saved
    width = float(re.search(r'width="([0-9.]+)"', saved)[1])  # type: ignore[index]
    assert width > 760


@pytest.fixture
def many_states(write_log: Callable[..., Path], make: Any) -> Path:
    """Return a log of forty states with long names."""
    names = [f"a state whose number is {number}" for number in range(40)]
    moves = [make.move("ada", *ends) for ends in pairwise(names)]
    return write_log([make.started(), make.joined("ada", names[0]), *moves], "many.jsonl")


@pytest.mark.parametrize("width", [360])
def test_a_legend_can_be_scrolled_on_a_phone(
    browser: Any, page_of: PageOf, folder: Path, many_states: Path, tmp_path: Path, width: int
) -> None:
    """On a phone every name of a legend can be reached, and the legend takes three rows at most."""
    browser.be_a_phone(width)
    try:
        browser.open(page_of(folder, many_states), tmp_path)
        found = browser.run("""
            return [...document.querySelectorAll(".key")].map(legend => {
                legend.scrollLeft = legend.scrollWidth;
                const place = legend.getBoundingClientRect();
                const last = legend.lastElementChild.getBoundingClientRect();
                const rows = new Set([...legend.children].map(item => item.offsetTop)).size;
                return {names: legend.children.length, rows, scrolls: legend.scrollLeft > 0,
                    inside: place.left >= 0 && place.right <= innerWidth,
                    reached: last.right <= place.right + 1, focusable: legend.tabIndex === 0};
            })""")
        assert max(legend["names"] for legend in found) == 48
        for legend in found:
            assert legend["rows"] <= 3
            assert legend["inside"], legend
            assert legend["reached"], legend
            assert legend["focusable"], legend
            assert legend["scrolls"] or legend["names"] < 48
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        browser.be_a_phone(0)


def test_figures_side_by_side_line_up(
    browser: Any, page_of: PageOf, folder: Path, long_run: Path, tmp_path: Path
) -> None:
    """Two figures of one kind have the same axis, the same size, and stand at the same height."""
    browser.open(page_of(folder, long_run), tmp_path)
    both = browser.run("""
        return [1, 2].map(number => {
            const figure = document.getElementById(`figure-states-${number}`);
            const box = figure.querySelector("svg").getBoundingClientRect();
            const labels = [...figure.querySelectorAll(".role-axis-label text")]
                .map(label => label.textContent);
            return {labels, top: box.top, height: box.height, width: Math.round(box.width)};
        })""")
    assert both[0] == both[1]
