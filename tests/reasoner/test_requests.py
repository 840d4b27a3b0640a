"""Requests: each asks one question."""

from types import SimpleNamespace
from typing import Any

import pytest

from prism.reasoner._prompts import DEFAULT_SETTINGS
from prism.reasoner._requests import Kind, requests_for
from prism.statechart import Question
from prism.statechart.states import AgentState

S = AgentState
ADA, BEN = SimpleNamespace(agent_id="a1", name="Ada"), SimpleNamespace(agent_id="a2", name="Ben")


def ask(
    agent: Any, context: Any = "Hello", options: tuple[S, ...] = (S.COMPOSING, S.SCROLLING)
) -> Question:
    return Question(agent, S.EVALUATING, "decides", options, context)


@pytest.mark.parametrize(
    "other",
    [
        ask(BEN),
        ask(ADA, "Bye"),
        ask(ADA, options=(S.SCROLLING, S.COMPOSING)),
        ask(ADA, options=(S.COMPOSING, S.SCROLLING, S.ENGAGING_LIKE)),
        Question(ADA, S.SCROLLING, "decides", (S.COMPOSING, S.SCROLLING), "Hello"),
        Question(ADA, S.EVALUATING, "ignores", (S.COMPOSING, S.SCROLLING), "Hello"),
    ],
)
def test_the_identity_of_a_request_is_what_it_asks(other: Question) -> None:
    """Requests have one identity if they ask the same in the same way, and only then."""
    kinds: tuple[Kind, ...] = ("name", "letter", "decision")
    for kind in kinds:
        same = [
            next(requests_for(kind, [question], DEFAULT_SETTINGS)).identity()
            for question in (ask(ADA), ask(ADA), other)
        ]
        assert same[0] == same[1] != same[2]

    identities = {next(requests_for(kind, [other], DEFAULT_SETTINGS)).identity() for kind in kinds}
    assert len(identities) == len(kinds)
