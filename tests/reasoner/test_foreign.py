"""OpenAI's own client."""

from collections.abc import Iterator

import pytest

from prism.errors import ReasonerError
from prism.statechart import Reasoner
from prism.statechart.states import AgentState
from prism.testing import FakeOpenAI, Fault
from tests.kit.modules import Later
from tests.kit.reasoners import ask

openai = Later("openai")

S = AgentState


@pytest.fixture
def openai_server() -> Iterator[FakeOpenAI]:
    """Return an OpenAI-compatible server."""
    with FakeOpenAI(models=["tiny"]) as server:
        yield server


@pytest.mark.slow
async def test_openais_own_client_is_a_model(openai_server: FakeOpenAI) -> None:
    """``openai.AsyncOpenAI`` is asked with model, seed and schema; text and tokens are read."""
    async with openai.AsyncOpenAI(base_url=f"{openai_server.host}/v1", api_key="x") as client:
        reasoner = Reasoner(client, model="tiny", seed=7)
        (decision,) = await reasoner.decide_many([ask()])
    cost = decision.cost
    assert cost is not None
    assert (decision.chosen, decision.question_kind) == (S.COMPOSING, "letter")
    assert (cost.model, cost.attempts, cost.done_reason, cost.output_tokens) == (
        "tiny",
        1,
        "stop",
        2,
    )
    (asked,) = openai_server.questions
    assert asked.body["model"] == "tiny"
    assert asked.body["response_format"]["json_schema"]["schema"]["required"] == ["letter"]


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
