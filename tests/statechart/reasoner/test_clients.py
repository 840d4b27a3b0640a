"""Speaking to any chat client."""

import json
from types import SimpleNamespace
from typing import Any

import ollama
import pytest

from prism.errors import BadReplyError, DecisionsUnsupportedError, ReasonerError
from prism.statechart.reasoner._clients import (
    Reply,
    answer_schema,
    ask_chat,
    ask_decision,
    check_client,
    check_model,
    offers_decisions,
)
from prism.statechart.reasoner._replies import parse_reasoner_response
from prism.statechart.states import AgentState, state_enum
from prism.testing import FakeOllama, Fault

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
    with pytest.raises(
        ReasonerError, match=f"chat, get_response or run; {type(client).__name__} has none"
    ):
        check_client(client)


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
async def test_a_client_is_told_what_it_takes(client: Any, model: str | None, told: Any) -> None:
    """Each kind of client gets the prompt in the form it takes, with schema and model where it has room for them."""
    assert (await ask_chat(client, "what next?", OPTIONS, model=model, seed=7)).text == "yes"
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
        SimpleNamespace(output="yes"),
    ],
)
async def test_the_text_of_a_reply_is_found(reply: Any) -> None:
    """The text of a reply is found in every common shape of one."""
    assert (await ask_chat(Runner(reply), "what next?", OPTIONS)).text == "yes"


@pytest.mark.parametrize("chosen", [S.SCROLLING, "scrolling"])
@pytest.mark.parametrize(
    "reply",
    [
        lambda chosen: {"next_state": chosen},
        lambda chosen: SimpleNamespace(next_state=chosen),
        lambda chosen: SimpleNamespace(output={"next_state": chosen}),
        lambda chosen: SimpleNamespace(output=SimpleNamespace(next_state=chosen, why="no reason")),
        lambda chosen: SimpleNamespace(
            text=None, output=f"I say {json.dumps({'next_state': str(chosen)})}."
        ),
    ],
)
async def test_an_answer_may_be_data(reply: Any, chosen: Any) -> None:
    """What agents with typed results give, alone or as their output, is read like the JSON that it stands for."""
    text = (await ask_chat(Runner(reply(chosen)), "what next?", OPTIONS)).text
    assert parse_reasoner_response(text, OPTIONS) is S.SCROLLING


@pytest.mark.parametrize(
    "reply",
    [
        None,
        3,
        {},
        {"message": {"content": None}},
        SimpleNamespace(text=7),
        [{"text": "yes"}],
        {"next_state": None},
    ],
)
async def test_a_reply_without_text_is_an_error(reply: Any) -> None:
    """A reply without text is an error that names the reply's type."""
    with pytest.raises(
        BadReplyError, match=f"the client's reply of type {type(reply).__name__} has no text"
    ):
        await ask_chat(Runner(reply), "what next?", OPTIONS)


async def test_an_exception_of_the_client_propagates() -> None:
    """What a client raises reaches the caller unchanged."""

    class Down(Told):
        async def chat(self, messages: Any) -> Any:
            raise ConnectionError("nobody there")

    with pytest.raises(ConnectionError, match="nobody there"):
        await ask_chat(Down(), "what next?", OPTIONS)


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
    read = await ask_chat(Runner(reply), "what next?", OPTIONS)
    assert (read.input_tokens, read.output_tokens) == tokens


@pytest.mark.parametrize("kind", ["prism", "pool", "ollama"])
async def test_real_clients_chat(kind: str, server: FakeOllama, connect: Any) -> None:
    """prism's clients and Ollama's own are asked over HTTP, and text, model and tokens are read."""
    model = "llama3.2" if kind == "ollama" else None
    reply = await ask_chat(connect(kind), "what next?", OPTIONS, model=model)
    assert (reply.text, reply.model, reply.attempts) == (
        '{"next_state": "composing"}',
        "llama3.2",
        1,
    )
    assert (reply.input_tokens, reply.output_tokens) == (2, 2)
    assert reply.host == (None if kind == "ollama" else server.host)
    assert server.questions[0].body["format"] == SCHEMA


