"""Agents: what a model is told of them, their names, random numbers and histories."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.errors import AgentError, FieldValueError, SimulationError
from prism.examples import Rumour, Vaccination
from prism.examples.rumour import Person
from prism.examples.vaccination import Parent, View
from prism.randomness import RandomStream
from prism.randomness._stream import GOLDEN, keys_of, mixed
from prism.reasoner._prompts import chat_prompt
from prism.runlog import RunLog, SimulatedClock
from prism.statechart import Question, Statechart, Transition
from prism.worlds import Agent, World, during


def question_of(prompt: str | None) -> Question:
    """Return a question of a parent in a run."""
    (parent, *_) = Run(Vaccination(), [Parent(name=name, trust=0.9) for name in "ABCDE"]).agents
    return Question(parent, View.UNDECIDED, "considers", tuple(View), {"done": 2}, prompt=prompt)


@pytest.mark.parametrize("prompt", [None, "Your doctor asks."])
def test_a_model_is_told_of_the_world_and_not_of_social_media(prompt: str | None) -> None:
    """Persona, prompt and meanings are told; a default says the event."""
    question = question_of(prompt)
    text = chat_prompt(question)
    assert "You are A, who has a small child. You trust your doctor." in text
    assert (prompt or "considers") in text
    assert ("done: 2" in text) is (prompt is None)
    assert "Refuse for good" in text
    assert "social media" not in text
    assert "the user" not in text.lower()


def test_agents_are_called_by_kind_and_number() -> None:
    """An agent without an id is its kind and number, and its name is its id."""
    run = Run(Rumour(), [*(Person() for _ in range(8)), Person(agent_id="ada", name="Ada")])
    assert [(each.agent_id, each.name) for each in run.agents[-2:]] == [
        ("person_8", "person_8"),
        ("ada", "Ada"),
    ]


def test_an_agent_without_a_run_receives_nothing() -> None:
    """Messages come from the agents of its run."""
    with pytest.raises(AgentError, match=r"Person.inbox needs a run, which the agent has not"):
        _ = Person().inbox


def test_two_agents_with_one_id_are_refused() -> None:
    """Ids are unique in a run."""
    with pytest.raises(FieldValueError, match="used more than once: ada"):
        _ = Run(Rumour(), [Person(agent_id="ada") for _ in range(8)]).agents


class Renamed(Rumour):
    """A world that gives somebody another id."""

    def round_begins(self) -> None:
        """Rename."""
        self.agents[0].agent_id = "somebody"


def test_an_id_stays(tmp_path: Path) -> None:
    """An id that changes is refused by the next checkpoint, since a resume looks for it."""
    with pytest.raises(SimulationError, match="'person_1' has become 'somebody'"):
        Run(Renamed, 12, rounds=2).keep(tmp_path / "run", checkpoint_every=0)


Mood = StrEnum("Mood", ["CALM", "KEEN"])


class Drawer(Agent):
    """Somebody."""

    chart = Statechart(Mood, [], Mood.CALM)


drawn: list[float] = []


class Noted(World[Drawer]):
    """One person who draws a number in every tick, the last of which is put back."""

    rounds, ticks = 2, 2

    @during(Mood.CALM)
    def draw(self, person: Drawer) -> None:
        """Draw a number twice."""
        taken = person.random.take()
        person.random.put_back(taken)
        assert person.random.random() == taken[1]
        drawn.append(taken[1])


def _numbers(seed: int, part: int, drawer: int = 1) -> list[float]:
    key = keys_of(3, seed, "agent", f"drawer_{drawer}")[1]
    stream = RandomStream.of_key(mixed(key + part * GOLDEN))
    return [stream.random(), stream.random()]


def test_each_round_has_its_own_sequence_which_goes_on_from_tick_to_tick() -> None:
    """Numbers are keyed by seed, agent and round, and taken ones that are put back come again."""
    drawn.clear()
    Run(Noted(), 1, seed=5).run()

    assert drawn == [*_numbers(5, 2), *_numbers(5, 4)]


class Returning(World[Drawer]):
    """One person who puts a number back in the first round, and draws one in the second."""

    rounds = 2

    @during(Mood.CALM)
    def draw(self, person: Drawer) -> None:
        """Put a number back, or draw one."""
        if self.round == 1:
            person.random.put_back(person.random.take())
        else:
            drawn.append(person.random.random())


def test_a_number_that_is_put_back_does_not_outlast_its_round() -> None:
    """The next round begins with its own first number, whatever was put back before."""
    drawn.clear()
    Run(Returning(), 1, seed=5).run()

    assert drawn == _numbers(5, 4)[:1]


def test_streams_begun_together_give_what_each_gives_alone() -> None:
    """Among many agents, too, each draws the numbers of its own key, one after another."""
    drawn.clear()
    Run(Noted(), 40, seed=5).run()

    expected = [each for part in (2, 4) for one in range(40) for each in _numbers(5, part, one + 1)]
    assert sorted(drawn) == sorted(expected)


Light = StrEnum("Light", ["OFF", "ON"])


class Lamp(Agent):
    """A lamp that is switched all the time."""

    chart = Statechart(
        Light,
        [Transition("switch", Light.OFF, Light.ON), Transition("switch", Light.ON, Light.OFF)],
        initial=Light.OFF,
    )


class Blinking(World[Lamp]):
    """A lamp that is switched in every round."""

    rounds = 60

    @during(Light.OFF, Light.ON)
    def switch(self, lamp: Lamp) -> None:
        """Switch it."""
        lamp.fire("switch")


@pytest.mark.parametrize("options", [{}, {"log": "rounds"}])
def test_fifty_transitions_are_remembered_after_a_resume_too(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    """They are the last ones of the run, although there were more."""
    clock = SimulatedClock()
    with RunLog(tmp_path / "a.jsonl", clock) as log:
        first = Run(Blinking(), 1, logger=log.logger, clock=clock, **options)
        first.run()
    lines = map(json.loads, (tmp_path / "a.jsonl").read_text().splitlines())
    again = Run(Blinking(), 1, **options)
    again.loop.restore(json.loads(json.dumps(first.loop.snapshot())), lines)

    (lamp,), (twin,) = first.agents, again.agents
    assert len(lamp.state_history) == 50
    assert twin.state_history == lamp.state_history
