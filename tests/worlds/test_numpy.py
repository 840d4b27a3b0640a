"""Numbers of numpy are numbers, wherever a number may be."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prism import Model, Run, World, during, measure
from prism.agents import SocialAgent
from prism.arrays import ArrayChart, ArrayWorld
from prism.examples.rumour import Mind, Person
from prism.randomness import RandomStream
from prism.runs import WriterOptions
from prism.science import Plan
from prism.worlds import Plane, Space, state


class Sized(ArrayWorld):
    """A world of arrays."""

    chart = ArrayChart(Mind, [], Mind.IGNORANT)
    part = np.float32(0.25)


class Counted(World[Person]):
    """A world in which people hear something."""

    days: tuple[int, ...] = (np.int64(1),)
    is_open: bool = np.bool_(True)
    field: Space[Person] = state(Space)

    def setup(self) -> None:
        self.field, sky = Space(3, 3), Plane[Person](3, 3, 1)
        for cell, person in enumerate(self.agents):
            self.field.put(person, np.int64(cell))
            sky.put(person, np.float64(0.5), np.float32(0.5))
        assert {*map(type, sky.positions[self.agents[0]])} == {float}

    @during(Mind.IGNORANT, rate=np.float32(0.5))
    def hear(self, person: Person) -> None:
        person.ticks_in_state = np.int64(0)
        person.fire("hears")

    @measure
    def is_known(self) -> Any:
        return np.bool_(True)

    def round_ends(self) -> None:
        self.log("ended", values=np.arange(2), is_open=np.bool_(self.is_open))


def test_a_run_of_numbers_of_numpy_is_kept(tmp_path: Path) -> None:
    """Parameters, rates, measures and logged values are in its files as Python's own would be."""
    kept = Run(Counted, np.int64(9), rounds=np.int64(1), seed=np.int64(3)).keep(tmp_path / "kept")
    assert kept.results == Run(Counted, 9, rounds=1, seed=3).run()
    assert kept.results.rounds[0].measures == {"is_known": True}
    assert kept.summary["config"]["parameters"] == {"days": [1], "is_open": True}
    lines = [*map(json.loads, (tmp_path / "kept" / "events.jsonl").read_text().splitlines())]
    (pictured, _) = [line["places"] for line in lines if line["event"] == "agents.pictured"]
    assert pictured == [*range(9)]
    ended = [line for line in lines if line["event"] == "world.ended"]
    assert [(line["values"], line["is_open"]) for line in ended] == [([0, 1], True)]


def test_agents_models_and_streams_have_numbers_of_numpy() -> None:
    """Such a number is the same as Python's, and what cannot be counted in stays refused."""
    agent = SocialAgent("ada", timeout_threshold=np.int64(3), engagement_threshold=np.float32(0.5))
    assert json.loads(agent.to_json())["ticks_in_state"] == 0
    assert (agent.timeout_threshold, agent.should_engage(np.float32(0.5))) == (3, True)
    with pytest.raises(ValueError, match="must be a whole number"):
        agent.timeout_threshold = np.float64(2.5)

    assert Model("m", concurrency=np.int64(2)) == Model("m", concurrency=2)
    assert RandomStream(np.int64(1), "a").binomial(np.int64(5), 0.5) in range(6)
    assert RandomStream(np.int64(1), "a").random() == RandomStream(1, "a").random()


DATA = {"world": "rumour", "agents": 5, "rounds": 2, "seeds": [3, 4], "vary": {"friends": [2, 4]}}
OF_NUMPY = {**DATA, "agents": np.int64(5), "seeds": np.arange(3, 5), "rounds": np.int8(2)}
EQUAL: dict[str, tuple[Any, Any]] = {
    "plan": (Plan({**OF_NUMPY, "vary": {"friends": np.array([2, 4])}}), Plan(DATA)),
    "seeds": (Plan(OF_NUMPY).with_seeds(np.int64(3)).seeds, (0, 1, 2)),
    "writer": (WriterOptions("m", np.int64(9)).to_config(), WriterOptions("m", 9).to_config()),
    "arrays": (Sized(np.uint8(3), part=np.float32(0.5)).size, 3),
}


@pytest.mark.parametrize("name", EQUAL)
def test_every_door_takes_them(name: str) -> None:
    """What they describe is what Python's own numbers do, also in the files of JSON."""
    assert repr(EQUAL[name][0]) == repr(EQUAL[name][1])
