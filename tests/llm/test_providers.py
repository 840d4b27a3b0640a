"""What hosted providers and gateways say in ways of their own, each as a server sends it."""

import json
from typing import Any

import pytest

from prism.errors import (
    DeclinedError,
    LLMError,
    ModelMissingError,
    OverloadedError,
    UselessReplyError,
)
from prism.reasoner import Reasoner
from prism.testing import FakeOllama, Fault
from tests.kit.reasoners import ask
from tests.kit.servers import HELLO, Connect, Serve

pytestmark = pytest.mark.usefixtures("no_pauses")


@pytest.fixture
def dialect(request: pytest.FixtureRequest) -> str:
    """Have all servers here speak OpenAI's dialect, unless a test says another."""
    return str(getattr(request, "param", "openai"))


def said(content: Any, finish: Any = "stop", error: Any = None, **message: Any) -> Fault:
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

FAULTS: dict[str, tuple[Fault, type[LLMError], str]] = {
    "overloaded": (
        refuses(529, {"type": "error", "error": {"message": "Overloaded"}}),
        OverloadedError,
        "answered 529: Overloaded$",
    ),
    "time-out of Cloudflare": (
        Fault.status(524, body=b"<title>524: A timeout occurred</title>"),
        OverloadedError,
        "answered 524: a web page",
    ),
    "429 in a 200": (
        Fault.body(json.dumps({"error": {**OF_OPENROUTER, "code": 429}}).encode()),
        OverloadedError,
        "answered 429: Provider returned error$",
    ),
    "502 in a choice": (
        said("", "error", {"code": 502, "message": "Upstream idle timeout exceeded"}),
        OverloadedError,
        "answered 502: Upstream idle timeout exceeded$",
    ),
    "error in a choice without a status": (
        said("I saw", "error", {"code": "cut", "message": "the provider broke off"}),
        OverloadedError,
        "answered 500: the provider broke off$",
    ),
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
        said(None, refusal="I'm sorry, I can't\nassist with that."),
        DeclinedError,
        "declined to answer: I'm sorry, I can't assist with that.$",
    ),
    "withheld": (
        said("I saw a", "content_filter"),
        DeclinedError,
        "filter of the model's server withheld its reply$",
    ),
    "withheld by Gemini": (
        said("", "content_filter: PROHIBITED_CONTENT"),
        DeclinedError,
        "filter of the model's server withheld its reply$",
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


@pytest.mark.parametrize(
    ("fault", "kind", "message"), [pytest.param(*row, id=name) for name, row in FAULTS.items()]
)
async def test_a_fault_in_a_providers_own_words_is_understood(
    fault: Fault, kind: type, message: str, serve: Serve, connect: Connect
) -> None:
    """Each is the error that the status says with others; what passes is asked about again."""
    server = serve()
    server.fail_always(fault)
    with pytest.raises(LLMError, match=message) as caught:
        await connect(server, attempts=3).chat(HELLO)
    assert (type(caught.value), caught.value.host) == (kind, server.host)
    assert server.asked == (3 if kind is OverloadedError else 1)


@pytest.mark.parametrize("status", [408, 409, 425, 498, 499, 530])
async def test_a_failure_of_a_moment_is_asked_about_again(
    status: int, serve: Serve, connect: Connect
) -> None:
    """What a provider's own client repeats, a run repeats, too."""
    server = serve(Fault.status(status), Fault.status(status))
    assert (await connect(server, attempts=3).chat(HELLO)).text


@pytest.mark.parametrize("status", [400, 403, 500, 501])
async def test_a_model_without_log_probabilities_is_asked_without(
    status: int, serve: Serve, connect: Connect
) -> None:
    """Whatever the status of the refusal, mode auto chats."""
    server = serve(Fault.status(status, "You are not allowed to request logprobs"))
    (decision,) = await Reasoner(connect(server)).decide_many([ask()])
    assert (decision.source, decision.probabilities) == ("model", None)
    assert ["logprobs" in asked.body for asked in server.questions] == [True, False]


async def test_half_a_character_is_no_broken_reply(serve: Serve, connect: Connect) -> None:
    """A text that ends by length may end within a character."""
    whole = json.dumps({"choices": [{"message": {"content": "Café"}}]}, ensure_ascii=False)
    server = serve(Fault.body(whole.encode().replace(b"\xa9", b"")))
    assert (await connect(server).chat(HELLO)).text == "Caf\ufffd"


@pytest.mark.parametrize("name", ["refusal", "withheld", "no JSON", "filtered by Azure"])
@pytest.mark.parametrize("mode", ["chat", "auto"])
async def test_a_declined_decision_is_asked_once_more(
    name: str, mode: Any, serve: Serve, connect: Connect
) -> None:
    """It costs one request more, in other words where it is a chat, and then falls back."""
    server = serve(*[FAULTS[name][0]] * 3)
    fallback, decision = [
        (await Reasoner(connect(server), mode=mode, seed=1).decide_many([ask()]))[0]
        for _ in range(2)
    ]
    assert (fallback.source, decision.source, server.asked) == ("fallback", "model", 4)
    assert FAULTS[name][2].rpartition(": ")[2].rstrip("$") in str(fallback.reason)


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_loses_the_question_is_told(
    status: int, serve: Serve, connect: Connect
) -> None:
    """Clients follow such a redirect with GET, so the address that it names has to be given."""
    place = "https://ann:secret@models.example/v1/chat/completions?key=secret"
    server = serve(Fault.status(status, headers={"Location": place}))
    with pytest.raises(LLMError) as caught:
        await connect(server).chat(HELLO)
    assert str(caught.value).startswith(
        f"{server.host} redirects to https://models.example/v1/chat/completions, and loses "
        "the question: give that address"
    )
    assert len(server.questions) == 1


UNAUTHORIZED = Fault.status(
    401, body=b'{"error": "unauthorized", "signin_url": "https://x/?key=k"}'
)
PIECES = b"".join(
    json.dumps({"message": {"role": "assistant", "content": text}, "done": not text}).encode()
    + b"\n"
    for text in ("I saw", " a heron.", "")
)


@pytest.mark.parametrize("dialect", ["ollama"], indirect=True)
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
