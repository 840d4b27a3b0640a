"""The page in a real browser: drawn, silent, offline, and with the numbers of the analysis."""

import json
from collections.abc import Callable, Sequence
from math import isclose
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from prism.analysis import Log, read_log
from prism.report import Report, make_report
from prism.statechart import AgentState
from tests.kit.logs import AGENTS
from tests.kit.tables import (
    agents,
    cascades,
    decisions,
    dwell_times,
    state_counts,
    transition_counts,
)

pytestmark = pytest.mark.slow

PageOf = Callable[..., str]

UNSEEN = "at_risk"
DEFINED = [state.value for state in AgentState]

CELLS = """
    const textOf = (cell) => cell.dataset.value ?? cell.textContent;
    const rowsOf = (table) => [...table.rows].map(row => [...row.cells].map(textOf));
    return Object.fromEntries([...document.querySelectorAll("table[id]")]
        .map(table => [table.id.replace("table-", ""), rowsOf(table)]));
"""
MARKS = """
    return Object.fromEntries([...document.querySelectorAll(".figure")]
        .map(figure => [figure.id.replace("figure-", ""),
        figure.querySelectorAll("svg [class*=mark-] path, svg .mark-text text").length]));
"""


def written(value: object) -> str:
    """Return a value of a table as a cell has it."""
    if value is None:
        return ""
    return repr(value) if isinstance(value, (int, float)) else str(value)


def rows_of(table: pl.DataFrame, columns: Sequence[str]) -> list[list[str]]:
    """Return rows as cells have them."""
    return [[written(value) for value in row] for row in table.select(columns).iter_rows()]


def assert_tables(found: dict[str, list[list[str]]], logs: Log, suffix: str) -> None:
    """Compare every cell of a run's tables with the analysis of its log."""
    decided = decisions(logs)
    tables = {
        "transitions": (transition_counts(logs), None),
        "dwell": (dwell_times(logs).drop(UNSEEN), None),
        "cascades": (cascades(logs).filter(pl.col("size") > 1), 20),
        "decisions": (decided, None),
    }
    columns = {
        "cascades": [
            *(
                "root_id",
                "author_id",
                "size",
                "depth",
                "breadth",
                "virality",
                "agents",
                "lifetime_ticks",
                "text",
            ),
        ],
        "decisions": [
            name
            for name in decided.columns
            if decided[name].null_count() == 0
            and not (name.startswith("from_") and decided[name].sum() == 0)
        ],
    }
    for name, (table, most) in tables.items():
        shown = found[f"{name}-{suffix}"][1:]
        wanted = rows_of(table.head(most or table.height), columns.get(name, table.columns))
        # Tables of states are in the order of their definition, and otherwise in that of analysis.
        by_state = name in ("transitions", "dwell", "decisions")
        assert (sorted(shown) if by_state else shown) == (sorted(wanted) if by_state else wanted)
        if by_state:
            firsts = list(dict.fromkeys(row[0] for row in shown))
            assert firsts == [state for state in DEFINED if state in firsts], name


def numbers_of(logs: Log) -> dict[str, object]:
    """Compute the key numbers from the tables of the analysis."""
    acts, asked = agents(logs), decisions(logs)
    spread = cascades(logs).filter(pl.col("size") > 1)
    return {
        "agents": acts.height,
        "rounds": logs.runs[0].rounds,
        "ticks a round": logs.runs[0].ticks_per_round,
        "seed": logs.runs[0].seed,
        "transitions": transition_counts(logs)["count"].sum(),
        "time-outs": transition_counts(logs).filter(trigger="timeout")["count"].sum(),
        "decisions asked": asked["asked"].sum(),
        "share of fallbacks": asked["from_fallback"].sum() / asked["asked"].sum(),
        **{name: acts[name].sum() for name in ("posts", "replies", "reshares", "likes")},
        "cascades of two posts or more": spread.height,
        "largest cascade, posts": spread["size"].max(),
        "deepest cascade, steps": spread["depth"].max(),
    }


def data_of(browser: Any, figure: str) -> list[dict[str, Any]]:
    """Return the longest table that a figure on the page is drawn from."""
    datasets = browser.run(
        "return JSON.parse(document.getElementById('figures').textContent)"
        f"['figure-{figure}'].datasets"
    )
    found: list[dict[str, Any]] = max(datasets.values(), key=len)
    return found


