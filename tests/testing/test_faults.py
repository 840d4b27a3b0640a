"""What can be made to go wrong, as the real client meets it."""

import ollama
import pytest

from prism.testing import FakeOllama, Fault

HELLO = [{"role": "user", "content": "hello"}]


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
