"""Speaking to any chat client."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from prism.errors import BadReplyError
from prism.reasoner._clients import adapt
from prism.reasoner._prompts import answer_schema
from prism.statechart import Cost, parse_reasoner_response
from prism.statechart.states import AgentState, state_enum
from prism.testing import FakeOllama
from tests.kit.clients import Told

S = AgentState
OPTIONS = [S.COMPOSING, S.SCROLLING]


async def ask_chat(
    client: Any, *, model: str | None = None, seed: int | None = None, cost: Cost | None = None
) -> str:
    """Put a prompt to a client, and return its reply."""
    adapted = adapt(client, model, seed)
    reply = await adapted.chat(MESSAGES, format=answer_schema(OPTIONS), cost=cost or Cost())
    return reply.text


class OllamaLike(Told):
    async def chat(
        self,
        model: str = "",
        messages: Any = None,
        *,
        stream: bool = False,
        format: Any = None,  # noqa: A002 - as Ollama names it
    ) -> Any:
        self.told = {"model": model, "messages": messages, "stream": stream, "format": format}
        return self.reply


class Open(Told):
    async def chat(self, **arguments: Any) -> Any:
        self.told = arguments
        return self.reply


class MessagesOnly(Told):
    async def chat(self, messages: Any) -> Any:
        self.told = messages
        return self.reply


class PromptOnly(Told):
    async def chat(self, question: str) -> Any:
        self.told = question
        return self.reply


class Responder(Told):
    async def get_response(self, prompt: str) -> Any:
        self.told = prompt
        return self.reply


class FrameworkClient(Told):
    async def get_response(
        self, messages: Any, *, stream: bool = False, options: Any = None
    ) -> Any:
        self.told = (messages, options)
        return self.reply


class FrameworkAgent(Told):
    async def run(self, messages: Any = None, *, options: Any = None, **more: Any) -> Any:
        self.told = (messages, options, more)
        return self.reply


class Optional(Told):
    async def run(self, prompt: str, options: Any = None) -> Any:
        self.told = (prompt, options)
        return self.reply


class Runner(Told):
    async def run(self, prompt: str) -> Any:
        self.told = prompt
        return self.reply


class Blocking(Told):
    def run(self, prompt: str) -> Any:
        self.told = prompt
        return self.reply


MESSAGES = [{"role": "user", "content": "what next?"}]
SCHEMA = {
    "type": "object",
    "properties": {"next_state": {"type": "string", "enum": ["composing", "scrolling"]}},
    "required": ["next_state"],
}


def test_the_schema_allows_the_options_only() -> None:
    """The schema of a reply is an object with one next_state among the options' texts."""
    assert answer_schema(OPTIONS) == SCHEMA
    odd = state_enum("Odd", ["two words"])
    assert answer_schema(list(odd))["properties"]["next_state"]["enum"] == ["two words"]


@pytest.mark.parametrize(
    ("client", "model", "told"),
    [
        (
            OllamaLike(),
            None,
            {"model": "", "messages": MESSAGES, "stream": False, "format": SCHEMA},
        ),
        (
            OllamaLike(),
            "m1",
            {"model": "m1", "messages": MESSAGES, "stream": False, "format": SCHEMA},
        ),
        (
            Open(),
            "m1",
            {"model": "m1", "messages": MESSAGES, "format": SCHEMA, "options": {"seed": 7}},
        ),
        (Open(), None, {"messages": MESSAGES, "format": SCHEMA}),
        (MessagesOnly(), "m1", MESSAGES),
        (PromptOnly(), "m1", "what next?"),
        (Responder(), "m1", "what next?"),
        (FrameworkClient(), None, ("what next?", {"response_format": SCHEMA, "seed": 7})),
        (FrameworkAgent(), None, ("what next?", {"response_format": SCHEMA, "seed": 7}, {})),
        (Optional(), None, ("what next?", None)),
        (Runner(), None, "what next?"),
        (Blocking(), None, "what next?"),
    ],
)
async def test_a_client_gets_the_arguments_that_it_takes(
    client: Any, model: str | None, told: Any
) -> None:
    """Each kind of client gets the prompt in its form, and schema and model if it takes them."""
    assert await ask_chat(client, model=model, seed=7) == "yes"
    assert client.told == told


