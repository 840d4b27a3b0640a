"""Agents: what a model is told of them, their names, fields that are drawn, and their measures."""

import pytest

from prism import Run
from prism.errors import FieldValueError
from prism.examples import Rumour, Vaccination
from prism.examples.rumour import Person
from prism.examples.vaccination import Parent, View
from prism.randomness import RandomStream
from prism.reasoner import Question
from prism.reasoner.prompts import chat_prompt
from prism.worlds import Agent, World, draw, state, uniform
from tests.kit.lamps import Lamp


@pytest.mark.parametrize("prompt", [None, "Your doctor asks."])
def test_a_model_is_told_of_the_world_and_not_of_social_media(prompt: str | None) -> None:
    """Persona, prompt and meanings are told; a default says the event."""
    (parent, *_) = Run(Vaccination(), [Parent(name=name, trust=0.9) for name in "ABCDE"]).agents
    about = {"done": 2}
    asked = Question(parent, View.UNDECIDED, "considers", tuple(View), about, prompt=prompt)
    text = chat_prompt(asked)
    assert "You are A, who has a small child. You trust your doctor." in text
    assert (prompt or "considers") in text
    assert ("done: 2" in text) is (prompt is None)
    assert "Refuse for good" in text
    assert "social media" not in text
    assert "the user" not in text.lower()


def test_agents_are_called_by_kind_and_number() -> None:
    """An agent without an id is its kind and number, and its name is its id; ids are unique."""
    people = [*(Person() for _ in range(8)), Person(agent_id="ada", name="Ada")]
    agents = Run(Rumour(), people).agents
    assert [each.agent_id for each in agents[-2:]] == ["person_8", "ada"]
    assert [each.name for each in agents[-2:]] == ["person_8", "Ada"]
    with pytest.raises(FieldValueError, match="two agents have the id 'ada'"):
        _ = Run(Rumour(), [Person(agent_id="ada") for _ in range(8)]).agents


class Citizen(Lamp):
    """Somebody with a field of every distribution."""

    between: float = uniform(0, 1)
    city: str = draw(lambda random: random.choice(("Tartu", "Lund")))
    walk: list[float] = draw(lambda random: [random.normal() for _ in range(3)])
    mood: float = state(uniform(0, 1))


class City(World[Citizen]):
    """A world of them."""


def test_a_field_is_drawn_by_a_stream_of_its_own() -> None:
    """Each value is the first number of the stream of (seed, field, agent, name)."""

    def stream(agent: Agent, name: str) -> RandomStream:
        return RandomStream(5, "field", agent.agent_id, name)

    for agent in Run(City(), 3, seed=5).agents:
        assert agent.between == stream(agent, "between").random()
        assert agent.city == stream(agent, "city").choice(["Tartu", "Lund"])
        assert agent.walk == [stream(agent, "walk").normal(), *agent.walk[1:]]
        assert 0 <= agent.mood < 1
