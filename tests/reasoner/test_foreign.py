"""Clients of other makes: decision questions, thinking, and OpenAI's own client."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import ollama
import pytest

from prism.errors import (
    BadReplyError,
    DecisionsUnsupportedError,
    LLMError,
    ModelMissingError,
    ReasonerError,
    UnreachableError,
)
from prism.reasoner._clients import adapt
from prism.reasoner._prompts import answer_schema
from prism.statechart import Cost, Reasoner
from prism.statechart.states import AgentState
from prism.testing import FakeOllama, FakeOpenAI, Fault
from tests.kit.clients import Deciding
from tests.kit.later import Later
from tests.kit.reasoners import ask

openai = Later("openai")

S = AgentState
OPTIONS = [S.COMPOSING, S.SCROLLING]
MESSAGES = [{"role": "user", "content": "what next?"}]
SCHEMA = {
    "type": "object",
    "properties": {"next_state": {"type": "string", "enum": ["composing", "scrolling"]}},
    "required": ["next_state"],
}


async def ask_chat(
    client: Any, *, model: str | None = None, seed: int | None = None, cost: Cost | None = None
) -> str:
    """Put a prompt to a client, and return its reply."""
    adapted = adapt(client, model, seed)
    reply = await adapted.chat(MESSAGES, format=answer_schema(OPTIONS), cost=cost or Cost())
    return reply.text


async def ask_decision(client: Any, model: str | None = None, cost: Cost | None = None) -> Any:
    """Put a decision question to a client, and return the probabilities of the answer."""
    adapted = adapt(client, model, None)
    reply = await adapted.systemone("about Ada", QUESTIONS, cost=cost or Cost())
    return reply.answers["q0"]["probabilities"]


async def offers_decisions(client: Any, model: str | None) -> bool:
    """Return whether a client takes decisions, as its adapter finds out."""
    return await adapt(client, model, None).offers_decisions()


QUESTIONS = {
    "q0": {
        "type": "choice",
        "instructions": "next?",
        "criteria": {"composing": "write", "scrolling": None},
    }
}


@pytest.mark.parametrize("kind", ["prism", "pool", "ollama"])
async def test_real_clients_decide(kind: str, server: FakeOllama, connect: Any) -> None:
    """prism's clients and Ollama's own put decision questions; chances and tokens are read."""
    cost = Cost()
    model = "nimble" if kind == "ollama" else None
    chances = await ask_decision(connect(kind=kind, model="nimble"), model, cost)
    assert chances == pytest.approx({"composing": 0.9, "scrolling": 0.1})
    assert (cost.model, cost.attempts, cost.output_tokens) == ("nimble", 1, 0)
    assert cost.input_tokens is not None
    body = server.questions[0].body
    assert (body["model"], body["state"]) == ("nimble", "about Ada")
    assert body["questions"]["q0"]["criteria"] == QUESTIONS["q0"]["criteria"]


@pytest.mark.parametrize(
    ("reply", "answers"),
    [
        ({"answers": {"q0": {"probabilities": {"composing": 1.0}}}}, {"composing": 1.0}),
        (
            SimpleNamespace(answers={"q0": SimpleNamespace(probabilities={"idle": 0.5})}),
            {"idle": 0.5},
        ),
        ({"answers": {"q0": {"choice": "composing"}}}, None),
        ({"answers": {"q1": {"probabilities": {"composing": 1.0}}}}, None),
        ({"answers": {}}, None),
        ({"answers": {"q0": "composing"}}, None),
    ],
)
async def test_the_answers_of_a_decision_are_found(reply: Any, answers: Any) -> None:
    """The probabilities of each question are found as they are given, or None."""
    assert await ask_decision(Deciding(reply)) == answers


@pytest.mark.parametrize(
    "reply", [None, "composing", {}, {"answers": None}, {"answers": ["q0"]}, {"answers": 3}]
)
async def test_a_decision_without_answers_is_an_error(reply: Any) -> None:
    """A reply without answers is a bad reply."""
    with pytest.raises(BadReplyError, match="sent a reply without answers"):
        await ask_decision(Deciding(reply))


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (ollama.ResponseError("404 page not found", 404), DecisionsUnsupportedError),
        (ollama.ResponseError("this does not support decisions", 400), DecisionsUnsupportedError),
        (ollama.ResponseError("<html>Our models moved: not found", 404), DecisionsUnsupportedError),
        (ollama.ResponseError("no path /v1/model here", 404), DecisionsUnsupportedError),
        (ollama.ResponseError('model "m1" not found', 404), ModelMissingError),
        (ollama.ResponseError("The model `m1` does not exist.", 404), ModelMissingError),
        (ollama.ResponseError("state is too large", 400), LLMError),
        (ollama.ResponseError("404 page not found", 500), LLMError),
        (ConnectionError("404 page not found"), UnreachableError),
    ],
)
async def test_a_missing_endpoint_is_told_from_other_failures(
    error: Exception, raised: type[Exception]
) -> None:
    """A server without decisions is told from one without the model, and from other failures."""
    with pytest.raises(raised, match=r"404|400|500|cannot reach"):
        await ask_decision(Deciding(error))


@pytest.fixture
def openai_server() -> Iterator[FakeOpenAI]:
    """Return an OpenAI-compatible server."""
    with FakeOpenAI(models=["tiny"]) as server:
        yield server


@pytest.mark.slow
async def test_openais_own_client_is_a_model(openai_server: FakeOpenAI) -> None:
    """``openai.AsyncOpenAI`` is asked with model, seed and schema; text and tokens are read."""
    cost = Cost()
    async with openai.AsyncOpenAI(base_url=f"{openai_server.host}/v1", api_key="x") as client:
        text = await ask_chat(client, model="tiny", seed=7, cost=cost)
    assert text == '{"next_state": "composing"}'
    assert (cost.model, cost.attempts, cost.done_reason) == ("tiny", 1, "stop")
    assert (cost.input_tokens, cost.output_tokens) == (3, 2)
    (asked,) = openai_server.questions
    assert (asked.body["model"], asked.body["seed"]) == ("tiny", 7)
    assert asked.body["response_format"]["json_schema"]["schema"] == answer_schema(OPTIONS)


@pytest.mark.parametrize(
    ("retries", "requests"), [(0, 3), pytest.param(2, 1, marks=pytest.mark.slow)]
)
async def test_a_client_that_asks_again_itself_is_asked_once(
    retries: int, requests: int, openai_server: FakeOpenAI
) -> None:
    """An internal error is worth the attempts of a question, unless the client makes its own."""
    address = f"{openai_server.host}/v1"
    openai_server.fail_always(Fault.status(500))
    async with openai.AsyncOpenAI(base_url=address, api_key="x", max_retries=retries) as client:
        reasoner = Reasoner(client, model="tiny", attempts=3)
        (decision,) = await reasoner.decide_many([ask()])
    assert decision.cost is not None
    assert (decision.source, decision.cost.attempts) == ("fallback", requests)


async def test_openais_own_client_needs_a_model_and_a_loop(openai_server: FakeOpenAI) -> None:
    """Without a model it is refused, and so is the client that blocks."""
    address = f"{openai_server.host}/v1"
    with pytest.raises(ReasonerError, match=r"AsyncOpenAI\.chat needs the name of a model"):
        Reasoner(openai.AsyncOpenAI(base_url=address, api_key="x"))
    with pytest.raises(ReasonerError, match=r"use openai\.AsyncOpenAI"):
        Reasoner(openai.OpenAI(base_url=address, api_key="x"), model="tiny")


async def test_a_schema_that_a_server_refuses_is_left_out(openai_server: FakeOpenAI) -> None:
    """A server that takes no schema is asked without, from then on."""
    with FakeOpenAI(models=["tiny"], refuses=["response_format"]) as server:
        async with openai.AsyncOpenAI(base_url=f"{server.host}/v1", api_key="x") as client:
            adapted = adapt(client, "tiny", 0)
            for _ in range(2):
                await adapted.chat(MESSAGES, format=SCHEMA, cost=Cost())
        sent = ["response_format" in asked.body for asked in server.questions]
    assert sent == [True, False, False]
