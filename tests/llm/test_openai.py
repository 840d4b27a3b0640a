"""A server that speaks OpenAI's chat completions, asked once."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from prism.errors import (
    BadReplyError,
    DecisionsUnsupportedError,
    FieldValueError,
    LLMError,
    TimedOutError,
)
from prism.llm import Check, Model
from prism.llm._doctor import diagnose
from prism.reasoner import Cost, Reasoner
from prism.testing import Fault
from tests.kit.clocks import Clock
from tests.kit.reasoners import crowd
from tests.kit.server_faults import FAULTS
from tests.kit.servers import HELLO, QUESTION, Connect, Serve, watched

KEY = "sk-1234567890"
SCHEMA = {
    "type": "object",
    "properties": {"next_state": {"type": "string", "enum": ["idle"]}},
    "required": ["next_state"],
}
LISTED = "start the server with tiny, or name a model that it lists$"
SAID = {
    "no model": LISTED,
    "no such model elsewhere": LISTED,
    "wrong shape": r"sent an invalid reply \(it has no choices with a message\)",
}
"""What is said otherwise than of an Ollama server."""


@pytest.fixture
def dialect() -> str:
    """Have all servers here speak OpenAI's dialect."""
    return "openai"


async def test_a_question_is_sent_as_the_server_expects_it(serve: Serve, connect: Connect) -> None:
    """The request has model, messages, schema, temperature and seed where they belong."""
    server = serve()
    pool = connect(server, seed=7, temperature=0.5, think=True)
    cost = Cost()
    reply = await pool.chat(HELLO, format=SCHEMA, cost=cost)
    assert (reply.text, reply.model, reply.host) == (
        '{"next_state": "idle"}',
        "tiny",
        server.host,
    )
    assert (reply.input_tokens, reply.output_tokens) == (1, 2)
    assert (cost.input_tokens, cost.output_tokens, cost.done_reason) == (1, 2, "stop")
    (asked,) = server.questions
    assert asked.path == "/v1/chat/completions"
    strict = {**SCHEMA, "additionalProperties": False}
    assert asked.body == {
        "model": "tiny",
        "messages": HELLO,
        "temperature": 0.5,
        "seed": 7,
        "chat_template_kwargs": {"enable_thinking": True},
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": strict, "strict": True},
        },
    }


