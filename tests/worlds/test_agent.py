"""Agents: what a model is told of them, their names, random numbers and histories."""

from enum import StrEnum

import pytest

from prism import Run
from prism.errors import FieldValueError
from prism.examples import Rumour, Vaccination
from prism.examples.rumour import Person
from prism.examples.vaccination import Parent, View
from prism.randomness import RandomStream
from prism.randomness._stream import GOLDEN, keys_of, mixed
from prism.reasoner._prompts import chat_prompt
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


def test_two_agents_with_one_id_are_refused() -> None:
    """Ids are unique in a run."""
    with pytest.raises(FieldValueError, match="two agents have the id 'ada'"):
        _ = Run(Rumour(), [Person(agent_id="ada") for _ in range(8)]).agents


class Renamed(Rumour):
    """A world that gives somebody another id."""

    def round_begins(self) -> None:
        """Rename."""
        self.agents[0].agent_id = "somebody"


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
