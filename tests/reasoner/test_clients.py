"""Speaking to any chat client."""

import json
import re
from types import SimpleNamespace
from typing import Any

import pytest

from prism.reasoner import Decision, Reasoner
from prism.statechart.states import AgentState as S
from prism.testing import FakeOllama, FakeOpenAI, Fault
from tests.kit.clients import ScriptedClient
from tests.kit.modules import Later
from tests.kit.reasoners import answer, ask
from tests.kit.servers import Connect

openai = Later("openai")

YES = answer("scrolling")
SCHEMA = {
    "type": "object",
    "properties": {"next_state": {"type": "string", "enum": ["composing", "scrolling"]}},
    "required": ["next_state"],
}


async def decide(client: Any, **settings: Any) -> Decision:
    """Have a client decide, and return the decision."""
    return (await Reasoner(client, mode="chat", **settings).decide_many([ask()]))[0]


class OllamaLike(ScriptedClient):
    async def chat(
        self,
        model: str = "",
        messages: Any = None,
        *,
        stream: bool = False,
        format: Any = None,  # noqa: A002 - as Ollama names it
        options: Any = None,
    ) -> Any:
        arguments = {"model": model, "stream": stream, "format": format, "options": options}
        self.told = (messages, arguments)
        return self.reply


class Open(ScriptedClient):
    async def chat(self, *, messages: Any, **arguments: Any) -> Any:
        self.told = (messages, arguments)
        return self.reply


class MessagesOnly(ScriptedClient):
    async def chat(self, messages: Any) -> Any:
        self.told = (messages, {})
        return self.reply


class PromptOnly(ScriptedClient):
    async def chat(self, question: str) -> Any:
        self.told = (question, {})
        return self.reply


class Responder(ScriptedClient):
    async def get_response(self, prompt: str) -> Any:
        self.told = (prompt, {})
        return self.reply


class FrameworkAgent(ScriptedClient):
    async def run(self, messages: Any = None, *, options: Any = None, **more: Any) -> Any:
        self.told = (messages, {**options, **more})
        return self.reply


class Blocking(ScriptedClient):
    def run(self, prompt: str) -> Any:
        self.told = (prompt, {})
        return self.reply


@pytest.mark.parametrize(
    ("kind", "model", "arguments", "is_chat"),
    [
        (OllamaLike, "m1", {"model": "m1", "stream": False, "format": SCHEMA}, True),
        (Open, None, {"format": SCHEMA}, True),
        (MessagesOnly, "m1", {}, True),
        (PromptOnly, "m1", {}, False),
        (Responder, "m1", {}, False),
        (FrameworkAgent, None, {"response_format": SCHEMA}, False),
        (Blocking, None, {}, False),
    ],
)
async def test_a_client_gets_the_arguments_that_it_takes(
    kind: Any, model: str | None, arguments: Any, is_chat: bool
) -> None:
    """Each kind of client gets the prompt in its form, and schema, model and seed if it can."""
    client = kind(YES)
    client.temperature = 0
    decision = await decide(client, model=model)
    assert (decision.chosen, decision.source) == (S.SCROLLING, "model")
    prompt, others = client.told
    (message,) = prompt if is_chat else ({"role": "user", "content": prompt},)
    assert message == {"role": "user", "content": decision.prompt}
    assert {name: each for name, each in others.items() if name not in ("options", "seed")} == (
        arguments
    )
    has_seed = "seed" in others.get("options", others)
    assert has_seed == (kind in (OllamaLike, FrameworkAgent))


class Runner(ScriptedClient):
    async def run(self, prompt: str) -> Any:
        return self.reply


WITHOUT_TEXT: list[Any] = [None, 3, {}, {"message": {"content": None}}, {"text": 7}]


@pytest.mark.parametrize(
    "reply",
    [
        YES,
        {"message": {"role": "assistant", "content": YES}},
        SimpleNamespace(message=SimpleNamespace(content=YES)),
        SimpleNamespace(text=YES),
        {"content": [{"text": YES[:5]}, {"text": YES[5:]}]},
        SimpleNamespace(output=YES),
        {"next_state": S.SCROLLING},
        SimpleNamespace(next_state="scrolling"),
        SimpleNamespace(output=SimpleNamespace(next_state=S.SCROLLING, why="no reason")),
        SimpleNamespace(text=None, output=json.dumps({"next_state": str(S.SCROLLING)})),
        *WITHOUT_TEXT,
    ],
)
async def test_the_answer_in_a_reply_is_read(reply: Any) -> None:
    """A text is read in every common shape of a reply; one without text is a fallback."""
    decision = await decide(Runner(reply))
    if reply not in WITHOUT_TEXT:
        assert decision.chosen == S.SCROLLING
    else:
        assert re.search("has no text|an empty reply", str(decision.reason))


