"""What is measured of each agent."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from prism.errors import DefinitionError, SimulationError
from prism.worlds import Agent, Run, World, measure
from prism.worlds._measures import MOST_MEASURED
from tests.kit.lamps import Lamp, Street
from tests.kit.worlds import run_in


def events_of(agents: int, folder: Path) -> list[dict[str, Any]]:
    """Return what a run logged of its agents' measures."""
    run_in(folder, Run(Street, agents, seed=3))
    events = map(orjson.loads, (folder / "events.jsonl").read_bytes().splitlines())
    return [event for event in events if event["event"] == "agents.measured"]


def test_each_agent_is_measured_at_the_end_of_each_round(tmp_path: Path) -> None:
    """Fields come first, then methods; each has a value for each agent."""
    events = events_of(3, tmp_path / "run")
    told = [(event["round"], event["measure"], event["agents"]) for event in events]
    assert told[:3] == [(1, "energy", 3), (1, "tint", 3), (1, "is_hot", 3)]
    assert len(told) == 9
    assert events[-3]["values"] == {"burner_1": 3, "burner_2": 3, "burner_3": 3}
    assert events[-1]["values"] == {"burner_1": True, "burner_2": True, "burner_3": True}


def test_a_kind_of_more_agents_is_left_out(tmp_path: Path) -> None:
    """Of more agents than can be listed the log has no values."""
    assert len(events_of(MOST_MEASURED, tmp_path / "few")[1]["values"]) == MOST_MEASURED
    assert events_of(MOST_MEASURED + 1, tmp_path / "many") == []


def test_a_run_that_is_stopped_measures_the_same(tmp_path: Path) -> None:
    """Stopped and resumed, a run logs the same measures."""
    options = Run(Street, 30, seed=1)
    assert run_in(tmp_path / "stopped", options, [1, 2]) == run_in(tmp_path / "whole", options)


class Texts(Lamp):
    """A lamp whose measure is no number."""

    @measure
    def label(self) -> Any:
        """Return a text."""
        return "red"


class Changing(Lamp):
    """A lamp that changes when it is measured."""

    @measure
    def energy(self) -> int:
        """Count how often it is called."""
        self.pressed += 1
        return self.pressed


def world_of(kind: type[Agent]) -> World[Any]:
    """Return a world of one kind."""

    class Room(World[kind]):  # type: ignore[valid-type]
        """A room."""

    return Room()


@pytest.mark.parametrize(
    ("make", "error", "problem"),
    [
        (
            lambda: world_of(Texts),
            SimulationError,
            "Texts.label of 'texts_1' must return",
        ),
        (lambda: measure([]), DefinitionError, r"use state\(list\)"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    make: Any, error: type[Exception], problem: str
) -> None:
    """A value that is no number, a change, and a field of a world are refused."""
    with pytest.raises(error, match=problem):
        Run(make(), 2, rounds=1).run()
