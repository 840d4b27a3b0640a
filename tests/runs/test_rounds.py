"""The rounds of a run as data frames."""

import sys

import pytest

from prism import Run
from prism.agents import synthetic_population
from prism.social import Feed
from tests.kit import processes
from tests.kit.world_runs import Bazaar

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
    totals = results.totals()
    assert frames.rounds["posts"].sum() == totals["posts"]
    assert frames.timeouts["timeouts"].sum() == sum(totals["timeouts"].values()) > 0
    assert frames.measures.is_empty()


def test_without_polars_the_extra_is_named() -> None:
    """The error says what to install."""
    said = processes.run(
        [sys.executable, "-c", _WITHOUT_POLARS], capture_output=True, text=True, check=True
    )
    assert "pip install 'prism-statecharts[analysis]'" in said.stdout