def test_figures_are_drawn_without_errors_or_requests(
    browser: Any, page_of: PageOf, folder: Path, long_run: Path, model_log: Path, tmp_path: Path
) -> None:
    """Every figure has marks, the console stays empty, and only the file is requested."""
    for paths in ((long_run,), (folder, long_run, model_log)):
        browser.open(page_of(*paths), tmp_path)
        marks = browser.run(MARKS)
        assert len(marks) >= 7 * len(paths)
        assert all(count > 3 for count in marks.values()), marks
        assert browser.console() == []
        assert [
            url for url in browser.requests() if not url.startswith(("file:", "data:", "blob:"))
        ] == []
        assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize("formula", ["datum.(", "datum.nothing.at.all"])
def test_a_figure_that_fails_says_so_on_the_page(
    formula: str, browser: Any, report: Report, tmp_path: Path
) -> None:
    """A figure that cannot be read, or fails while it is drawn, says so; the others are drawn."""
    html = report.html()
    begin = html.index('<script type="application/json" id="figures">')
    start, end = html.index("{", begin), html.index("</script>", begin)
    figures = json.loads(html[start:end])
    figures["figure-states-1"]["transform"] = [{"calculate": formula, "as": "broken"}]

    browser.open(f"{html[:start]}{json.dumps(figures)}{html[end:]}", tmp_path)
    said = "document.getElementById('figure-states-1').textContent"
    assert browser.run(f"return {said}").startswith("This figure could not be drawn: ")
    counts = browser.run("return {...document.body.dataset}")
    assert counts == {"drawn": str(len(figures) - 1), "failed": "1"}
    assert browser.console() != []


@pytest.mark.parametrize("which", ["long_run", "model_log"])
def test_numbers_equal_those_of_the_analysis(
    browser: Any, page_of: PageOf, tmp_path: Path, request: pytest.FixtureRequest, which: str
) -> None:
    """Every cell of every table and every key number is that of prism.analysis."""
    path = request.getfixturevalue(which)
    logs = read_log(path)
    browser.open(page_of(path), tmp_path)
    tables = browser.run(CELLS)
    assert_tables(tables, logs, "1")
    assert tables["numbers"][1:] == [
        [name, written(value)] for name, value in numbers_of(logs).items()
    ]
    if "reasons-1" in tables:
        reasons = (
            decisions(logs, by=["reason"])
            .drop_nulls("reason")
            .sort("asked", "reason", descending=[True, False])
        )
        assert [row[1] for row in tables["reasons-1"][1:]] == [
            written(count) for count in reasons["asked"]
        ]


def test_numbers_of_two_runs_equal_those_of_the_analysis(
    browser: Any, page_of: PageOf, folder: Path, model_log: Path, tmp_path: Path
) -> None:
    """Side by side, each run has the tables of its own log, and the differences are right."""
    browser.open(page_of(folder, model_log), tmp_path)
    tables = browser.run(CELLS)
    both = [numbers_of(read_log(path)) for path in (folder, model_log)]
    for number, path in enumerate((folder, model_log), start=1):
        assert_tables(tables, read_log(path), str(number))
    for name, one, other, difference in tables["numbers"][1:]:
        values = [numbers[name] for numbers in both]
        assert [one, other] == [written(value) for value in values]
        assert name == "seed" or isclose(float(difference), values[1] - values[0])


