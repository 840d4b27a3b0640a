"""Agents: what a model is told of them, their names, random numbers and histories."""

import pytest

from prism import Run
from prism.errors import FieldValueError
from prism.examples import Rumour, Vaccination
from prism.examples.rumour import Person
from prism.examples.vaccination import Parent, View
from prism.reasoner._prompts import chat_prompt
from prism.statechart import Question


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
