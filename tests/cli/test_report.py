"""``prism report``."""

import runpy
from pathlib import Path

import pytest

from prism import Run
from prism.agents import opening_posts, synthetic_population
from prism.runlog import RunLog, SimulatedClock
from prism.social import Feed
from tests.kit.commands import Prism

DOORS = """
from prism.agents import StatechartMixin
from prism.runlog import RunLog, SimulatedClock
from prism.statechart import Statechart, Transition, state_enum

Door = state_enum("Door", ["open", "shut"])


def is_loose(door, context):
    return False


def make(logger=None):
    moves = [
        Transition("push", Door("open"), Door("shut")),
        Transition("pull", Door("shut"), Door("open"), guard=is_loose),
    ]
    return Statechart(Door, moves, Door("open"), name="doors", logger=logger)


chart = make()


class Gate(StatechartMixin):
    state_type = Door
    agent_id = "gate"


def run(path):
    with RunLog(path, SimulatedClock()) as log:
        make(log.logger).fire(Gate(), "push")
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the log of a small run."""
    path = tmp_path_factory.mktemp("run") / "events.jsonl"
    population, clock = synthetic_population(20, seed=1), SimulatedClock()
    with RunLog(path, clock) as log:
        posts = opening_posts(population.agents, seed=1)
        Run(
            Feed(first_posts=posts),
            population.agents,
            rounds=2,
            seed=1,
            logger=log.logger,
            clock=clock,
        ).run()
    return path.read_bytes()


@pytest.fixture
def run(prism: Prism, source: bytes) -> Path:
    """Return the folder of a run, in the command's own."""
    folder: Path = prism.folder / "first"
    folder.mkdir()
    (folder / "events.jsonl").write_bytes(source)
    return folder


@pytest.mark.slow
def test_figures_stand_in_a_folder_beside_the_page(prism: Prism, run: Path) -> None:
    """Figures are files of the format that was asked for, in a folder that is made for them."""
    ran = prism(
        "report", "first", "-o", "page.html", "--figures", "new/figures", "--figure-format", "png"
    )
    assert (ran.status, ran.err) == (0, "")
    saved = list((prism.folder / "new" / "figures").glob("*.png"))
    assert ran.out.splitlines()[1:] == [f"new/figures: {len(saved)} figures"]
    assert len(saved) > 5


@pytest.mark.slow
def test_notes_go_to_stderr_and_the_page_to_stdout(prism: Prism, run: Path, source: bytes) -> None:
    """Notes on logs go to standard error; a page on standard output is alone there, and whole."""
    (prism.folder / "second.jsonl").write_bytes(source[:-30])
    ran = prism("report", "first", "second.jsonl", "nowhere", "-o", "-", "--figures", "figures")
    assert ran.status == 0
    assert ran.out.startswith("<!DOCTYPE html>")
    assert ran.out.rstrip().endswith("</html>")
    assert "2 runs side by side" in ran.out
    lines = source.count(b"\n")
    assert ran.err.splitlines() == [
        "prism: nowhere: there is no such file or folder",
        f"prism: second.jsonl, line {lines:,}: is cut off and is left out",
        "prism: second.jsonl: second has not ended: it is still running, or was stopped",
        f"figures: {len(list((prism.folder / 'figures').iterdir()))} figures",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "nowhere: there is no such file or folder"),
        (["first", "first/events.jsonl"], "events.jsonl: is given more than once"),
        (
            ["first", "-o", "nowhere/page.html"],
            "nowhere/page.html: cannot be written: there is no such folder",
        ),
        (["first", "-o", "other"], "other: is a folder: name a file with --output"),
        (
            ["first", "-o", "first/events.jsonl"],
            "first/events.jsonl: exists and is not a web page: name another file",
        ),
        (
            ["first", "--figures", "notes.txt"],
            "notes.txt: is not a folder: name one with --figures",
        ),
        # only this one is found while the page's JavaScript is bundled already
        pytest.param(
            ["empty.jsonl", "notes.txt"],
            "empty.jsonl: is empty: nothing has been written to it; notes.txt: contains no",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_mistakes_are_one_line(prism: Prism, run: Path, arguments: list[str], said: str) -> None:
    """A mistake is one line on standard error with status 2, and no file is changed."""
    (prism.folder / "other").mkdir()
    (prism.folder / "notes.txt").write_text("a note\n", encoding="utf-8")
    (prism.folder / "empty.jsonl").touch()
    before = {path: path.read_bytes() for path in prism.folder.rglob("*") if path.is_file()}
    ran = prism("report", *arguments)
    assert (ran.status, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert said in ran.err
    assert {path: path.read_bytes() for path in prism.folder.rglob("*") if path.is_file()} == before


def test_a_missing_package_names_the_extra(prism: Prism, source: bytes) -> None:
    """Without the packages that draw, one line names the command that installs them."""
    (prism.folder / "events.jsonl").write_bytes(source)
    ran = prism.run("report", ".", first="import sys; sys.modules['altair'] = None")
    assert ran.status == 2
    assert "run pip install 'prism-statecharts[report]'" in ran.err


@pytest.mark.slow
def test_a_chart_of_ones_own_is_drawn_as_it_is_defined(prism: Prism) -> None:
    """The page has the guards of a chart given by --chart, and transitions that nobody made."""
    charts = prism.folder / "doors.py"
    charts.write_text(DOORS, encoding="utf-8")
    assert runpy.run_path(str(charts))["run"](prism.folder / "doors.jsonl") is None

    ran = prism("report", "doors.jsonl", "--chart", "doors:chart", "-o", "doors.html")
    assert (ran.status, ran.err) == (0, "")
    page = (prism.folder / "doors.html").read_text(encoding="utf-8")
    assert "pull [is_loose]" in page

    ran = prism("chart", "export", "doors:chart", "--format", "json", "-o", "doors.json")
    ran = prism("report", "doors.jsonl", "--chart", "doors.json", "-o", "again.html")
    assert ran.status == 0
    assert "pull [is_loose]" in (prism.folder / "again.html").read_text(encoding="utf-8")

    ran = prism("report", "doors.jsonl", "-o", "without.html")
    assert "pull [is_loose]" not in (prism.folder / "without.html").read_text(encoding="utf-8")
