"""What a server does wrong, as one tree of errors, in both dialects."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from prism import Model, Run
from prism.errors import (
    BadReplyError,
    DeclinedError,
    LLMError,
    ModelMissingError,
    OverloadedError,
    TimedOutError,
    UnreachableError,
    UselessReplyError,
)
from prism.reasoner import Cost, Reasoner
from prism.testing import FakeOllama, Fault
from tests.kit.clocks import Clock
from tests.kit.llama_server import free_port
from tests.kit.reasoners import ask
from tests.kit.servers import BOTH, HELLO, Connect, Serve


def drop_by_drop(exchange: Any) -> None:
    """Send an endless answer, byte by byte."""
    exchange.begin(200, 10**9)
    while True:
        exchange.send(b" ")
        exchange.wait(0.02)


GZIP = {"Content-Encoding": "gzip"}
NOT_FOUND = b'{"error": "model \'tiny\' not found"}'
FAULTS: dict[str, tuple[Fault, type[LLMError], str]] = {
    "dropped": (Fault.drop(), UnreachableError, "the connection to .* broke"),
    "cut short": (Fault.drop_midway(), UnreachableError, "the connection to .* broke"),
    "silent": (Fault.hang(), TimedOutError, "no complete reply from tiny at .* within 5 s"),
    "half a body": (Fault.stall(), TimedOutError, "within 5 s"),
    "slow body": (Fault("slow body", drop_by_drop), TimedOutError, "within 5 s"),
    "429": (Fault.status(429, "busy"), OverloadedError, "answered 429: busy$"),
    "502": (Fault.status(502, "busy"), OverloadedError, "answered 502: busy$"),
    "500": (Fault.status(500, body=b""), OverloadedError, "answered 500: "),
    "no model": (Fault.status(404, body=NOT_FOUND), ModelMissingError, "not found: .*tiny"),
    "no path": (Fault.status(404, body=b"404 page not found"), BadReplyError, "answered 404: "),
    "400": (Fault.status(400, "bad\nformat"), LLMError, "answered 400: bad format"),
    "null error": (Fault.status(500, body=b'{"error": null}'), OverloadedError, "answered 500: "),
    "error list": (Fault.status(503, body=b'["busy"]'), OverloadedError, "answered 503: "),
    "a page": (Fault.status(503, body=b"<html>"), OverloadedError, "answered 503: a web page$"),
    "a page with 200": (Fault.body(b"<html>Sign in"), BadReplyError, "sent an invalid reply"),
    "a compressed page": (Fault.status(503, body=b"x", headers=GZIP), OverloadedError, "503: "),
    "not JSON": (Fault.body(b"yes"), BadReplyError, "sent an invalid reply"),
    "no body": (Fault.body(b""), BadReplyError, "sent an invalid reply"),
    "error with 200": (Fault.body(b'{"error": "oops"}'), OverloadedError, "answered 500: oops$"),
    "an array": (Fault.body(b"[1]"), BadReplyError, "sent "),
    "compressed": (Fault.body(b"x", headers=GZIP), BadReplyError, "sent a compressed reply"),
    "empty": (Fault.says(""), UselessReplyError, "tiny at .* gave an empty reply"),
}
"""By name: the fault, the class of the error, and its message."""


@BOTH
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.sampled(6)
async def test_every_fault_has_its_class(
    name: str, server: FakeOllama, connect: Connect, loop_clock: Clock
) -> None:
    """Every fault of a server is one error of prism's tree, with its server, and is one request."""
    fault, kind, message = FAULTS[name]
    server.fail(fault)
    cost = Cost()
    asking = asyncio.create_task(connect(timeout=5).chat(HELLO, cost=cost))
    if kind is TimedOutError:
        await loop_clock.passes(5, when=lambda: server.asked)
    with pytest.raises(LLMError, match=message) as caught:
        await asking
    assert type(caught.value) is kind
    assert caught.value.host == server.host
    assert (cost.attempts, cost.host) == (1, server.host)


OF_LM_STUDIO = Fault.body(b'{"error": "Unexpected endpoint or method."}')
OF_LITELLM = Fault.status(500, body=b"Internal Server Error")
"""Its answer without the key."""

