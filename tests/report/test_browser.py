"""The page in a real browser: drawn, silent, offline, dark and light, and on a phone."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.logs import AGENTS


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, ``#rrggbb`` or ``rgb(r, g, b)`` (WCAG 2.2)."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    if colour.startswith("#"):
        parts = [int(colour[start : start + 2], 16) for start in (1, 3, 5)]
    else:
        parts = [int(part) for part in re.findall(r"[0-9]+", colour)[:3]]

    linear = [_linear(part / 255) for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)


pytestmark = pytest.mark.slow

HtmlOf = Callable[[Path], str]

MARKS = """
    return Object.fromEntries([...document.querySelectorAll(".figure")].map(figure =>
        [figure.id.replace("figure-", ""),
         figure.querySelectorAll("svg [class*=mark-] path").length]));
"""
COLOURS = """
    const paper = getComputedStyle(document.body).backgroundColor;
    const of = (selector, name) => [...new Set([...document.querySelectorAll(selector)]
        .map(element => getComputedStyle(element)[name]))].filter(each => each.startsWith("rgb("));
    return {paper,
        texts: of("h1, h2, p, a, td, th, summary, .soft", "color"),
        drawn: of(".figure svg text, .prism-chart text", "fill"),
        marks: of("#figure-states [class*=mark-rect] path", "fill")};
"""
ROWS = "return [...document.querySelectorAll('#table-agents tbody tr')].filter(row => !row.hidden)"


@pytest.fixture(params=["light", "dark"])
def scheme(browser: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    """Prefer light or dark pages."""
    browser.prefer(request.param)
    yield request.param
    browser.prefer("light")


def test_figures_are_drawn_without_errors_or_requests(
    browser: Any, html_of: HtmlOf, folder: Path, model_log: Path, tmp_path: Path
) -> None:
    """Every figure has marks, the console stays empty, and only the file is requested."""
    for path in (folder, model_log):
        browser.open(html_of(path), tmp_path)
        marks = browser.run(MARKS)
        assert len(marks) == 4
        assert all(marks.values()), marks
        assert browser.console() == []
        assert [
            url for url in browser.requests() if not url.startswith(("file:", "data:", "blob:"))
        ] == []


def test_a_figure_that_fails_says_so_on_the_page(browser: Any, html: str, tmp_path: Path) -> None:
    """A figure that cannot be read says so; the others are drawn."""
    begin = html.index('<script type="application/json" id="figures">')
    start, end = html.index("{", begin), html.index("</script>", begin)
    data = json.loads(html[start:end])
    data["states"]["transform"] = [{"calculate": "datum.(", "as": "broken"}]
    browser.open(f"{html[:start]}{json.dumps(data)}{html[end:]}", tmp_path)
    text = browser.run("return document.getElementById('figure-states').textContent")
    assert text.startswith("This figure could not be drawn: ")
    counts = browser.run("return {...document.body.dataset}")
    assert counts == {"drawn": str(len(data) - 1), "failed": "1"}


def test_texts_can_be_read(
    browser: Any, html_of: HtmlOf, model_log: Path, tmp_path: Path, scheme: str
) -> None:
    """Texts have a contrast of 4.5:1 with the page, and on a dark page marks one of 3:1."""
    browser.open(html_of(model_log), tmp_path)
    colours = browser.run(COLOURS)
    assert colours["marks"]
    for colour in (*colours["texts"], *colours["drawn"]):
        assert contrast(colour, colours["paper"]) >= 4.5, colour
    for colour in colours["marks"] if scheme == "dark" else ():
        assert contrast(colour, colours["paper"]) >= 3, colour


@pytest.mark.parametrize("scheme", ["dark"], indirect=True)
def test_a_figure_saved_from_a_dark_page_is_for_paper(scheme: str, browser_page: Any) -> None:
    """The menu offers SVG and PNG, and saves the figure in light colours with its legend."""
    from selenium.webdriver.common.by import By

    figure = browser_page.driver.find_element(By.ID, "figure-states")
    links = figure.find_elements(By.CSS_SELECTOR, ".vega-actions a")
    names = [link.get_attribute("textContent") for link in links]
    assert names == ["Save as SVG", "Save as PNG"]
    browser_page.run("""
        const made = URL.createObjectURL;
        URL.createObjectURL = (blob) => { window.saved = blob.text(); return made(blob); };
    """)
    figure.find_element(By.TAG_NAME, "summary").click()
    figure.find_element(By.CSS_SELECTOR, "[download='states.svg']").click()
    browser_page.wait("window.saved !== undefined")
    saved = browser_page.run("return window.saved")
    assert ">composing<" in saved
    assert "#332288" in saved
    assert "#0d1117" not in saved


def test_the_table_of_agents_is_searched_and_sorted(browser_page: Any) -> None:
    """A search keeps the agents that match all its words; headings sort, numbers falling."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    box = browser_page.driver.find_element(By.CSS_SELECTOR, "#agents input")
    assert len(browser_page.run(ROWS)) == AGENTS
    box.send_keys("AGENT_000")
    assert len(browser_page.run(ROWS)) == 9
    assert browser_page.driver.find_element(By.CSS_SELECTOR, "#agents [role=status]").text == (
        f"9 of {AGENTS}"
    )
    box.send_keys(" nobody")
    assert len(browser_page.run(ROWS)) == 0
    box.clear()
    box.send_keys(" ")
    heads = browser_page.driver.find_elements(By.CSS_SELECTOR, "#table-agents th")
    place = next(n for n, head in enumerate(heads) if head.text.startswith("likes"))
    values = f"{ROWS}.map(row => Number(row.cells[{place}].dataset.value))"
    heads[place].find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    falling = browser_page.run(values)
    assert falling == sorted(falling, reverse=True)
    assert heads[place].get_attribute("aria-sort") == "descending"
    heads[place].find_element(By.TAG_NAME, "button").send_keys(Keys.SPACE)
    assert browser_page.run(values) == falling[::-1]


@pytest.mark.parametrize("width", [1400, 390])
def test_the_page_fits_the_window(
    browser: Any, html_of: HtmlOf, model_log: Path, tmp_path: Path, width: int
) -> None:
    """On a screen and on a phone nothing overflows the page, and figures fit their places."""
    browser.be_a_phone(width)
    try:
        browser.open(html_of(model_log), tmp_path)
        page = "document.documentElement"
        assert browser.run(f"return {page}.scrollWidth <= {page}.clientWidth")
        wide = (
            "return [...document.querySelectorAll('.figure')]"
            ".filter(each => each.scrollWidth > each.clientWidth + 1).map(each => each.id)"
        )
        assert browser.run(wide) == []
    finally:
        browser.be_a_phone(0)


def test_no_text_of_a_log_is_run_as_code(
    browser: Any, html_of: HtmlOf, hostile_log: Path, tmp_path: Path
) -> None:
    """Texts that try to be code are shown as they are, searched and sorted."""
    from selenium.webdriver.common.by import By

    browser.open(html_of(hostile_log), tmp_path)
    browser.driver.find_element(By.CSS_SELECTOR, "#agents input").send_keys("<")
    for button in browser.driver.find_elements(By.CSS_SELECTOR, "#table-agents button"):
        button.click()
    browser.run("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    assert browser.run("return window.hacked") is None
    assert browser.run("return document.querySelectorAll('img, iframe, object').length") == 0
    assert browser.console() == []
    assert "</script><script>window.hacked = 1</script>" in browser.run(
        "return document.body.innerText"
    )
