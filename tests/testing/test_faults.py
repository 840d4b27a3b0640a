"""What can be made to go wrong, as the real client meets it."""

import httpx
import ollama
import pytest

from prism.testing import FakeOllama, Fault

HELLO = [{"role": "user", "content": "hello"}]


async def test_a_status_carries_text_and_header(server: FakeOllama) -> None:
    """An error has Ollama's form unless a body is given, and Retry-After only on request."""
    server.fail(
        Fault.status(503, "busy", headers={"Retry-After": "7"}),
        Fault.status(503),
        Fault.status(404, body=b"nothing here"),
    )
    async with httpx.AsyncClient(base_url=server.host) as client:
        asking = {"model": "llama3.2", "messages": HELLO, "stream": False}
        answers = [await client.post("/api/chat", json=asking) for _ in range(3)]
    assert [(each.status_code, each.headers.get("retry-after"), each.text) for each in answers] == [
        (503, "7", '{"error": "busy"}'),
        (503, None, '{"error": "status 503"}'),
        (404, None, "nothing here"),
    ]


async def test_faults_come_in_turn_and_end(server: FakeOllama, client: ollama.AsyncClient) -> None:
    """Faults hit one question each, in order; a lasting one hits all, until the server recovers."""
    server.fail(Fault.status(500), Fault.status(503))
    server.fail_always(Fault.status(429))
    codes = []
    for number in range(5):
        if number == 2:
            server.recover()
            server.fail(Fault.status(502))
        try:
            await client.chat("llama3.2", HELLO)
        except ollama.ResponseError as error:
            codes.append(error.status_code)
        else:
            codes.append(200)
    assert codes == [429, 429, 502, 200, 200]


async def test_a_fault_can_be_set_on_one_path(
    server: FakeOllama, client: ollama.AsyncClient
) -> None:
    """A fault of a path hits that path alone, also where no model is asked."""
    server.fail(Fault.status(500, "disk"), path="/api/ps")
    server.fail_always(Fault.status(502), path="/api/tags")
    assert (await client.chat("llama3.2", HELLO)).message.content == "Hello."
    with pytest.raises(ollama.ResponseError, match="disk"):
        await client.ps()
    assert not (await client.ps()).models
    for _ in range(2):
        with pytest.raises(ollama.ResponseError, match="502"):
            await client.list()
