"""What a reply says to each question of its request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prism.errors import ReasonerError
from prism.statechart.reasoner._model_client import ChoiceReply, Reply, TextReply
from prism.statechart.reasoner._prompts import Request
from prism.statechart.reasoner._replies import parse_reasoner_response, read_probabilities


def text_of(said: TextReply) -> Reply:
    """Keep of a chat's reply what answers are read from."""
    return Reply(said.text)


def chances_of(request: Request, decided: ChoiceReply) -> Reply:
    """Keep of a decision's reply what answers are read from."""
    answers = decided.answers
    return Reply(
        answers={name: (answers.get(name) or {}).get("probabilities") for name in request.choices}
    )


def chosen_in(reply: Reply, request: Request, number: int) -> Any:
    """Return the option that a chat's reply names.

    Raises:
        ReasonerError: If it names none.
    """
    return parse_reasoner_response(reply.text, list(request.questions[number].options))


def chances_in(reply: Reply, request: Request, number: int) -> Mapping[str, float]:
    """Return the probabilities that a decision's reply gives the options of one question.

    Raises:
        ReasonerError: If they are not valid.
    """
    options = list(request.questions[number].options)
    return read_probabilities(reply.answers.get(f"q{number}"), options)


def lacking_in(reply: Reply, request: Request) -> int:
    """Return to how many questions of a request a reply has no valid answer."""
    read = chosen_in if request.kind == "chat" else chances_in
    lacking = 0
    for number in range(len(request.questions)):
        try:
            read(reply, request, number)
        except ReasonerError:
            lacking += 1

    return lacking