OTHERS: dict[str, dict[str, Fault]] = {
    "vLLM": {},
    "LM Studio": {f"/api/{name}": OF_LM_STUDIO for name in ("chat", "generate", "tags", "version")},
    "litellm": {"/v1/models": OF_LITELLM},
    "with a key": {"/v1/models": Fault.status(401)},
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("dialect", ["openai"], indirect=True)
async def test_a_forgotten_dialect_is_an_error_that_says_so(
    other: str, server: FakeOllama, tmp_path: Path
) -> None:
    """A server of OpenAI's dialect that is asked in Ollama's: a run, a question, the doctor."""
    for path, fault in OTHERS[other].items():
        server.fail_always(fault, path=path)
    there = f"openai:tiny@{server.host} answers there"
    async with Model("tiny", server.host) as model:
        with pytest.raises(ModelMissingError, match=there):
            await model.as_client().chat(HELLO)
        (check,) = [each async for each in model.diagnose()]
    assert (check.ok, check.result.endswith(there)) == (False, True)
    run = Run("vaccination", 10, model=f"tiny@{server.host}")
    with pytest.raises(ModelMissingError, match=there):
        await asyncio.to_thread(run.keep, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert {asked.path for asked in server.questions} <= {"/api/chat", "/api/generate"}


@BOTH
@pytest.mark.parametrize(
    "host",
    ["http://127.0.0.1:{closed}", "http://nowhere.invalid", "https://127.0.0.1:{server}"],
    ids=["refused", "no such name", "no TLS"],
)
@pytest.mark.sampled(2)
async def test_a_server_that_is_not_there_is_unreachable(
    server: FakeOllama, connect: Connect, host: str
) -> None:
    """A failure to connect is a ConnectionError; it says which host, why, and what to do."""
    host = host.format(closed=free_port(), server=server.host.rpartition(":")[2])
    with pytest.raises(
        ConnectionError, match=rf"cannot reach tiny at {host} \(.+\): check"
    ) as caught:
        await connect(host).chat(HELLO)
    assert type(caught.value) is UnreachableError


# Providers

OPENAI = pytest.mark.parametrize("dialect", ["openai"], indirect=True)


def completion(content: Any, finish: Any = "stop", error: Any = None, **message: Any) -> Fault:
    """Return a reply with status 200."""
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": content, **message},
        "finish_reason": finish,
    }
    if error is not None:
        choice["error"] = error
    usage = {"prompt_tokens": 9, "completion_tokens": 3}
    return Fault.body(json.dumps({"choices": [choice], "usage": usage}).encode())


def refuses(status: int, error: Any) -> Fault:
    """Return an error with a JSON body."""
    return Fault.status(status, body=json.dumps(error).encode())


RAW = "glm is temporarily rate-limited upstream"
OF_OPENROUTER = {"message": "Provider returned error", "metadata": {"raw": RAW}}
OF_OPENAI = {"message": "You exceeded your current quota", "code": "insufficient_quota"}
OF_GOOGLE = {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}
OF_GROQ = {"message": "Failed to generate JSON.", "code": "json_validate_failed"}
OF_AZURE = {"message": "The response was filtered.", "code": "content_filter"}
NO_MODEL = "start the server with tiny, or name a model that it lists$"

OF_PROVIDERS: dict[str, tuple[Fault, type[LLMError], str]] = {
    "overloaded": (
        refuses(529, {"type": "error", "error": {"message": "Overloaded"}}),
        OverloadedError,
        "answered 529: Overloaded$",
    ),
    "429 in a 200": (
        Fault.body(json.dumps({"error": {**OF_OPENROUTER, "code": 429}}).encode()),
        OverloadedError,
        "answered 429: Provider returned error$",
    ),
    "502 in a choice": (
        completion("", "error", {"code": 502, "message": "Upstream idle timeout exceeded"}),
        OverloadedError,
        "answered 502: Upstream idle timeout exceeded$",
    ),
    "error in a choice without a status": (
        completion("I saw", "error", {"code": "cut", "message": "the provider broke off"}),
        OverloadedError,
        "answered 500: the provider broke off$",
    ),
    **{
        str(code): (Fault.status(code), OverloadedError, f"answered {code}")
        for code in (408, 409, 425, 498, 499, 524, 530)
    },
    "no key": (
        refuses(401, {"error": "no key"}),
        LLMError,
        "answered 401: no key: give its key in OPENAI_API_KEY, or",
    ),
    "no money": (refuses(429, {"error": OF_OPENAI}), LLMError, "answered 429: You exceeded"),
    "a list": (refuses(400, [{"error": OF_GOOGLE}]), LLMError, "answered 400: API key not valid.$"),
    "no JSON": (
        refuses(400, {"error": OF_GROQ}),
        UselessReplyError,
        "answered 400: Failed to generate JSON.$",
    ),
    "refusal": (
        completion(None, refusal="I'm sorry, I can't\nassist with that."),
        DeclinedError,
        "declined to answer: I'm sorry, I can't assist with that.$",
    ),
    "withheld": (
        completion("", "content_filter: PROHIBITED_CONTENT"),
        DeclinedError,
        "filter of the model's server withheld its reply$",
    ),
    "withheld by others": (completion("I", "SAFETY"), DeclinedError, "withheld its reply$"),
    "broken off": (completion("I saw", "abort"), OverloadedError, r"reply off \(abort\)$"),
    "a thought alone": (
        completion([{"type": "thinking", "text": "I"}]),
        UselessReplyError,
        "an empty reply$",
    ),
    "filtered by Azure": (
        refuses(400, {"error": OF_AZURE}),
        DeclinedError,
        "answered 400: The response was filtered.$",
    ),
    "no deployment of Azure": (
        refuses(404, {"error": {"message": "The API deployment does not exist."}}),
        ModelMissingError,
        NO_MODEL,
    ),
}


@OPENAI
@pytest.mark.parametrize("name", OF_PROVIDERS)
async def test_a_fault_in_a_providers_own_words_is_understood(
    name: str, server: FakeOllama, connect: Connect, no_pauses: None
) -> None:
    """Each is the error that the status says with others; what passes is asked about again."""
    fault, kind, message = OF_PROVIDERS[name]
    server.fail_always(fault)
    with pytest.raises(LLMError, match=message) as caught:
        await connect(attempts=3).chat(HELLO)
    assert (type(caught.value), caught.value.host) == (kind, server.host)
    assert server.asked == (3 if kind is OverloadedError else 1)


@pytest.mark.parametrize("status", [400, 403, 500, 501])
@OPENAI
async def test_a_model_without_log_probabilities_is_asked_without(
    status: int, serve: Serve, connect: Connect
) -> None:
    """Whatever the status of the refusal, mode auto chats."""
    server = serve(Fault.status(status, "You are not allowed to request logprobs"))
    (decision,) = await Reasoner(connect(server)).decide_many([ask()])
    assert (decision.source, decision.probabilities) == ("model", None)
    assert ["logprobs" in asked.body for asked in server.questions] == [True, False]


@OPENAI
async def test_few_alternatives_are_asked_for_as_many(serve: Serve, connect: Connect) -> None:
    """Some servers list five at most, and refuse a request for twenty."""
    for words in (
        "sample logprobs of 20, max allowed: 5",
        "`top_n_tokens` must be <= 5. Given: 20",
    ):
        server = serve(Fault.status(422, words))
        (decision,) = await Reasoner(connect(server)).decide_many([ask()])
        assert (decision.source, decision.question_kind) == ("model", "letter")
        assert [asked.body["top_logprobs"] for asked in server.questions] == [20, 5]


@OPENAI
@pytest.mark.parametrize(
    "headers", [{}, {"Content-Encoding": "UTF-8"}, {"Content-Type": "a/b;charset=latin1"}]
)
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
async def test_half_a_character_is_no_broken_reply(
    headers: Any, start: bytes, serve: Serve, connect: Connect
) -> None:
    """A text that ends by length may end within a character; JSON is UTF-8, whatever they say."""
    whole = json.dumps({"choices": [{"message": {"content": "Café é"}}]}, ensure_ascii=False)
    body = start + whole.encode().replace(b"\xa9", b"", 1)
    server = serve(Fault.body(body, headers=headers))
    assert (await connect(server).chat(HELLO)).text == "Caf\ufffd é"


@OPENAI
@pytest.mark.parametrize("name", ["refusal", "withheld", "no JSON", "filtered by Azure"])
@pytest.mark.parametrize("mode", ["chat", "auto"])
async def test_a_declined_decision_is_asked_once_more(
    name: str, mode: Any, serve: Serve, connect: Connect
) -> None:
    """It costs one request more, in other words where it is a chat, and then falls back."""
    server = serve(*[OF_PROVIDERS[name][0]] * 3)
    fallback, decision = [
        (await Reasoner(connect(server), mode=mode, seed=1).decide_many([ask()]))[0]
        for _ in range(2)
    ]
    assert (fallback.source, decision.source, server.asked) == ("fallback", "model", 4)
    assert OF_PROVIDERS[name][2].rpartition(": ")[2].rstrip("$") in str(fallback.reason)


@OPENAI
@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_loses_the_question_is_reported(
    status: int, serve: Serve, connect: Connect
) -> None:
    """Clients follow such a redirect with GET, so the address that it names has to be given."""
    place = "https://ann:secret@models.example/v1/chat/completions?key=secret"
    server = serve(Fault.status(status, headers={"Location": place}))
    with pytest.raises(LLMError) as caught:
        await connect(server).chat(HELLO)
    told = "redirects to https://models.example/v1/chat/completions, and loses the question: give"
    assert str(caught.value).startswith(f"{server.host} {told} that address")
    assert len(server.questions) == 1


UNAUTHORIZED = Fault.status(
    401, body=b'{"error": "unauthorized", "signin_url": "https://x/?key=k"}'
)
PIECES = b"".join(
    json.dumps({"message": {"role": "assistant", "content": text}, "done": not text}).encode()
    + b"\n"
    for text in ("I saw", " a heron.", "")
)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (UNAUTHORIZED, "answered 401: unauthorized: run  ollama signin  on that machine, or give"),
        (Fault.body(PIECES), "sent an invalid reply"),
    ],
    ids=["key", "stream"],
)
async def test_a_fault_of_ollamas_kind_says_what_to_do(
    fault: Fault, message: str, server: FakeOllama, connect: Connect
) -> None:
    """Its cloud wants a key, and gateways stream what was asked for whole."""
    server.fail(fault)
    with pytest.raises(LLMError, match=message) as caught:
        await connect().chat(HELLO)
    assert "key=k" not in str(caught.value)


async def test_a_server_that_takes_no_schema_is_asked_without(
    server: FakeOllama, connect: Connect
) -> None:
    """Ollama before 0.5 knows only JSON of any kind, and answers 400 to a schema."""
    server.fail(Fault.status(400, "cannot unmarshal object into ChatRequest.format of type string"))
    pool = connect()
    for _ in range(2):
        assert (await pool.chat(HELLO, format={"type": "object"})).text
    assert ["format" in asked.body for asked in server.questions] == [True, False, False]
