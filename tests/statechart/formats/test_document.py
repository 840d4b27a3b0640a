"""The JSON form of a chart."""

from functools import partial
from time import process_time
from typing import Any

import pytest

from prism.errors import DefinitionError
from prism.statechart import Statechart, Transition, state_enum

Mood = state_enum("Mood", ["calm", "angry"])
CALM, ANGRY = Mood
MINIMAL: dict[str, Any] = {
    "schema": 2,
    "states": ["calm", "angry"],
    "initial": "calm",
    "transitions": [],
}
MOVE = {"trigger": "bumped", "source": "calm", "target": "angry"}


def is_strong(agent: Any, force: Any) -> bool:
    return bool(force > 3)


class Registry:
    def is_strong(self, agent: Any, force: Any) -> bool:
        return bool(force > 5)


@pytest.mark.parametrize(
    "function", [lambda agent, context: True, partial(Registry.is_strong, None)]
)
def test_functions_without_a_name_are_refused(function: Any) -> None:
    """A lambda or a partial cannot be written; the message says how to name it."""
    chart = Statechart(Mood, [Transition("bumped", CALM, ANGRY, function, function)], CALM)
    with pytest.raises(DefinitionError) as caught:
        chart.to_dict()
    assert "guard of calm --bumped--> angry has no name" in str(caught.value)
    assert "action of calm --bumped--> angry has no name" in str(caught.value)


WRONG: dict[str, tuple[Any, list[str]]] = {
    "schema as truth": ({**MINIMAL, "schema": True}, ["schema: must be 2"]),
    "wrong texts": (
        {**MINIMAL, "name": 5, "description": True},
        ["name: cannot be 5", "description: cannot be True"],
    ),
    "lists in lists": (
        {**MINIMAL, "transitions": [{**MOVE, "target": [["angry"]]}]},
        ["transitions[0].target[0]: cannot be ['angry']"],
    ),
    "wrong transitions": (
        {
            **MINIMAL,
            "transitions": [
                {**MOVE, "gaurd": "g"},
                {**MOVE, "internal": "no"},
                {**MOVE, "trigger": 1},
                {"trigger": "x", "source": "calm"},
            ],
        },
        [
            "transitions[0]: Transition.__init__() got an unexpected keyword argument 'gaurd'",
            "transitions[1].internal: cannot be 'no'",
            "transitions[2]: transition 1: trigger must be a non-empty string, got 1",
            "transitions[3]: Transition.__init__() missing 1 required positional argument",
        ],
    ),
    "unknown states": (
        {
            **MINIMAL,
            "initial": "x",
            "decision_states": ["y"],
            "timeouts": {"z": 2},
            "transitions": [{**MOVE, "target": "*"}, {**MOVE, "source": "x"}],
        },
        [
            "initial: names 'x', which is not among the states",
            "decision_states[0]: names 'y'",
            "timeouts.z: names 'z'",
            "transitions[0].target: names '*'",
            "transitions[1].source: names 'x'",
        ],
    ),
    "unknown functions": (
        {**MINIMAL, "transitions": [{**MOVE, "guard": "os.system", "action": "run"}]},
        [
            "unknown guard 'os.system': pass it in guards=, which has 'is_strong'",
            "unknown action 'run': pass it in actions=, which has nothing",
        ],
    ),
    "wrong parts": (
        {
            **MINIMAL,
            "states": ["calm", {"state": "angry", "parallel": True}],
            "transitions": [{**MOVE, "probability": 2.0}],
        },
        ["states[1]: state 'angry': has no", "transitions[0]: transition 'bumped': probability"],
    ),
    "too many moves": (
        {
            **MINIMAL,
            "states": [*MINIMAL["states"], *(f"s{number}" for number in range(1000))],
            "transitions": [{**MOVE, "source": "*"}] * 101,
        },
        ["more than 100,000"],
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_everything_wrong_is_listed_at_once(case: str) -> None:
    """A document that is no chart is refused with one message that names every offender."""
    data, named = WRONG[case]
    with pytest.raises(DefinitionError) as caught:
        Statechart.from_dict(data, guards={"is_strong": is_strong})
    assert [words for words in named if words not in str(caught.value)] == []


def nested(levels: int) -> list[Any]:
    inside: list[Any] = ["calm"]
    for number in range(levels):
        inside = [{"state": f"s{number}", "states": inside}]
    return inside


def many(text: str, count: int = 20_000) -> list[str]:
    return [f"{text}{number}" for number in range(count)]


HOSTILE: dict[str, dict[str, Any]] = {
    "thousands of levels": {"states": nested(5000)},
    "names": {"states": [*MINIMAL["states"], *many("s")], "decision_states": many("x")},
    "wildcards": {
        "states": [*MINIMAL["states"], *many("s")],
        "transitions": [{**MOVE, "source": "*"}] * 9,
    },
    "final states": {"states": many("s"), "final_states": many("s"), "decision_states": many("s")},
    "regions": {
        "states": [{"state": "p", "parallel": True, "states": many("s")}],
        "initial": many("s"),
    },
    "surrogates": {"states": ["calm", "angry", {"state": "x", "initial": "\ud800"}]},
    "levels": {"states": nested(120)},
    "parts": {"states": [{"state": "calm", "initial": {"history": "x"}, "entry": ["unlock"]}]},
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.sampled(5)
def test_a_hostile_document_is_refused_or_read_at_once(name: str) -> None:
    """Not in a time, nor with a message, that is a product of what stands in it."""
    began, message = process_time(), ""
    try:
        Statechart.from_dict({**MINIMAL, **HOSTILE[name]})
    except DefinitionError as error:
        message = str(error)
    assert len(message) < 20_000
    assert process_time() - began < 5
