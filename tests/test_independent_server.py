"""An OpenAI-compatible server that others wrote: llmock, in an environment of its own.

It obeys JSON schemas, injects faults, and judges how its clients deal with them.
"""

import json
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from prism.llm import Model
from prism.reasoner import Cost
from prism.statechart import Reasoner, TextCall, Writer
from tests.kit.llama_server import free_port
from tests.kit.modules import environment
from tests.kit.reasoners import crowd
from tests.kit.servers import HELLO
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.long

PACKAGE = "llmock==0.2.2"
MODEL = "gpt-4o"
SCHEMA = {
    "type": "object",
    "properties": {"mood": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["mood", "age"],
}

Serve = Callable[..., str]


@pytest.fixture(scope="module")
def llmock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment with the server, and give its command."""
    return environment(tmp_path_factory.mktemp("llmock"), PACKAGE).with_name("llmock")


@pytest.fixture
def serve(llmock: Path) -> Iterator[Serve]:
    """Return a maker of running servers, given their options, that returns their address."""
    with ExitStack() as servers:

        def make(*options: str) -> str:
            port = str(free_port())
            line = [llmock, "serve", "--port", port, "--log-level", "warning", *options]
            process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            servers.callback(process.wait)
            servers.callback(process.terminate)

            wait_until(lambda: listens(port))
            return f"http://127.0.0.1:{port}"

        yield make


def listens(port: str) -> bool:
    """Return True if something listens; a request would count in what the server reports."""
    try:
        socket.create_connection(("127.0.0.1", int(port))).close()
    except ConnectionError:
        return False

    return True


def verdict(llmock: Path, host: str) -> dict[str, Any]:
    """Return what a server says of its clients."""
    done = subprocess.run(
        [llmock, "report", "--url", host, "--json"], capture_output=True, text=True, check=False
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


async def test_decisions_keep_to_the_options(serve: Serve) -> None:
    """It gives no log-probabilities, so that every decision is a chat bound by a schema."""
    async with Model(MODEL, [serve()], server="openai").as_client() as pool:
        decisions = await Reasoner(pool).decide_many(crowd(40))
    assert {decision.source for decision in decisions} == {"model"}
    assert all(decision.cost and decision.cost.input_tokens for decision in decisions)


async def test_texts_and_data_are_written(serve: Serve) -> None:
    """A text is what it says, and JSON follows its schema."""
    model = Model(MODEL, [serve("--response-style", "hello")], server="openai")
    async with model.as_client() as pool:
        text, data = await Writer(pool).write_many(
            [
                TextCall("ada", "greeting", "Say hello."),
                TextCall("ada", "mood", "How is Ada?", SCHEMA, json.loads),
            ]
        )
    assert text.value.startswith("Hello!")
    assert (type(data.value["mood"]), type(data.value["age"])) == (str, int)


@pytest.mark.parametrize("status", ["429", "503", "502"])
async def test_it_finds_no_fault_with_the_retries(serve: Serve, llmock: Path, status: str) -> None:
    """Where a third of its answers fail, all are given in the end, and no rule of it is broken."""
    host = serve("--error-rate", f"{status}=0.3")
    costs = [Cost() for _ in range(20)]
    async with Model(MODEL, [host], server="openai", attempts=12).as_client() as pool:
        for cost in costs:
            await pool.chat(HELLO, cost=cost)

    found = verdict(llmock, host)
    assert found["faults_injected"] > 0
    assert found["attempts"] == sum(cost.attempts for cost in costs)
    assert found["passed"]
    # two random waits that happen to be alike are a constant interval to it; that waits grow from
    # one to the next on the average is for the tests of the client
    assert {each["code"] for each in found["findings"]} <= {"no_backoff"}
