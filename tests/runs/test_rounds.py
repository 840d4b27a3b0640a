"""The rounds of a run as they end: a table that grows, and data frames."""

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from prism import Run
from prism.agents import synthetic_population
from prism.examples.rumour import Rumour
from prism.runs import LiveTable
from prism.social import Feed
from tests.kit import processes
from tests.kit.world_runs import Bazaar


class Notebook:
    """A shell of a notebook, and the module by which a process finds it."""

    def __init__(self) -> None:
        self.kernel = object()
        self.events = self
        self.shown: list[str] = []
        self.places = 0
        self._after_cell: list[Any] = []

    def get_ipython(self) -> Any:
        return self

    @property
    def display(self) -> Any:
        return SimpleNamespace(display=self._display)

    def register(self, event: str, callback: Any) -> None:
        assert event == "post_run_cell"
        self._after_cell.append(callback)

    def unregister(self, event: str, callback: Any) -> None:
        assert event == "post_run_cell"
        self._after_cell.remove(callback)

    def update(self, shown: Any) -> None:
        self.shown.append(shown._repr_html_())

    def end_cell(self) -> None:
        for callback in list(self._after_cell):
            callback(None)

    def _display(self, shown: Any, *, display_id: bool) -> Any:
        assert display_id
        self.places += 1
        self.update(shown)
        return self


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    """Return the notebook that this process runs for."""
    found = Notebook()
    monkeypatch.setitem(sys.modules, "IPython", found)
    return found


def test_rounds_are_printed_as_they_end(capsys: pytest.CaptureFixture[str]) -> None:
    """Outside of a notebook there is a heading and a line for each round."""
    table = LiveTable(["reached", "transitions"])
    results = Run(Rumour(), 20, rounds=3, seed=1).run(on_round=table)
    printed = capsys.readouterr().out
    assert f"{table!r}\n" == printed
    heading, *lines = [line.split() for line in printed.splitlines()]
    assert heading == ["round", "reached", "transitions"]
    assert [float(line[1]) for line in lines] == pytest.approx(results.series("reached"))
    assert [line[0] for line in lines] == ["1", "2", "3"]


def test_a_feed_has_its_states_and_counts() -> None:
    """Without a choice of columns all states and counts are shown."""
    file, population = io.StringIO(), synthetic_population(10, seed=1)
    table = LiveTable(file=file)
    Run(Feed(first_posts=population.posts), population.agents, rounds=2, seed=1).run(on_round=table)
    assert {"idle", "scrolling", "posts", "transitions"} <= set(table.rows[0])
    assert len(file.getvalue().splitlines()) == 3


def test_a_column_that_a_round_lacks_is_refused() -> None:
    """A misspelt name is told with those there are."""
    with pytest.raises(ValueError, match="no 'reched' to show: it has reached, ignorant"):
        Run(Rumour(), 10, rounds=1).run(on_round=LiveTable(["reched"]))


def test_a_notebook_has_one_table_with_the_latest_rounds(notebook: Notebook) -> None:
    """The table is updated in place, and at the end of the cell it has the last round."""
    table = LiveTable(["reached"], most_rows=2)
    Run(Rumour(), 20, rounds=30, seed=1).run(on_round=table)
    notebook.end_cell()
    notebook.end_cell()
    assert notebook.places == 1
    assert "<td>29</td>" in notebook.shown[-1]
    assert "<td>30</td>" in notebook.shown[-1]
    assert "<td>28</td>" not in notebook.shown[-1]
    assert len(notebook.shown) < 15  # more than a browser draws are left out


def test_another_run_gets_a_table_of_its_own(notebook: Notebook) -> None:
    """A table that is given to a second run begins again below."""
    table = LiveTable()
    for seed in (1, 2):
        Run(Rumour(), 10, rounds=2, seed=seed).run(on_round=table)
        notebook.end_cell()

    assert notebook.places == 2
    assert notebook.shown[-1].count("<tr>") == 3


def test_names_are_escaped() -> None:
    """What a world calls a measure is text in HTML."""
    table = LiveTable(file=io.StringIO())
    table(SimpleNamespace(to_dict=lambda: {"round": 1, "measures": {"<b>": None}}))
    assert "<th>&lt;b&gt;</th>" in table._repr_html_()
    assert "<td>-</td>" in table._repr_html_()


_WITHOUT_POLARS = """
import sys
sys.modules["polars"] = None
from prism.worlds import Run
from prism.examples.rumour import Rumour
try:
    Run(Rumour(), 20, rounds=1).run().to_frames()
except ImportError as error:
    print(error)
"""


def test_a_world_has_frames_of_counts_states_and_measures() -> None:
    """Every frame has the numbers of the rounds, and null where nothing was measured."""
    pytest.importorskip("polars")
    results = Run(Bazaar(), 20, rounds=6, seed=1).run()
    frames = results.to_frames()
    assert frames.measures["value"].to_list() == results.series("mean_price")
    assert frames.measures["value"][0] is None
    assert frames.rounds["transitions"].to_list() == [each.transitions for each in results.rounds]
    for each in results.rounds:
        found = frames.states.filter(round=each.number)
        assert dict(found.select("state", "agents").iter_rows()) == each.states


def test_a_feed_has_frames_of_its_counts() -> None:
    """Posts, likes and time-outs of each round are there, and no measures."""
    pytest.importorskip("polars")
    population = synthetic_population(20, seed=1)
    results = Run(Feed(first_posts=population.posts), population.agents, rounds=3, seed=1).run()
    frames = results.to_frames()
    assert frames.rounds["posts"].sum() == results.totals.posts
    assert frames.timeouts["timeouts"].sum() == results.totals.timeouts.total() > 0
    assert frames.measures.is_empty()


def test_without_polars_the_extra_is_named() -> None:
    """The error says what to install."""
    said = processes.run(
        [sys.executable, "-c", _WITHOUT_POLARS], capture_output=True, text=True, check=True
    )
    assert "pip install 'prism-statecharts[analysis]'" in said.stdout
