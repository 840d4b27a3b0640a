"""What is measured of each agent."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from prism.errors import SimulationError
from prism.worlds import Run, World, measure
from prism.worlds._results import MOST_MEASURED
from tests.kit.lamps import Lamp, Street
from tests.kit.worlds import run_in


def events_of(agents: int, folder: Path) -> list[dict[str, Any]]:
    """Return what a run logged of its agents' measures."""
    run_in(folder, Run(Street, agents, seed=3))
    events = map(orjson.loads, (folder / "events.jsonl").read_bytes().splitlines())
    return [event for event in events if event["event"] == "agents.measured"]


def test_each_agent_is_measured_at_the_end_of_each_round(tmp_path: Path) -> None:
    """Each measure has a value for each agent."""
    events = events_of(3, tmp_path / "run")
    told = [(event["round"], event["measure"], event["agents"]) for event in events]
    assert told[:2] == [(1, "used", 3), (1, "is_hot", 3)]
    assert len(told) == 6
    assert events[-2]["values"] == {"burner_1": 3, "burner_2": 3, "burner_3": 3}
    assert events[-1]["values"] == {"burner_1": True, "burner_2": True, "burner_3": True}


def test_a_kind_of_more_agents_is_left_out(tmp_path: Path) -> None:
    """Of more agents than can be listed the log has no values."""
    assert len(events_of(MOST_MEASURED, tmp_path / "few")[1]["values"]) == MOST_MEASURED
    assert events_of(MOST_MEASURED + 1, tmp_path / "many") == []


class Texts(Lamp):
    """A lamp whose measure is no number."""

    @measure
    def label(self) -> Any:
        """Return a text."""
        return "red"


class Room(World[Texts]):
    """A room of them."""


def test_a_measure_that_is_no_number_is_refused() -> None:
    """The message names the measure and the agent."""
    with pytest.raises(SimulationError, match=r"Texts\.label of 'texts_1' must return"):
        Run(Room, 2, rounds=1).run()