@pytest.mark.parametrize(
    "reply",
    [
        "yes",
        {"message": {"role": "assistant", "content": "yes"}},
        SimpleNamespace(message=SimpleNamespace(content="yes")),
        SimpleNamespace(text="yes"),
        {"text": "yes"},
        {"content": "yes"},
        SimpleNamespace(message=None, content="yes"),
        SimpleNamespace(output="yes"),
    ],
)
async def test_the_text_of_a_reply_is_found(reply: Any) -> None:
    """The text of a reply is found in every common shape of one."""
    assert await ask_chat(Runner(reply)) == "yes"


@pytest.mark.parametrize("chosen", [S.SCROLLING, "scrolling"])
@pytest.mark.parametrize(
    "reply",
    [
        lambda chosen: {"next_state": chosen},
        lambda chosen: SimpleNamespace(next_state=chosen),
        lambda chosen: SimpleNamespace(output={"next_state": chosen}),
        lambda chosen: SimpleNamespace(output=SimpleNamespace(next_state=chosen, why="no reason")),
        lambda chosen: SimpleNamespace(text=None, output=json.dumps({"next_state": str(chosen)})),
    ],
)
async def test_an_answer_may_be_data(reply: Any, chosen: Any) -> None:
    """The data that agents with typed results return is read like the JSON that it stands for."""
    text = await ask_chat(Runner(reply(chosen)))
    assert parse_reasoner_response(text, OPTIONS) is S.SCROLLING


@pytest.mark.parametrize(
    "reply",
    [
        None,
        3,
        {},
        {"message": {"content": None}},
        SimpleNamespace(text=7),
        {"next_state": None},
    ],
)
async def test_a_reply_without_text_is_an_error(reply: Any) -> None:
    """A reply without text is a bad reply."""
    with pytest.raises(BadReplyError, match=r"has no text|an empty reply"):
        await ask_chat(Runner(reply))


@pytest.mark.parametrize(
    ("reply", "tokens"),
    [
        ("yes", (None, None)),
        ({"text": "yes", "prompt_eval_count": 5, "eval_count": 2}, (5, 2)),
        ({"text": "yes", "prompt_eval_count": 0, "eval_count": 0}, (0, 0)),
        (SimpleNamespace(text="yes", input_tokens=5, output_tokens=2), (5, 2)),
        (
            SimpleNamespace(
                text="yes", usage_details={"input_token_count": 5, "output_token_count": 2}
            ),
            (5, 2),
        ),
        (SimpleNamespace(text="yes", usage_details=None), (None, None)),
        ({"text": "yes", "prompt_eval_count": "many"}, (None, None)),
    ],
)
async def test_tokens_are_read(reply: Any, tokens: Any) -> None:
    """Token counts are read in every common shape, none is invented, and zero is a count."""
    cost = Cost()
    await ask_chat(Runner(reply), cost=cost)
    assert (cost.input_tokens, cost.output_tokens, cost.attempts) == (*tokens, 1)


@pytest.mark.parametrize("kind", ["prism", "pool", "ollama"])
async def test_real_clients_chat(kind: str, server: FakeOllama, connect: Any) -> None:
    """prism's clients and Ollama's own are asked over HTTP; text, model and tokens are read."""
    cost = Cost()
    model = "tiny" if kind == "ollama" else None
    text = await ask_chat(connect(kind=kind), model=model, cost=cost)
    assert text == '{"next_state": "composing"}'
    assert (cost.model, cost.attempts) == ("tiny", 1)
    assert (cost.input_tokens, cost.output_tokens) == (3, 2)
    assert cost.host == (None if kind == "ollama" else server.host)
    assert server.questions[0].body["format"] == SCHEMA
