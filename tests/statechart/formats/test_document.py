"""The JSON form of a chart."""

import re
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


def test_two_functions_of_one_name_are_refused() -> None:
    """A document could not tell them apart."""
    strong = is_strong

    def other() -> Any:
        def is_strong(agent: Any, force: Any) -> bool:
            return bool(force > 5)

        return is_strong

    moves = [Transition("go", CALM, ANGRY, guard) for guard in (strong, other())]
    with pytest.raises(DefinitionError, match="two guards are called 'is_strong'"):
        Statechart(Mood, moves, CALM).to_dict()


WRONG: list[Any] = [
    ({"schema": True}, "schema: must be 2"),
    ({"name": 5}, "name: cannot be 5"),
    ({"state": []}, "state: is no key; did you mean 'states'?"),
    ({"transitions": ["go"]}, "transitions[0]: cannot be 'go'"),
    ({"final_states": "calm"}, "final_states: must be a list, got 'calm'"),
    ({"states": ["calm", {"state": "angry", "states": 5}]}, "states.angry: 'int' object is not"),
    ({"initial": "x"}, "initial: 'x' is not among the states (calm, angry)"),
    ({"decision_states": ["y"], "timeouts": {"z": 2}}, "'y' is not among the states (calm, ang"),
    ({"decision_states": ["y"], "timeouts": {"z": 2}}, "timeouts: 'z' is not among the states"),
    ({"decision_states": [{}]}, "decision_states[0]: cannot be {}"),
    ({"logger": "x"}, "logger: is no key: known are states, transitions, initial, name, dec"),
    ({"states": ["calm", {"state": "angry", "parallel": 1}]}, "states.angry.parallel: cannot be 1"),
    pytest.param(
        {"states": [*"ab", *(f"s{number}" for number in range(1000))], "initial": "a"}
        | {"transitions": [{**MOVE, "source": "*", "target": "b"}] * 101},
        "more than 100,000",
        marks=pytest.mark.slow,
    ),
]
WRONG_MOVES: list[tuple[dict[str, Any], str]] = [
    ({"target": "*"}, "calm --bumped--> *: '*' is not among the states"),
    ({"target": {"history": "x"}}, "calm --bumped--> x.H: 'x' is not among the states"),
    ({"target": {"histery": "calm"}}, ".target.histery: is no key; did you mean 'history'?"),
    ({"source": "x"}, "x --bumped--> angry: 'x' is not among the states"),
    ({"gaurd": "g"}, "transitions[0].gaurd: is no key; did you mean 'guard'?"),
    ({"internal": "no"}, "transitions[0].internal: cannot be 'no'"),
    ({"trigger": {"event": "x"}}, ".trigger: cannot be {'event': 'x'}"),
    ({"trigger": ""}, ": transition '': trigger must be a non-empty string"),
    ({"deep": True}, "transitions[0].deep: is no key: known are trigger, source, target, guard,"),
    ({"guard": "os.system"}, ".guard: unknown function 'os.system': pass it in guards=, which has"),
    ({"action": "run"}, ".action: unknown function 'run': pass it in actions=, which has nothing"),
    ({"probability": -1}, ": transition 'bumped': probability must be a number above 0"),
]


@pytest.mark.parametrize(
    ("part", "said"),
    [*WRONG, *(({"transitions": [{**MOVE, **move}]}, said) for move, said in WRONG_MOVES)],
)
def test_what_is_wrong_with_a_document_is_named_with_its_key(
    part: dict[str, Any], said: str
) -> None:
    """A document that is no chart is refused."""
    with pytest.raises(DefinitionError, match=re.escape(said)):
        Statechart.from_dict({**MINIMAL, **part}, guards={"is_strong": is_strong})


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
