"""Requests: each asks one question."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from prism.statechart import Question
from prism.statechart.reasoner._prompts import (
    DEFAULT_SETTINGS,
    MOST_DECISION_BYTES,
    Kind,
    PromptSettings,
    Request,
    chat_prompt,
    decision_question,
    decision_state,
    requests_for,
)
from prism.statechart.states import AgentState

S = AgentState
ADA, BEN = SimpleNamespace(agent_id="a1", name="Ada"), SimpleNamespace(agent_id="a2", name="Ben")


def ask(
    agent: Any, context: Any = "Hello", options: tuple[S, ...] = (S.COMPOSING, S.SCROLLING)
) -> Question:
    return Question(agent, S.EVALUATING, "decides", options, context)


def decisions(questions: list[Question]) -> list[Request]:
    return list(requests_for("decision", questions, DEFAULT_SETTINGS))


def sent(request: Request) -> bytes:
    """Return a request as it goes over the wire."""
    questions = {"q0": request.choice}
    return json.dumps({"model": "nimble", "state": request.text, "questions": questions}).encode()


@pytest.mark.parametrize("kind", ["chat", "decision"])
def test_a_request_asks_one_question(kind: Kind) -> None:
    """Every question is a request of its own, in its place."""
    questions = [ask(ADA), ask(BEN), ask(ADA)]
    requests = list(requests_for(kind, questions, DEFAULT_SETTINGS))
    assert [(request.kind, request.question, request.place) for request in requests] == [
        (kind, question, place) for place, question in enumerate(questions)
    ]
    told = chat_prompt if kind == "chat" else decision_state
    assert [request.text for request in requests] == [told(question) for question in questions]


def test_a_decision_says_what_is_asked() -> None:
    """A decision request has its question in the wire format."""
    (request,) = decisions([ask(ADA)])
    assert request.choice == decision_question(ask(ADA))


def test_no_questions_make_no_request() -> None:
    """No questions make no requests."""
    assert decisions([]) == []


@pytest.mark.parametrize("text", ["x" * 50_000, "\N{GRINNING FACE}" * 900, '"' * 3_000, "x"])
@pytest.mark.parametrize("personality", ["", "dry " * 8_000])
def test_a_decision_that_no_server_takes_is_not_asked(text: str, personality: str) -> None:
    """No request that is put is larger on the wire than allowed, but for what stands in each."""
    agent = SimpleNamespace(agent_id="a1", personality=personality)
    (request,) = decisions([ask(agent, text)])
    is_too_large = len(text) + len(personality) > 60_000
    assert (len(sent(request)) <= MOST_DECISION_BYTES + 100) == (not is_too_large)
    told = f"bytes, and {MOST_DECISION_BYTES} is the limit"
    assert (told in str(request.fault)) == is_too_large


class Unreadable:
    """An agent or post that raises when it is read."""

    def __getattr__(self, name: str) -> Any:
        raise LookupError(name)


@pytest.mark.parametrize("kind", ["chat", "decision"])
def test_an_unreadable_agent_or_post_is_a_faulty_request(kind: Kind) -> None:
    """A question whose post or agent cannot be read says why; the others are as they would be."""
    good = [ask(ADA, "one"), ask(ADA, "two"), ask(BEN, "three")]
    bad = [ask(ADA, Unreadable()), ask(Unreadable(), "four")]
    asked = [good[0], bad[0], good[1], bad[1], good[2]]
    requests = list(requests_for(kind, asked, DEFAULT_SETTINGS))
    faulty = [request for request in requests if request.fault is not None]
    assert [request.place for request in faulty] == [1, 3]
    assert all(isinstance(request.fault, LookupError) for request in faulty)
    sound = [(request.text, request.choice) for request in requests if request.fault is None]
    alone = requests_for(kind, good, DEFAULT_SETTINGS)
    assert sound == [(request.text, request.choice) for request in alone]


def test_a_description_that_is_not_text_is_a_faulty_request() -> None:
    """A decision question that JSON cannot hold is a request that says why."""
    settings = PromptSettings({S.COMPOSING: object()})
    (request,) = requests_for("decision", [ask(ADA)], settings)
    assert isinstance(request.fault, TypeError)


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
    kinds: tuple[Kind, ...] = ("chat", "decision")
    for kind in kinds:
        same = [
            next(requests_for(kind, [question], DEFAULT_SETTINGS)).identity()
            for question in (ask(ADA), ask(ADA), other)
        ]
        assert same[0] == same[1] != same[2]

    chat, decision = (
        next(requests_for(kind, [other], DEFAULT_SETTINGS)).identity() for kind in kinds
    )
    assert chat != decision