def test_figures_have_the_data_of_the_analysis(
    browser: Any, page_of: PageOf, long_run: Path, folder: Path, tmp_path: Path
) -> None:
    """The figures have the tables of the analysis: ticks, means, shares, sizes, depths."""
    logs = read_log(folder)
    browser.open(page_of(folder), tmp_path)
    drawn = {(row["when"], row["state"]): row["agents"] for row in data_of(browser, "states-1")}
    counted = state_counts(logs).filter(pl.col("agents") > 0)
    assert drawn == {
        (f"round {row['round']}, tick {row['tick']}", row["state"]): row["agents"]
        for row in counted.iter_rows(named=True)
    }
    assert browser.run(MARKS)["states-1"] >= counted.height
    chosen = decisions(logs, by=["round", "chosen"]).select(
        pl.format("round {}", "round"), "chosen", "asked"
    )
    found = [(row["when"], row["chosen"], row["asked"]) for row in data_of(browser, "choices-1")]
    assert sorted(found) == sorted(chosen.rows())
    means = decisions(logs, by=["round"])
    assert [
        (row["round"], row["entropy"]) for row in data_of(browser, "entropy-1")
    ] == means.select("round", "entropy").rows()

    logs = read_log(long_run)
    browser.open(page_of(long_run), tmp_path)
    means = state_counts(logs).group_by("round", "state").agg(pl.col("agents").mean())
    wanted = {(f"round {row[0]}", row[1]): row[2] for row in means.iter_rows() if row[2]}
    drawn = {(row["when"], row["state"]): row["agents"] for row in data_of(browser, "states-1")}
    assert drawn.keys() == wanted.keys()
    assert all(isclose(drawn[key], wanted[key]) for key in wanted)
    sizes = cascades(logs)["size"]
    for row in data_of(browser, "cascades-1"):
        assert row["cascades"] == (sizes >= row["size"]).sum()
    shapes = cascades(logs).filter(pl.col("size") > 1).group_by("size", "depth").len().rows()
    assert sorted(
        (row["size"], row["depth"], row["cascades"]) for row in data_of(browser, "shapes-1")
    ) == sorted(shapes)


def test_the_table_of_agents_can_be_searched(shown: Any, folder: Path) -> None:
    """A search keeps the agents that match all its words, and says how many they are."""
    from selenium.webdriver.common.by import By

    box = shown.driver.find_element(By.ID, "search")
    assert len(shown.run(CELLS)["agents"]) == 1 + AGENTS
    box.send_keys("AGENT_000")
    assert [row[0] for row in shown.run(CELLS)["agents"][1:]] == [
        f"agent_000{number}" for number in range(1, 10)
    ]
    said = shown.run("return document.getElementById('matches').textContent")
    assert f"9 of {AGENTS} agents" in said
    box.send_keys(" lurker")
    lurkers = [row for row in shown.run(CELLS)["agents"][1:] if "lurker" in row]
    assert len(shown.run(CELLS)["agents"]) == 1 + len(lurkers)
    box.send_keys(" nobody")
    assert len(shown.run(CELLS)["agents"]) == 1


def test_the_table_of_agents_can_be_sorted_by_keyboard(shown: Any, folder: Path) -> None:
    """Each heading is reached by keyboard; numbers sort as numbers, falling, then rising."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    heads = shown.driver.find_elements(By.CSS_SELECTOR, ".agents th")
    likes = next(place for place, head in enumerate(heads) if head.text == "likes")
    wanted = sorted(agents(read_log(folder))["likes"].to_list(), reverse=True)
    button = heads[likes].find_element(By.TAG_NAME, "button")
    shown.run("document.getElementById('search').focus()")
    for _ in range(2 + likes):
        shown.driver.switch_to.active_element.send_keys(Keys.TAB)
    assert shown.driver.switch_to.active_element == button
    button.send_keys(Keys.ENTER)
    assert [int(row[likes].replace(",", "")) for row in shown.run(CELLS)["agents"][1:]] == wanted
    assert heads[likes].get_attribute("aria-sort") == "descending"
    button.send_keys(Keys.SPACE)
    assert [int(row[likes].replace(",", "")) for row in shown.run(CELLS)["agents"][1:]] == wanted[
        ::-1
    ]
    heads[0].find_element(By.TAG_NAME, "button").click()
    assert heads[likes].get_attribute("aria-sort") is None
    names = [row[0] for row in shown.run(CELLS)["agents"][1:]]
    assert names == sorted(names)


def test_figures_can_be_saved_from_the_page(shown: Any) -> None:
    """Each figure's menu offers SVG and PNG, nothing that needs a network, and saves a picture."""
    from selenium.webdriver.common.by import By

    for figure in shown.driver.find_elements(By.CSS_SELECTOR, ".figure"):
        links = figure.find_elements(By.CSS_SELECTOR, ".vega-actions a")
        assert [link.get_attribute("textContent") for link in links] == [
            "Save as SVG",
            "Save as PNG",
        ]
    figure = shown.driver.find_element(By.ID, "figure-states-1")
    figure.find_element(By.TAG_NAME, "summary").click()
    for link, kind in zip(
        figure.find_elements(By.CSS_SELECTOR, ".vega-actions a"), ("svg", "png"), strict=True
    ):
        assert link.get_attribute("download") == f"states-1.{kind}"
        link.click()
        shown.wait(
            f"document.querySelector('#figure-states-1 [download$={kind}]')"
            f".href.match(/^(data:image.{kind}|blob:)/)"
        )
    assert shown.console() == []


