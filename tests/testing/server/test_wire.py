"""Ollama's wire format, read and written."""

import pytest

from prism.testing._server import wire

CRITERIA = {"a": "first", "b": None}
DECISION = {
    "model": "nimble",
    "state": {"mood": "calm"},
    "questions": {
        "q0": {"instructions": "What now?", "criteria": CRITERIA},
        "q1": {"instructions": ["And", "then?"], "criteria": {"b": None, "c": None}},
    },
}


def test_a_decision_has_the_options_of_all_its_choices() -> None:
    """A decision's question has its state as the prompt, and every option once."""
    asked = wire.read_question(wire.DECIDE, DECISION)
    assert (asked.model, asked.prompt, asked.options) == (
        "nimble",
        '{"mood": "calm"}',
        ("a", "b", "c"),
    )


def test_each_choice_is_a_question_of_its_own() -> None:
    """A choice is asked with its own instructions below the state, and its own options."""
    choices = dict(wire.read_choices(wire.read_question(wire.DECIDE, DECISION)))
    assert {name: choice.options for name, choice in choices.items()} == {
        "q0": ("a", "b"),
        "q1": ("b", "c"),
    }
    assert choices["q0"].prompt == '{"mood": "calm"}\n\nWhat now?'
    assert choices["q1"].prompt == '{"mood": "calm"}\n\n["And", "then?"]'


@pytest.mark.parametrize("body", [None, [], {}, {"model": "m"}, {"model": "m", "messages": []}])
def test_an_incomplete_request_is_an_error(body: object) -> None:
    """A request without a model, or a chat without messages, cannot be read."""
    with pytest.raises((AttributeError, IndexError, KeyError, TypeError)):
        wire.read_question(wire.CHAT, body)


@pytest.mark.parametrize("options", [("a",), ("a", "b"), ("b", "a", "c")])
def test_probabilities_add_up_to_one(options: tuple[str, ...]) -> None:
    """The chosen option is the likeliest, and the probabilities of all add up to 1."""
    weights = wire.choice_reply("a", options, None)["probabilities"]
    assert sum(weights.values()) == pytest.approx(1.0)
    assert max(weights, key=weights.__getitem__) == "a"
    assert tuple(weights) == options
