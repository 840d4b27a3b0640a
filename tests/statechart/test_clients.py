"""Speaking to any chat client."""

from types import SimpleNamespace
from typing import Any

import pytest

from prism.errors import BadReplyError, ReasonerError
from prism.statechart.clients import answer_schema, ask_chat, check_client
from prism.statechart.states import AgentState, state_enum

S = AgentState
OPTIONS = [S.COMPOSING, S.SCROLLING]


class Told:
    """A client that keeps what it was told and answers with a given reply."""

    def __init__(self, reply: Any = "yes") -> None:
        self.reply, self.told = reply, None


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


class Runner(Told):
    async def run(self, prompt: str) -> Any:
        self.told = prompt
        return self.reply


class Blocking(Told):
    def run(self, prompt: str) -> Any:
        self.told = prompt
        return self.reply


class Everything(Responder, Runner, OllamaLike):
    """Has all three methods."""


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


@pytest.mark.parametrize("client", [OllamaLike(), Responder(), Runner(), Blocking()])
def test_a_client_with_any_method_is_accepted(client: Any) -> None:
    """One of chat, get_response and run makes a client."""
    check_client(client)


@pytest.mark.parametrize("client", [None, object(), SimpleNamespace(chat="not callable")])
def test_a_client_without_a_method_is_refused(client: Any) -> None:
    """An object with none of the three methods is an error that names its class and the methods."""
    with pytest.raises(ReasonerError, match=f"chat, get_response or run; {type(client).__name__} has none"):
        check_client(client)


@pytest.mark.parametrize(
    ("client", "model", "told"),
    [
        (OllamaLike(), None, {"model": "", "messages": MESSAGES, "stream": False, "format": SCHEMA}),
        (OllamaLike(), "m1", {"model": "m1", "messages": MESSAGES, "stream": False, "format": SCHEMA}),
        (Open(), "m1", {"model": "m1", "messages": MESSAGES, "format": SCHEMA}),
        (Open(), None, {"messages": MESSAGES, "format": SCHEMA}),
        (MessagesOnly(), "m1", MESSAGES),
        (PromptOnly(), "m1", "what next?"),
        (Responder(), "m1", "what next?"),
        (Runner(), None, "what next?"),
        (Blocking(), None, "what next?"),
    ],
)
async def test_a_client_is_told_what_it_takes(client: Any, model: str | None, told: Any) -> None:
    """Each kind of client gets the prompt in the form it takes, with schema and model where it has room for them."""
    assert (await ask_chat(client, "what next?", OPTIONS, model=model)).text == "yes"
    assert client.told == told


async def test_chat_comes_first() -> None:
    """Of a client with several methods chat is used, because it can be given the schema."""
    client = Everything()
    await ask_chat(client, "what next?", OPTIONS)
    assert isinstance(client.told, dict)
    assert client.told["format"] == SCHEMA


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
    ],
)
async def test_the_text_of_a_reply_is_found(reply: Any) -> None:
    """The text of a reply is found in every common shape of one."""
    assert (await ask_chat(Runner(reply), "what next?", OPTIONS)).text == "yes"


@pytest.mark.parametrize(
    "reply", [None, 3, {}, {"message": {"content": None}}, SimpleNamespace(text=7), [{"text": "yes"}]]
)
async def test_a_reply_without_text_is_an_error(reply: Any) -> None:
    """A reply without text is an error that names the reply's type."""
    with pytest.raises(BadReplyError, match=f"the client's reply of type {type(reply).__name__} has no text"):
        await ask_chat(Runner(reply), "what next?", OPTIONS)


async def test_an_exception_of_the_client_propagates() -> None:
    """What a client raises reaches the caller unchanged."""

    class Down(Told):
        async def chat(self, messages: Any) -> Any:
            raise ConnectionError("nobody there")

    with pytest.raises(ConnectionError, match="nobody there"):
        await ask_chat(Down(), "what next?", OPTIONS)