@pytest.mark.parametrize(
    ("counts", "tokens"),
    [
        ({}, (None, None)),
        ({"prompt_eval_count": 5.0, "eval_count": 0}, (5, 0)),
        ({"input_tokens": 5, "output_tokens": 2}, (5, 2)),
        ({"usage_details": {"input_token_count": 5, "output_token_count": 2}}, (5, 2)),
        ({"usage_details": None, "prompt_eval_count": "many"}, (None, None)),
    ],
)
async def test_tokens_are_read(counts: Any, tokens: Any) -> None:
    """Token counts are read in every common shape, none is invented, and zero is a count."""
    for reply in ({"text": YES, **counts}, SimpleNamespace(text=YES, **counts)):
        cost = (await decide(Runner(reply))).cost
        assert cost is not None
        assert (cost.input_tokens, cost.output_tokens, cost.attempts) == (*tokens, 1)


@pytest.mark.parametrize(("cost", "money"), [(0.25, 0.5), (-1, None), ("1", None)])
async def test_the_money_of_all_replies_is_added_up(cost: Any, money: float | None) -> None:
    """Where a reply says what it has cost; what is no money is ignored."""
    decision = await decide(Runner({"text": "neither", "usage": {"cost": cost}}))
    assert decision.cost is not None
    assert (decision.cost.attempts, decision.cost.money) == (2, money)


@pytest.mark.parametrize(("said", "logged"), [("tiny:latest", "tiny"), ("tiny:8b", "tiny:8b")])
async def test_a_model_has_one_name(said: str, logged: str) -> None:
    """The tag that Ollama adds to a name without one is not part of it; another name counts."""
    decision = await decide(Runner({"text": YES, "model": said}), model="tiny")
    assert decision.cost is not None
    assert decision.cost.model == logged


@pytest.mark.slow
async def test_openais_own_client_is_a_model() -> None:
    """``openai.AsyncOpenAI`` is asked with model, seed and schema; text and tokens are read."""
    with FakeOpenAI(models=["tiny"]) as server:
        async with openai.AsyncOpenAI(base_url=f"{server.host}/v1", api_key="x") as client:
            (decision,) = await Reasoner(client, model="tiny", seed=7).decide_many([ask()])
    assert (decision.chosen, decision.question_kind) == (S.COMPOSING, "letter")
    assert decision.cost is not None
    assert (decision.cost.model, decision.cost.output_tokens) == ("tiny", 2)
    (asked,) = server.questions
    assert (asked.body["model"], type(asked.body["seed"])) == ("tiny", int)
    assert asked.body["top_p"] == 1
    assert asked.body["response_format"]["json_schema"]["schema"]["required"] == ["letter"]


@pytest.mark.parametrize(
    ("retries", "requests"), [(0, 3), pytest.param(2, 1, marks=pytest.mark.slow)]
)
async def test_a_client_that_asks_again_itself_is_asked_once(
    retries: int, requests: int, no_pauses: None
) -> None:
    """An internal error is worth the attempts of a question, unless the client makes its own.

    What a server repeats of the client's key is not shown.
    """
    with FakeOpenAI(models=["tiny"]) as server:
        server.fail_always(Fault.status(500, "not for sk-123456"))
        there = {"base_url": f"{server.host}/v1", "api_key": "sk-123456", "max_retries": retries}
        async with openai.AsyncOpenAI(**there) as client:
            decision = await decide(client, model="tiny", attempts=3)
    assert decision.cost is not None
    assert (decision.source, decision.cost.attempts) == ("fallback", requests)
    assert str(decision.reason).endswith("not for [key]")


@pytest.mark.parametrize("kind", ["prism", "pool", "ollama"])
async def test_real_clients_chat(kind: str, server: FakeOllama, connect: Connect) -> None:
    """prism's clients and Ollama's own are asked over HTTP; text, model and tokens are read."""
    decision = await decide(connect(kind=kind), model="tiny" if kind == "ollama" else None)
    cost = decision.cost
    assert (decision.source, decision.reply) == ("model", '{"next_state": "composing"}')
    assert cost is not None
    assert (cost.model, cost.attempts, cost.output_tokens) == ("tiny", 1, 2)
    assert cost.host == (None if kind == "ollama" else server.host)
    body = server.questions[0].body
    assert body["format"] == SCHEMA
    assert {"top_p", "top_k", "min_p"} <= body["options"].keys() or kind != "ollama"