QUESTIONS = {
    "q0": {
        "type": "choice",
        "instructions": "next?",
        "criteria": {"composing": "write", "scrolling": None},
    }
}


@pytest.mark.parametrize("kind", ["prism", "pool", "ollama"])
async def test_real_clients_decide(kind: str, server: FakeOllama, connect: Any) -> None:
    """prism's clients and Ollama's own put decision questions over HTTP, and probabilities and tokens are read."""
    model = "nimble" if kind == "ollama" else None
    reply = await ask_decision(connect(kind, "nimble"), "about Ada", QUESTIONS, model=model)
    assert reply.answers["q0"] == pytest.approx({"composing": 0.9, "scrolling": 0.1})
    assert (reply.text, reply.model, reply.output_tokens) == ("", "nimble", 0)
    assert reply.input_tokens is not None
    body = server.questions[0].body
    assert (body["model"], body["state"]) == ("nimble", "about Ada")
    assert body["questions"]["q0"]["criteria"] == QUESTIONS["q0"]["criteria"]


class Deciding(Told):
    """A client that answers decision questions with a given reply, or raises it."""

    async def systemone(self, state: str, questions: Any) -> Any:
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


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
    assert await ask_decision(Deciding(reply), "", QUESTIONS) == Reply(answers={"q0": answers})


@pytest.mark.parametrize(
    "reply", [None, "composing", {}, {"answers": None}, {"answers": ["q0"]}, {"answers": 3}]
)
async def test_a_decision_without_answers_is_an_error(reply: Any) -> None:
    """A reply without answers is an error that names the reply's type."""
    with pytest.raises(
        BadReplyError, match=f"the client's reply of type {type(reply).__name__} has no answers"
    ):
        await ask_decision(Deciding(reply), "", QUESTIONS)


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (ollama.ResponseError("404 page not found", 404), DecisionsUnsupportedError),
        (ollama.ResponseError("this does not support decisions", 400), DecisionsUnsupportedError),
        (ollama.ResponseError('model "m1" not found', 404), ollama.ResponseError),
        (ollama.ResponseError("state is too large", 400), ollama.ResponseError),
        (ollama.ResponseError("404 page not found", 500), ollama.ResponseError),
        (ConnectionError("404 page not found"), ConnectionError),
    ],
)
async def test_a_missing_endpoint_is_told_from_other_failures(
    error: Exception, raised: type[Exception]
) -> None:
    """A server or model without decisions raises prism's error for that; anything else is raised unchanged."""
    with pytest.raises(raised, match=str(error.args[0])) as caught:
        await ask_decision(Deciding(error), "", QUESTIONS)
    assert (caught.value is error) == (raised is type(error))


@pytest.mark.parametrize("kind", ["prism", "pool", "ollama"])
@pytest.mark.parametrize(("model", "offered"), [("nimble", True), ("llama3.2", False)])
async def test_what_a_model_offers_is_found_out(
    kind: str, model: str, offered: bool, connect: Any
) -> None:
    """A client's server is asked whether the model decides."""
    assert (
        await offers_decisions(connect(kind, model), model if kind == "ollama" else None) is offered
    )


@pytest.mark.parametrize("client", [OllamaLike(), Runner(), Deciding()])
async def test_a_client_that_cannot_tell_offers_nothing(client: Any) -> None:
    """A client that has no decisions, or no way to tell, is taken to offer none."""
    assert await offers_decisions(client, "m1") is False


async def test_an_ollama_client_without_a_model_offers_nothing(connect: Any) -> None:
    """Ollama's client that is not told a model cannot be asked what the model does."""
    assert await offers_decisions(connect("ollama"), None) is False


@pytest.mark.parametrize("code", [404, 405, 501])
async def test_a_server_that_knows_no_capabilities_may_decide(
    code: int, server: FakeOllama, connect: Any
) -> None:
    """A server without the path that tells capabilities may have decisions, while a failure is raised."""
    server.fail(Fault.status(code, body=b"no such page"), Fault.status(500), path="/api/show")
    assert await offers_decisions(connect("ollama"), "nimble") is True
    with pytest.raises(ollama.ResponseError):
        await offers_decisions(connect("ollama"), "nimble")