@pytest.mark.parametrize(
    ("think", "sent"),
    [
        (
            False,
            {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": False}},
        ),
        (True, {"chat_template_kwargs": {"enable_thinking": True}}),
        ("low", {"reasoning_effort": "low"}),
    ],
)
async def test_thinking_is_said_in_the_words_of_the_servers(
    think: Any, sent: dict[str, Any], serve: Serve, connect: Connect
) -> None:
    """Whether a model may think is said to those who know either word for it."""
    server = serve()
    await connect(server, think=think).chat(HELLO)
    body = server.questions[0].body
    words = ("reasoning_effort", "chat_template_kwargs")
    assert {name: body[name] for name in words if name in body} == sent


PARTS = ["seed", "temperature", "response_format", "reasoning_effort", "chat_template_kwargs"]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.sampled(5)
async def test_what_a_server_refuses_is_told_once_and_left_out(
    part: str, serve: Serve, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """A part that is refused by name costs one request more, and is left out from then on."""
    server = serve(refuses=[part])
    pool, costs = connect(server), [Cost() for _ in range(3)]
    with caplog.at_level(logging.WARNING, "prism.llm"):
        for cost in costs:
            await pool.chat(HELLO, format=SCHEMA, cost=cost)

    assert [cost.attempts for cost in costs] == [2, 1, 1]
    assert [part in asked.body for asked in server.questions] == [True, False, False, False]
    (told,) = caplog.messages
    assert told.startswith(f"tiny at {server.host} refuses {part}, so it is asked without: ")


async def test_a_schema_is_offered_in_the_form_that_a_server_takes(
    serve: Serve, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """llama-cpp-python refuses OpenAI's form with 500, and names the one that it takes."""
    server = serve(refuses=["json_schema"], latency=0.01)
    pool, costs = connect(server, concurrency=2), [Cost() for _ in range(3)]
    await asyncio.gather(*(pool.chat(HELLO, format=SCHEMA, cost=cost) for cost in costs[:2]))
    reply = await pool.chat(HELLO, format=SCHEMA, cost=costs[2])
    assert [cost.attempts for cost in costs] == [2, 2, 1]
    assert server.questions[-1].body["response_format"] == {"type": "json_object", "schema": SCHEMA}
    assert (reply.text, caplog.messages) == ('{"next_state": "idle"}', [])


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"think": "low"}, Fault.status(400, "reasoning_effort must be one of none, high")),
        ({"think": True}, Fault.status(422, "chat_template_kwargs: extra inputs not permitted")),
        ({"temperature": 0.5}, Fault.status(400, "temperature does not support 0.5")),
        ({}, Fault.status(400, "the context is 4096 tokens")),
        ({}, Fault.status(403, "no seed for you")),
    ],
)
async def test_other_refusals_are_raised(
    settings: dict[str, Any], fault: Fault, serve: Serve, connect: Connect
) -> None:
    """What the user has set is not dropped, and other refusals are not mistaken for one of it."""
    server = serve()
    server.fail(fault)
    with pytest.raises(LLMError, match=r"answered 4\d\d"):
        await connect(server, **settings).chat(HELLO)
    assert len(server.questions) == 1


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [pytest.param(*row, id=name) for name, *row, _ in FAULTS],
)
@pytest.mark.sampled(10)
async def test_every_fault_has_its_class(
    fault: Fault,
    kind: type,
    message: str,
    serve: Serve,
    connect: Connect,
    request: pytest.FixtureRequest,
    loop_clock: Clock,
) -> None:
    """Every fault is the error of prism's tree that it is with Ollama, with its host and cost."""
    server = serve()
    server.fail(fault)
    cost = Cost()
    said = SAID.get(request.node.callspec.id, message)
    asking = asyncio.create_task(connect(server, timeout=5).chat(HELLO, cost=cost))
    if kind is TimedOutError:
        await loop_clock.passes(5, when=lambda: server.asked)
    with pytest.raises(LLMError, match=said) as caught:
        await asking

    assert type(caught.value) is kind
    assert caught.value.host == server.host
    assert (cost.attempts, cost.host) == (1, server.host)


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
async def test_an_address_may_end_with_the_version(
    suffix: str, serve: Serve, connect: Connect
) -> None:
    """The version is added where there is no path; both spellings are one host."""
    server = serve()
    pool = connect(f"{server.host}{suffix}", server)
    assert len(pool.hosts) == 1
    assert (await pool.chat(HELLO)).text == "Hello."
    assert await pool.servers[0].models() == ["tiny"]


async def test_a_path_of_its_own_is_kept(serve: Serve, connect: Connect) -> None:
    """Where an address has a path, as behind a gateway, nothing is added to it."""
    with pytest.raises(BadReplyError, match="answered 404: Not Found"):
        await connect(f"{serve().host}/openai").chat(HELLO)


# The key