def test_pointing_at_a_figure_shows_its_numbers(shown: Any, folder: Path) -> None:
    """The bar under the pointer shows its state, its moment, and its agents."""
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    bar = shown.driver.find_element(By.CSS_SELECTOR, "#figure-states-1 .mark-rect path")
    shown.run("document.getElementById('figure-states-1').scrollIntoView({block: 'center'})")
    ActionChains(shown.driver).move_to_element(bar).perform()
    shown.wait("document.querySelector('#vg-tooltip-element.visible')")
    text = shown.run("return document.getElementById('vg-tooltip-element').textContent")
    assert "round 1, tick 1" in text
    counted = state_counts(read_log(folder)).filter(pl.col("agents") > 0, round=1, tick=1)
    assert any(
        f"state{row['state']}agents{row['agents']}share" in text
        for row in counted.iter_rows(named=True)
    )


@pytest.mark.parametrize("width", [1400, 400])
def test_the_page_fits_the_window(
    browser: Any, page_of: PageOf, folder: Path, model_log: Path, tmp_path: Path, width: int
) -> None:
    """In wide and narrow windows nothing overflows the page, or its place without scrolling."""
    browser.driver.set_window_size(width, 900)
    try:
        for paths in ((folder, model_log),):
            browser.open(page_of(*paths), tmp_path)
            assert browser.run(
                "const page = document.documentElement; return page.scrollWidth <= page.clientWidth"
            )
            stretched = browser.run(
                "return [...document.querySelectorAll('.figure')]"
                ".every(figure => figure.scrollWidth <= figure.clientWidth + 1)"
            )
            assert stretched
            # what scrolls sideways fades at its end, and nothing else does
            boxes = browser.run(
                "return [...document.querySelectorAll('.scroll, .tall')]"
                ".filter(box => !box.closest('details:not([open])'))"
                ".map(box => [box.scrollWidth > box.clientWidth + 2, box.matches('.more')])"
            )
            assert [each for each in boxes if each[0] != each[1]] == []
    finally:
        browser.driver.set_window_size(1200, 1000)


def test_no_text_of_a_log_is_run_as_code(
    browser: Any, page_of: PageOf, hostile_log: Path, folder: Path, tmp_path: Path
) -> None:
    """Texts that try to be code are shown as they are, pointed at, searched and sorted."""
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    browser.open(page_of(hostile_log, folder), tmp_path)
    browser.driver.find_element(By.ID, "search").send_keys("<")
    for button in browser.driver.find_elements(By.CSS_SELECTOR, ".agents button"):
        button.click()
    browser.run("document.getElementById('figure-states-1').scrollIntoView({block: 'center'})")
    for bar in browser.driver.find_elements(By.CSS_SELECTOR, "#figure-states-1 .mark-rect path")[
        :6
    ]:
        ActionChains(browser.driver).move_to_element(bar).perform()
    browser.run("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    assert browser.run("return window.hacked") is None
    assert browser.run("return document.querySelectorAll('img, iframe, object').length") == 0
    assert browser.console() == []
    shown = browser.run("return document.body.innerText")
    assert "</script><script>window.hacked = 1</script>" in shown


def test_a_very_large_table_is_searched_quickly(
    browser: Any, report: Report, tmp_path: Path, make: Any, write_log: Callable[..., Path]
) -> None:
    """Of tens of thousands of agents some are shown, and a search finds any of them."""
    from selenium.webdriver.common.by import By

    log = write_log(
        [
            make.started(),
            *(make.joined(f"agent_{number:05}", state="idle") for number in range(30_000)),
        ]
    )
    browser.open(make_report(read_log(log)).html(), tmp_path)
    assert len(browser.run(CELLS)["agents"]) == 1 + 200
    assert "the first 200 of 30,000" in browser.run(
        "return document.getElementById('matches').textContent"
    )
    browser.driver.find_element(By.ID, "search").send_keys("29999")
    assert [row[0] for row in browser.run(CELLS)["agents"][1:]] == ["agent_29999"]