class Thinker(Told):
    """A model that takes one kind of answer to whether it may think, and refuses any other."""

    def __init__(self, accepts: Any, error: Exception) -> None:
        super().__init__()
        self.accepts, self.error, self.asked = accepts, error, []

    async def chat(self, messages: Any, think: Any = None) -> Any:
        self.asked.append(think)
        if think != self.accepts:
            raise self.error
        return self.reply


NO_THINK = ollama.ResponseError("invalid think value", 400)


@pytest.mark.parametrize(
    ("accepts", "error", "asked"),
    [
        (False, NO_THINK, [False, False]),
        (None, NO_THINK, [False, None, None]),
        (None, ollama.ResponseError("unknown field: think", 422), [False, None, None]),
    ],
)
async def test_a_model_is_told_not_to_think_if_it_may_be(
    accepts: Any, error: Exception, asked: list[Any]
) -> None:
    """Where thinking is an argument it is forbidden, but to a model that refuses to be told, and that is remembered."""
    client, refused = Thinker(accepts, error), set[str]()
    replies = [await ask_chat(client, "what next?", OPTIONS, refused=refused) for _ in range(2)]
    assert client.asked == asked
    assert sum(reply.attempts for reply in replies) == len(asked)


@pytest.mark.parametrize(
    "error", [ollama.ResponseError("invalid format", 400), ollama.ResponseError("think", 500)]
)
async def test_other_refusals_have_nothing_to_do_with_thinking(error: Exception) -> None:
    """Any other error is raised as it is, and the model asked only once."""
    client = Thinker("high", error)
    with pytest.raises(ollama.ResponseError):
        await ask_chat(client, "what next?", OPTIONS)
    assert client.asked == [False]


class Mine(ollama.Client):
    """A blocking client of the user's own making."""


@pytest.mark.parametrize("client", [ollama.Client(), Mine()])
@pytest.mark.parametrize("only_decides", [True, False])
def test_a_client_that_blocks_is_refused(client: Any, only_decides: bool) -> None:
    """Ollama's blocking client is an error that names the other one, which is accepted."""
    with pytest.raises(
        ReasonerError, match=r"stops the event loop while it waits for an answer: use ollama\.Async"
    ):
        check_client(client, only_decides=only_decides)
    check_client(ollama.AsyncClient(), only_decides=only_decides)


class Needy(Told):
    """Has to be told a model."""

    async def chat(self, model: str, messages: Any) -> Any: ...

    systemone = chat


class Settled(Told):
    """Has a model of its own, unless it is told another."""

    async def chat(self, messages: Any, model: str | None = None) -> Any: ...

    systemone = chat


@pytest.mark.parametrize("only_decides", [True, False])
@pytest.mark.parametrize("client", [ollama.AsyncClient(), Needy()])
@pytest.mark.parametrize("model", [None, ""])
def test_a_client_without_a_model_is_refused(
    client: Any, model: str | None, only_decides: bool
) -> None:
    """A client that has to be told a model is an error that says how to give one, and accepted with one."""
    method = "systemone" if only_decides else "chat"
    message = rf"{type(client).__name__}.{method} has to be told a model: give one, such as Reasoner\(client, model="
    with pytest.raises(ReasonerError, match=message):
        check_model(client, model, only_decides=only_decides)
    check_model(client, "m1", only_decides=only_decides)


@pytest.mark.parametrize(
    "client", [Settled(), Open(), MessagesOnly(), Responder(), Runner(), FrameworkAgent()]
)
@pytest.mark.parametrize("only_decides", [True, False])
def test_other_clients_need_no_model(client: Any, only_decides: bool) -> None:
    """A client that knows its model, or takes none, is accepted without one."""
    check_model(client, None, only_decides=only_decides)


def test_mode_decision_needs_nothing_but_decisions() -> None:
    """A client that only decides is accepted where only decisions are asked, and one that does not is refused."""
    check_client(Deciding(), only_decides=True)
    with pytest.raises(ReasonerError, match="Runner has none"):
        check_client(Runner(), only_decides=True)