async def test_the_key_of_the_environment_is_sent(
    serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every request has the key; without one it has no header for it."""
    server = serve()
    await connect(server).chat(HELLO)
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")
    server.key = KEY
    await connect(server).chat(HELLO)
    assert server.authorizations == [None, f"Bearer {KEY}"]


async def test_a_password_goes_before_the_key(
    serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where an address has a name and password, they are sent and the key is not."""
    server = serve()
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    pool = connect(server.host.replace("://", "://ann:secret@"))
    await pool.chat(HELLO)
    assert server.authorizations == ["Basic YW5uOnNlY3JldA=="]
    assert pool.hosts == [server.host]


async def test_the_key_goes_to_no_other_server(
    serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a server redirects to another one, that is asked without key and password."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    front, behind = serve(), serve()
    there = f"{behind.host}/v1/chat/completions"
    front.fail_always(Fault.status(307, headers={"Location": there}))
    for address in (front.host, front.host.replace("://", "://ann:secret@")):
        assert (await connect(address).chat(HELLO)).text == "Hello."
    assert all(front.authorizations)
    assert behind.authorizations == [None, None]


LEAKS = [
    Fault.status(401, f"Incorrect API key provided: {KEY}"),
    Fault.status(429, body=f"<title>Key {KEY} has run out</title>".encode()),
    Fault.body(json.dumps({"error": {"message": f"no such key {KEY}"}}).encode()),
    Fault.body(f"<title>{KEY}</title>".encode()),
    Fault.status(400, f"seed of {KEY}"),
]


@pytest.mark.parametrize("leak", LEAKS)
async def test_a_key_that_a_server_repeats_is_shown_nowhere(
    leak: Fault,
    serve: Serve,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No message, cause, log line or reply has the key, whatever the server sends."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = serve()
    server.fail_always(leak)
    with caplog.at_level(logging.DEBUG), pytest.raises(LLMError) as caught:
        await connect(server).chat(HELLO)

    found: BaseException | None = caught.value
    while found is not None:
        response = getattr(found, "response", None)
        assert KEY not in f"{found} {found!r} {getattr(response, 'text', '')}"
        found = found.__cause__ or found.__context__

    assert KEY not in caplog.text


@pytest.mark.parametrize("key", ["sk 1", "sk-ä", "sk\n-1", "sk\x00"])
def test_a_key_that_no_header_can_carry_is_refused(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key with other characters is named by its variable, and not shown."""
    monkeypatch.setattr("os.environ", {"OPENAI_API_KEY": key})
    with pytest.raises(FieldValueError, match=r"^OPENAI_API_KEY must be") as caught:
        Model("tiny", ["http://127.0.0.1:1"], server="openai").as_client()
    assert key not in str(caught.value)


# Decision questions


async def test_log_probabilities_are_the_probabilities_of_the_options(
    serve: Serve, connect: Connect
) -> None:
    """Options get letters, whose log-probabilities come back as those of the options."""
    server = serve(choose=lambda asked: "B")
    cost = Cost()
    pool = connect(server)
    reply = await pool.systemone("Ann is tired.", QUESTION, cost=cost)
    assert reply.answers["q0"]["choice"] == "b"
    assert reply.answers["q0"]["probabilities"] == pytest.approx({"a": 0.1, "b": 0.9})
    assert cost.attempts == 1
    assert cost.input_tokens
    assert cost.output_tokens
    (asked,) = server.questions
    assert (asked.body["logprobs"], asked.body["top_logprobs"]) == (True, 20)
    assert asked.options == ("A", "B")
    assert pool.servers[0].known_to_decide is True


@pytest.mark.parametrize(
    ("settings", "requests"), [({"logprobs": False}, 1), ({"refuses": ["logprobs"]}, 1)]
)
async def test_without_log_probabilities_no_decision_is_asked_again(
    settings: dict[str, Any], requests: int, serve: Serve, connect: Connect
) -> None:
    """A server that gives none has cost one request, and is asked no further decision."""
    server = serve(**settings)
    pool = connect(server)
    for _ in range(3):
        with pytest.raises(DecisionsUnsupportedError, match="gives no log-probabilities"):
            await pool.systemone("Ann is tired.", QUESTION)
    assert len(server.questions) == requests


async def test_decisions_go_to_the_server_that_gives_log_probabilities(
    serve: Serve, connect: Connect
) -> None:
    """Of two servers the one that gives none is left out, after a question has shown it."""
    silent, server = serve(logprobs=False), serve()
    pool = connect(silent, server)
    hosts = {(await pool.systemone("Ann", QUESTION)).host for _ in range(6)}
    assert (hosts, len(silent.questions), len(server.questions)) == ({server.host}, 1, 6)


@pytest.mark.parametrize(
    "fault", [Fault.status(500), Fault.status(400), Fault.body(b"{}")], ids=["500", "400", "{}"]
)
@pytest.mark.sampled(3)
async def test_where_nobody_is_known_to_decide_all_chat(
    fault: Fault, serve: Serve, connect: Connect
) -> None:
    """Beside a server that gives none, one that fails does not take the decisions along."""
    useless, silent = serve(), serve(logprobs=False)
    useless.fail_always(fault)
    for order in ([useless, silent], [silent, useless]):
        decisions = await Reasoner(connect(*order)).decide_many(crowd(8))
        assert {decision.source for decision in decisions} == {"model"}


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Fault.says("I would rather not."), "does not answer with one of the options"),
        (Fault.says('{"letter": "C"}'), "does not answer with one of the options"),
        (Fault.weighs({"A": float("nan"), "B": "much"}), "do not show its choice"),
        (Fault.weighs({"A": 0}), "do not show its choice"),
    ],
)
async def test_an_answer_that_is_no_letter_is_a_bad_reply(
    fault: Fault, message: str, serve: Serve, connect: Connect
) -> None:
    """What chooses no option, or shows no probability of it, is a bad reply of that host."""
    server = serve()
    await (pool := connect(server)).systemone("Ann", QUESTION)
    server.fail(fault)
    with pytest.raises(BadReplyError, match=message):
        await pool.systemone("Ann", QUESTION)


async def test_more_options_than_log_probabilities_are_not_asked(
    serve: Serve, connect: Connect
) -> None:
    """Servers give twenty at most: a question with more options says what to do instead."""
    server = serve()
    criteria = {f"option {number}": None for number in range(21)}
    question = {"q0": {"type": "choice", "instructions": "?", "criteria": criteria}}
    with pytest.raises(BadReplyError, match=r"21 options exceed the .*: use chat"):
        await connect(server).systemone("Ann", question)
    assert server.questions == []


# Loading, and what there is


async def test_a_list_that_does_not_come_does_not_keep_a_model_from_being_loaded(
    serve: Serve, connect: Connect, loop_clock: Clock
) -> None:
    """A server whose list of models hangs is asked for a token all the same."""
    server, lists = serve(), list[str]()
    server.fail_always(watched(Fault.hang(), lists), path="/v1/models")
    warming = asyncio.create_task(connect(server, timeout=5).warm_up())
    for number in range(2):
        await loop_clock.passes(5, when=lambda count=number: len(lists) > count)
    assert await warming == {server.host: None}


async def test_a_server_that_hangs_as_a_whole_costs_two_looks(
    serve: Serve, connect: Connect, loop_clock: Clock
) -> None:
    """Where no path answers, nobody waits for a token until the time-out of a reply, or a load."""
    server, looks = serve(), list[str]()
    for path in ("/v1/models", "/props"):
        server.fail_always(watched(Fault.hang(), looks), path=path)
    pool = connect(server, timeout=60, load_timeout=600)
    warming = asyncio.create_task(pool.warm_up())
    examining = asyncio.create_task(_last_of(diagnose(pool)))
    for number in (2, 4):
        await loop_clock.passes(5, when=lambda count=number: len(looks) == count)
    assert isinstance((await warming)[server.host], TimedOutError)
    check = await examining
    assert (check.what, check.ok) == ("server", False)
    assert "no complete reply" in check.found
    assert not server.asked


async def _last_of(checks: AsyncGenerator[Check, None]) -> Check:
    return [check async for check in checks][-1]


async def test_loading_asks_for_one_token(serve: Serve, connect: Connect) -> None:
    """A server loads its model for the first question, so that this one is made short."""
    server = serve()
    assert await connect(server).warm_up() == {server.host: None}
    assert [asked.body["max_tokens"] for asked in server.questions] == [1]
