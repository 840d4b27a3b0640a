"""OpenAI's own client."""

from collections.abc import Iterator
from typing import Any

import pytest

from prism.errors import (
    ReasonerError,
)
from prism.reasoner._clients import adapt
from prism.reasoner._prompts import answer_schema
from prism.statechart import Cost, Reasoner
from prism.statechart.states import AgentState
from prism.testing import FakeOpenAI, Fault
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
