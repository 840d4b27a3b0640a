"""How servers are named, and what nobody may read."""

import re
import subprocess
import sys
from base64 import b64encode
from typing import Any
from urllib.parse import quote

import pytest

from prism.errors import BadReplyError, FieldValueError, InputError, LLMError
from prism.llm import Model
from prism.testing import FakeOllama, Fault
from prism.testing._faults import Exchange
from tests.kit.servers import BOTH, HELLO, Connect, Serve


@pytest.mark.parametrize(
    "spellings",
    [
        ["localhost", "localhost/", "LOCALHOST:11434", "http://localhost:11434"],
        ["http://a", "http://a:80", "http://A/", "a:80"],
        ["https://a/models", "https://a:443/models/"],
        ["[::1]", "http://[::1]:11434"],
    ],
)
def test_spellings_of_one_address_are_one_server(spellings: list[str]) -> None:
    """Case, a slash at the end, and the default scheme or port make no difference."""
    assert len(Model("tiny", spellings).as_client().servers) == 1


def test_other_addresses_are_other_servers() -> None:
    """Scheme, name, port and path each make an address another one."""
    others = ["a", "b", "http://a", "https://a", "a:1", "a/models", "a/Models"]
    assert len(Model("tiny", others).as_client().servers) == len(others)


@pytest.mark.parametrize(
    "secret",
    [
        *("http://ann:s3cret@gpu1", "ann:s3cret@gpu1:11434", "http://ann:s3c/ret@gpu1:1/x"),
        *("http://gpu1?api_key=s3cret", "gpu1/v1#s3cret", "http://ann:s3cret@gpu1/?a=s3cret"),
    ],
)
def test_an_address_with_a_secret_is_refused(secret: str) -> None:
    """A name, a password or a key in an address is not shown; the message says where it goes."""
    for make in (lambda: Model("m", secret), lambda: Model.of(f"ollama:m@{secret}")):
        with pytest.raises(InputError) as caught:
            make()
        assert "s3c" not in str(caught.value)
    with pytest.raises(InputError, match="environment variable"):
        Model("m", secret)


@pytest.mark.parametrize(
    "host", ["", "http://", "ftp://a", "http://a:0", "http://a:port", "a b:1:2"]
)
def test_what_is_no_address_is_refused(host: str) -> None:
    """The message has an example."""
    with pytest.raises(InputError, match=re.escape("such as http://127.0.0.1:11434")):
        Model("m", [host])


# A name and a password as a header has them, and a key.
SECRETS = ["Basic " + b64encode(b"ann:pa/s+w&1").decode(), "OLLAMA/key+123456"]


@BOTH
@pytest.mark.parametrize("secret", SECRETS)
async def test_a_secret_is_sent_and_shown_nowhere(
    secret: str, serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a server repeats of it is cut out of errors and answers, also as an address has it."""
    for name in ("OLLAMA_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, secret)
    server, bare = serve(), secret.removeprefix("Basic ")
    plain = "pa/s+w&1" if bare != secret else bare
    spelled = [bare, quote(plain), quote(bare, safe=""), plain.replace("/", "\\/")]
    server.fail(Fault.status(400, " ".join(spelled)), Fault.says(" ".join(spelled)))
    pool = connect(server)
    with pytest.raises(LLMError, match=r"(\[key\] ?){4}") as caught:
        await pool.chat(HELLO)
    reply = await pool.chat(HELLO)
    assert not any(each in f"{caught.value} {reply.text}" for each in spelled)
    header = secret if secret.startswith("Basic") else f"Bearer {secret}"
    # only the one that speaks OpenAI's API keeps the headers
    assert {*getattr(server, "authorizations", [header])} == {header}


@BOTH
async def test_a_short_key_takes_no_words_out_of_answers(
    server: FakeOllama, connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers that check no key are often given one such as ``next``: answers stay whole."""
    monkeypatch.setattr("os.environ", dict.fromkeys(("OLLAMA_API_KEY", "OPENAI_API_KEY"), "next"))
    server.fail(Fault.says('{"next_state": "idle"}'))
    assert (await connect().chat(HELLO)).text == '{"next_state": "idle"}'


@pytest.mark.parametrize("key", ["sk 1", "sk-ä", "sk\n-1", "sk\x00"])
def test_a_key_that_no_header_can_carry_is_refused(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key with other characters is named by its variable, and not shown."""
    monkeypatch.setattr("os.environ", {"OPENAI_API_KEY": key})
    with pytest.raises(FieldValueError, match=r"^OPENAI_API_KEY must be") as caught:
        Model("tiny", ["http://127.0.0.1:1"], server="openai").as_client()
    assert key not in str(caught.value)


# Proxies


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
@pytest.mark.sampled(3)
async def test_a_proxy_of_the_environment_is_used(
    variable: str, serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server is asked through the proxy that the environment names, for replies as they are."""
    proxy, encodings = serve(), list[str | None]()

    def reply(exchange: Exchange) -> None:
        encodings.append(exchange.headers["Accept-Encoding"])
        exchange.respond(200, {"message": {"role": "assistant", "content": "by proxy"}})

    too_long = Fault.body(b" " * 2**22)
    proxy.fail(Fault("proxy", reply), too_long, path="http://models.invalid/api/chat")
    monkeypatch.setenv(variable, proxy.host)
    client = connect("http://models.invalid:80")
    assert (await client.chat(HELLO)).text == "by proxy"
    assert encodings == ["identity"]
    with pytest.raises(BadReplyError, match="sent a reply of more than"):
        await client.chat(HELLO)


async def test_a_server_on_this_machine_is_asked_past_the_proxy(
    serve: Serve, server: FakeOllama, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy is for the world outside, also where no_proxy does not say so."""
    monkeypatch.setenv("http_proxy", serve(models=["other"]).host)
    monkeypatch.setenv("no_proxy", "")
    for host in (server.host, server.host.replace("127.0.0.1", "0.0.0.0")):
        assert (await connect(host).chat(HELLO)).text == "Hello."


@BOTH
@pytest.mark.sampled(2)
async def test_a_proxy_that_no_client_can_use_is_named_by_its_variable(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first question is one sentence, and so is a command, which makes a client to import."""
    monkeypatch.setenv("ALL_PROXY", "socks4://127.0.0.1:9")
    with pytest.raises(InputError, match=r"^no HTTP client can be made .*ALL_PROXY"):
        await connect("http://models.invalid:80").chat(HELLO)
    line = [sys.executable, "-m", "prism", "doctor", "--model", "openai:tiny@gpu1"]
    ended = subprocess.run(line, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert re.match(r"prism: no HTTP client can be made .*ALL_PROXY", ended.stderr)
