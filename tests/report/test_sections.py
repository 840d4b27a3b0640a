"""Pages of sections, and the picture of a world in one: cells, positions, networks, looks."""

from collections.abc import Callable
from itertools import pairwise
from math import dist
from pathlib import Path
from typing import Any

import altair as alt
import pytest

from prism.errors import InputError
from prism.examples import Meadow
from prism.report import FigureFormat, Page, Section
from prism.worlds import World
from tests.kit.logs import events_in
from tests.kit.pictured import Chain, Looked, Row, Sky, Street
from tests.kit.worlds import run_logged

ROWS = [
    {"name": "</script b>", "share": 0.25, "count": 1234},
    {"name": "toString", "share": None, "count": 2},
]


def lines() -> alt.Chart:
    """Return a figure without colours and width, which the page sets."""
    data = alt.InlineData(values=ROWS)
    return alt.Chart(data).mark_bar().encode(alt.X("count:Q"), alt.Y("name:N"))


@pytest.fixture
def page() -> Page:
    """Return a page of a figure, a drawing and a table."""
    drawing = '<svg xmlns="http://www.w3.org/2000/svg"><text>drawn</text></svg>'
    parts = [
        Section("What we saw", "Read it so.", {"lines": lines(), "drawing": drawing}, ROWS, most=1),
        Section("Nothing"),
    ]
    return Page("A & B", parts, subtitle="2 runs", notes=["a note"], sources=["here"])


def test_a_page_has_its_sections_and_the_rows_of_their_tables(page: Page) -> None:
    """Texts are escaped, numbers exact in an attribute, and empty sections left out."""
    html = page.html()
    assert "<h1>A &amp; B</h1>" in html
    assert html.count("<h2 ") == 1
    assert '<a href="#what-we-saw">What we saw</a>' in html
    cells = '<td class="">&lt;/script b&gt;</td><td class="number" data-value="0.25">25.0%</td>'
    assert cells in html
    assert "</script b" not in html
    assert '<td class="number" data-value="1234">1,234</td>' in html
    assert "1 of 2 are shown." in html
    assert "<li>a note</li>" in html


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_figures_are_files(page: Page, tmp_path: Path, kind: FigureFormat) -> None:
    """Each figure is a file of its name, also with names that Vega would take for its own."""
    begins = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}[kind]
    paths = page.save_figures(tmp_path / "figures", kind)
    assert [path.name for path in paths] == [f"lines.{kind}", f"drawing.{kind}"]
    assert all(path.read_bytes().startswith(begins) for path in paths)


def test_a_figure_that_cannot_be_drawn_is_named(tmp_path: Path) -> None:
    """The message has the name of the figure."""
    broken = lines().transform_calculate(wrong="datum.(")
    with pytest.raises(InputError, match="the figure broken cannot be drawn"):
        Page("A", [Section("B", figures={"broken": broken})]).save_figures(tmp_path)


PageOf = Callable[..., Any]


def log_of(folder: Path, world: World[Any], agents: int = 6) -> Path:
    """Run a world, and return its log."""
    path = folder / "run" / "events.jsonl"
    path.parent.mkdir()
    path.write_bytes(run_logged(folder, world, agents).log)
    return path


@pytest.fixture
def marks(page_of: PageOf) -> Callable[[Path], list[dict[str, Any]]]:
    """Return a function that gives the rows that a log's picture draws as agents."""
    return lambda log: page_of(log).figures()["picture"]["layer"][-1]["data"]["values"]


@pytest.mark.parametrize("world", [Street, Sky, Chain, Looked])
@pytest.mark.sampled(5)
def test_every_agent_that_is_somewhere_is_drawn_in_its_state(
    tmp_path: Path, world: type[World[Any]], marks: Any
) -> None:
    """The last round is drawn, with ids and states to point at."""
    rows = marks(log_of(tmp_path, world()))
    assert len(rows) == (5 if world is Street else 6)
    assert {row["state"] for row in rows} <= {"on", "off"}
    assert rows[0]["agent"] == "lamp_1"
    if world is Street:
        # a cell's number says its column and its row, from above
        assert [(row["x"], row["y"]) for row in rows] == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]


@pytest.mark.slow
def test_whoever_is_born_is_drawn_and_whoever_died_is_not(tmp_path: Path, marks: Any) -> None:
    """The last picture has the agents that there are at the end, by their own ids."""
    log = log_of(tmp_path, Meadow(), agents=20)
    events = events_in(log)
    joined = {each["agent_id"] for each in events if each["event"] == "agent.joined"}
    left = {each["agent_id"] for each in events if each["event"] == "agent.left"}
    assert len(joined) > 20
    assert {row["agent"] for row in marks(log)} == joined - left


def test_a_look_is_drawn_and_a_group_keeps_its_colour(tmp_path: Path, page_of: PageOf) -> None:
    """A colour is itself; a group has the place of its first appearance in the run."""
    path = log_of(tmp_path, Looked())
    with path.open("ab") as log:
        lines = [line for line in path.read_bytes().splitlines(True) if b"pictured" in line]
        log.write(lines[-1].replace(b'"others"', b'"a newcomer"'))
    figure = page_of(path).figures()["picture"]["layer"][-1]
    rows = figure["data"]["values"]
    assert [row["colour"] for row in rows[:2]] == ["#cc0000", "a newcomer"]
    scale = figure["encoding"]["color"]["scale"]
    assert scale["domain"][-3:] == ["others", "a newcomer", "#cc0000"]
    assert scale["range"][-1] == "#cc0000"


@pytest.mark.parametrize(
    ("world", "good", "wrong"),
    [
        (Row, b"", b""),
        (Sky, b'"agent_states":[0', b'"agent_states":[9'),
        (Sky, b'"places":[[', b'"places":[[1],['),
        (Sky, b'"agent_ids":[', b'"agent_ids":["more",'),
    ],
)
@pytest.mark.sampled(4)
def test_what_is_no_picture_is_left_out(
    tmp_path: Path, world: type[World[Any]], good: bytes, wrong: bytes, page_of: PageOf
) -> None:
    """A world without a picture, or with a damaged one, breaks no report."""
    path = log_of(tmp_path, world())
    path.write_bytes(path.read_bytes().replace(good, wrong))
    assert "The world" not in page_of(path).html


@pytest.mark.slow
def test_a_network_is_laid_out_in_one_way_with_neighbours_near(tmp_path: Path, marks: Any) -> None:
    """Agents of a chain lie in their order, nobody on top of another, and always in one way."""
    rows = marks(log_of(tmp_path, Chain()))
    points = [(row["x"], row["y"]) for row in rows]
    steps = [dist(one, other) for one, other in pairwise(points)]
    assert max(steps) < max(dist(one, other) for one in points for other in points) * 0.75
    assert min(dist(a, b) for n, a in enumerate(points) for b in points[:n]) > 0.1
    assert marks(tmp_path / "run" / "events.jsonl") == rows
