"""Requests: one question in chat, those of one agent in decision mode."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from prism.statechart import Question
from prism.statechart.reasoner._prompts import (
    DEFAULT_SETTINGS,
    MOST_DECISION_BYTES,
    PromptSettings,
    Request,
    chat_prompt,
    chat_requests,
    decision_question,
    decision_requests,
    decision_state,
)
from prism.statechart.states import AgentState

S = AgentState
ADA, BEN = SimpleNamespace(agent_id="a1", name="Ada"), SimpleNamespace(agent_id="a2", name="Ben")


def ask(
    agent: Any, context: Any = "Hello", options: tuple[S, ...] = (S.COMPOSING, S.SCROLLING)
) -> Question:
    return Question(agent, S.EVALUATING, "decides", options, context)


def decisions(questions: list[Question]) -> list[Request]:
    return list(decision_requests(questions, DEFAULT_SETTINGS))


def sent(request: Request) -> bytes:
    """Return a request as it goes over the wire."""
    return json.dumps(
        {"model": "nimble", "state": request.text, "questions": request.choices}
    ).encode()


def test_a_chat_asks_one_question() -> None:
    """In chat every question is a request of its own, with its prompt."""
    questions = [ask(ADA), ask(BEN), ask(ADA)]
    requests = list(chat_requests(questions, DEFAULT_SETTINGS))
    assert [(request.kind, request.questions, request.places) for request in requests] == [
        ("chat", [question], [place]) for place, question in enumerate(questions)
    ]
    assert [request.text for request in requests] == [
        chat_prompt(question) for question in questions
    ]


def test_decisions_of_one_agent_go_together() -> None:
    """The questions of one agent share one request and one state, whatever stands between them."""
    questions = [ask(ADA, "one"), ask(BEN, "two"), ask(ADA, "three")]
    ada, ben = decisions(questions)
    assert (ada.text, ada.places) == (decision_state(questions[0]), [0, 2])
    assert ada.choices == {
        "q0": decision_question(questions[0]),
        "q1": decision_question(questions[2]),
    }
    assert (ben.text, ben.places, list(ben.choices)) == (decision_state(questions[1]), [1], ["q0"])


def test_no_questions_make_no_request() -> None:
    """No questions make no requests."""
    assert decisions([]) == list(chat_requests([], DEFAULT_SETTINGS)) == []


@pytest.mark.parametrize(
    "text", ["x" * 4_000, "\N{SNOWMAN}" * 1_000, "\N{GRINNING FACE}" * 900, '"' * 3_000, "x"]
)
@pytest.mark.parametrize("personality", ["", "dry " * 8_000])
def test_requests_stay_below_what_servers_take(text: str, personality: str) -> None:
    """However many questions an agent has, each is asked once, in order, below 64 KiB."""
    agent = SimpleNamespace(agent_id="a1", personality=personality)
    requests = decisions([ask(agent, f"{number} {text}") for number in range(60)])
    assert [place for request in requests for place in request.places] == list(range(60))
    assert all(len(sent(request)) <= request.size + 100 < 65_536 for request in requests)
    together = sum(len(sent(request)) for request in requests)
    assert len(requests) <= 1 + together // (MOST_DECISION_BYTES // 3)


def test_a_question_that_is_too_large_has_its_own_request() -> None:
    """A question that no request can hold spoils none of the others."""
    requests = decisions([ask(ADA), ask(ADA, "x" * 70_000), ask(ADA)])
    assert [request.places for request in requests] == [[0], [1], [2]]
    assert [request.size > MOST_DECISION_BYTES for request in requests] == [False, True, False]


class Unreadable:
    """An agent or post that raises when it is read."""

    def __getattr__(self, name: str) -> Any:
        raise LookupError(name)


@pytest.mark.parametrize("make", [chat_requests, decision_requests])
def test_an_unreadable_agent_or_post_is_a_faulty_request(make: Any) -> None:
    """A question whose post or agent cannot be read says why; the others are as they would be."""
    good = [ask(ADA, "one"), ask(ADA, "two"), ask(BEN, "three")]
    bad = [ask(ADA, Unreadable()), ask(Unreadable(), "four")]
    requests = list(make([good[0], bad[0], good[1], bad[1], good[2]], DEFAULT_SETTINGS))
    faulty = [request for request in requests if request.fault is not None]
    assert [request.places for request in faulty] == [[1], [3]]
    assert all(isinstance(request.fault, LookupError) for request in faulty)
    sound = [(request.text, request.choices) for request in requests if request.fault is None]
    assert sound == [(request.text, request.choices) for request in make(good, DEFAULT_SETTINGS)]


def test_a_description_that_is_not_text_is_a_faulty_request() -> None:
    """A decision question that JSON cannot hold is a request that says why."""
    (request,) = decision_requests([ask(ADA)], PromptSettings({S.COMPOSING: object()}))
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
    for make in (chat_requests, decision_requests):
        same = [
            next(make([question], DEFAULT_SETTINGS)).identity()
            for question in (ask(ADA), ask(ADA), other)
        ]
        assert same[0] == same[1] != same[2]

    chat, decision = (
        next(make([other], DEFAULT_SETTINGS)).identity()
        for make in (chat_requests, decision_requests)
    )
    assert chat != decision
