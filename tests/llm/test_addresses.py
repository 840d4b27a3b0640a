"""How servers are named, and what of it may be shown."""

import asyncio
import re
from collections.abc import Callable
from itertools import combinations
from typing import Any
from urllib.parse import quote

import pytest

from prism.errors import FieldValueError, InputError, LLMError
from prism.llm import Model
from prism.llm._addresses import (
    check_address,
    credentials,
    model_name,
    same_address,
    server_key,
    shown_address,
)
from prism.testing import FakeOllama, Fault
from tests.kit.servers import BOTH, HELLO, Gate, Serve
from tests.kit.waiting import until


@pytest.mark.parametrize(
    "spellings",
    [
        [
            "localhost",
            "localhost/",
            "LOCALHOST:11434",
            "http://localhost:11434",
            "http://ann:secret@localhost:11434/",
        ],
        ["http://a", "http://a:80", "http://A/", "a:80"],
        ["https://a/models", "https://a:443/models/"],
        ["[::1]", "http://[::1]:11434"],
    ],
)
def test_spellings_of_one_address_are_the_same(spellings: list[str]) -> None:
    """Case, a slash at the end, the default scheme or port, and credentials make no difference."""
    assert len({same_address(spelling) for spelling in spellings}) == 1


def test_dialects_of_one_server_share_it() -> None:
    """Ollama serves OpenAI's dialect under /v1; other paths, as behind a gateway, are others."""
    assert len({server_key(each) for each in ("http://a", "http://a/v1/", "http://A:80/v1")}) == 1
    assert len({server_key(each) for each in ("http://a", "http://a/x/v1", "http://a/y/v1")}) == 3


def test_other_addresses_are_not_the_same() -> None:
    """Scheme, name, port and path each make an address another one."""
    others = ["a", "b", "http://a", "https://a", "a:1", "a/models", "a/Models"]
    assert [
        pair for pair in combinations(others, 2) if len(set(map(same_address, pair))) == 1
    ] == []


@pytest.mark.parametrize(
    ("host", "shown", "user"),
    [
        (
            "http://ann:se%40cret@models.example:80/x",
            "http://models.example:80/x",
            ("ann", "se@cret"),
        ),
        ("ann@models.example", "models.example", ("ann", "")),
        ("http://ann:a@b@models.example", "http://models.example", ("ann", "a@b")),
        ("https://models.example/@team", "https://models.example/@team", None),
        ("localhost:11434", "localhost:11434", None),
    ],
)
def test_credentials_are_read_but_not_shown(
    host: str, shown: str, user: tuple[str, str] | None
) -> None:
    """What is shown of an address is all but the user, and it is the user who is sent."""
    assert (shown_address(host), credentials(host)) == (shown, user)


@pytest.mark.parametrize(
    "rest", ["?api_key=secret", "#secret", "/?a=1&key=secret#b", "?a=\nsecret"]
)
def test_a_key_behind_an_address_is_not_shown(rest: str) -> None:
    """A query or fragment reaches no message, log or summary."""
    assert shown_address(f"http://models.example{rest}").rstrip("/") == "http://models.example"


@pytest.mark.parametrize("rest", ["?api_key=secret", "/v1#secret", "/?api-version=secret"])
def test_what_would_not_be_sent_is_refused(rest: str) -> None:
    """An address with a query or a fragment says that it is of no use, and does not show it."""
    said = r"must end before \? or #, as in http://gpu1"
    with pytest.raises(InputError, match=said) as told:
        Model("m", hosts=(f"http://ann:pass@gpu1{rest}",))
    assert not re.search("secret|pass", str(told.value))


@pytest.mark.parametrize("password", ["se/cret", "a#b", "12/34", "/77", "12?34", "12#3", "1/2@3/4"])
def test_a_password_that_breaks_its_address_is_named_as_the_problem(password: str) -> None:
    """Where only the password is at fault, the message says how to write it, and shows none."""
    with pytest.raises(
        FieldValueError, match=r"write / @ : in a password as %2F %40 %3A"
    ) as caught:
        check_address(f"http://ann:{password}@gpu1:11434")
    assert password not in str(caught.value)
    assert "got 'http://gpu1:11434'" in str(caught.value)
    assert shown_address(f"http://ann:{password}@gpu1:11434") == "http://gpu1:11434"


async def test_a_user_is_sent_to_the_server(connect: Callable[..., Any]) -> None:
    """A request has the credentials (RFC 7617); reply and errors name the server without them."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 500 no\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(LLMError) as caught:
            await connect(f"http://ann:secret@{host}").chat(HELLO)
    assert b"authorization: basic yw5uonnly3jlda==" in heads[0].lower()
    assert caught.value.host == f"http://{host}"
    assert "secret" not in str(caught.value)


SECRETS = ['pa/s"s+w&1', "OLLAMA/key+123456"]


@BOTH
@pytest.mark.parametrize("secret", SECRETS)
async def test_secrets_that_a_server_repeats_are_shown_nowhere(
    secret: str, serve: Serve, connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A password or key is cut out of errors and answers, also as JSON or an address has it."""
    for name in ("OLLAMA_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, SECRETS[1])
    server = serve()
    spelled = [secret, quote(secret), quote(secret, safe="")]
    server.fail(Fault.status(400, " ".join(spelled)), Fault.says(" ".join(spelled)))
    pool = connect(server.host.replace("//", f"//ann:{quote(SECRETS[0], safe='')}@"))
    with pytest.raises(LLMError, match=r"\[key\] \[key\] \[key\]") as caught:
        await pool.chat(HELLO)
    reply = await pool.chat(HELLO)
    assert not any(each in f"{caught.value} {reply.text}" for each in spelled)


@BOTH
async def test_a_short_key_takes_no_words_out_of_answers(
    server: FakeOllama, connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers that check no key are often given one such as ``next``: answers stay whole."""
    for name in ("OLLAMA_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "next")
    server.fail(Fault.says('{"next_state": "idle"}'))
    assert (await connect().chat(HELLO)).text == '{"next_state": "idle"}'


async def test_a_server_spelt_in_two_ways_has_one_limit(server: FakeOllama, connect: Any) -> None:
    """However often a server is named, it gets no more questions at once than the limit."""
    gate = server.latency = Gate()
    pool = connect(server, server.host + "/", server.host.removeprefix("http://"), concurrency=2)
    assert pool.hosts == [server.host]
    asking = [asyncio.create_task(pool.chat(HELLO)) for _ in range(6)]
    await until(lambda: server.asked == 2)
    assert pool.waiting == 4
    gate.is_open = True
    await asyncio.gather(*asking)
    assert server.most_at_once == 2


@pytest.mark.parametrize(
    ("names", "others"),
    [
        (
            ["llama3.2", "llama3.2:latest", "Llama3.2", "library/llama3.2:latest"],
            ["llama3.2:1b", "llama3", "ann/llama3.2"],
        ),
        (["hf.co/a/B:Q4", "HF.co/a/b:q4"], ["hf.co/a/b", "a/b:q4"]),
        (["host:5000/tiny", "host:5000/tiny:latest"], ["host/tiny", "tiny"]),
        (["registry.ollama.ai/library/tiny", "tiny"], ["registry.ollama.ai/ann/tiny"]),
    ],
)
def test_ways_to_name_one_model_are_the_same(names: list[str], others: list[str]) -> None:
    """A model is the same with or without the parts of its name that go without saying."""
    assert len({model_name(name) for name in names}) == 1
    assert model_name(names[0]) not in map(model_name, others)
