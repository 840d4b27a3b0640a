"""A real llama.cpp server with a model of random weights, in an environment of its own."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from prism.llm import Model
from prism.reasoner import Reasoner
from tests.kit.llama_server import free_port
from tests.kit.modules import environment
from tests.kit.reasoners import crowd
from tests.kit.waiting import wait_until
from tests.llm import tiny_llama

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the model from an environment with llama.cpp, and give the server's address."""
    folder = tmp_path_factory.mktemp("llama")
    python, port = environment(folder / "own", "xllamacpp", "gguf", "numpy"), free_port()

    line = [python, str(Path(tiny_llama.__file__)), folder, str(port)]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: is_there(address), 120)
        yield address
    finally:
        process.terminate()
        process.wait()


def is_there(address: str) -> bool:
    """Return whether the server has loaded its model."""
    try:
        return httpx.get(f"{address}/health").is_success
    except httpx.TransportError:
        return False


async def test_a_letter_that_a_grammar_forced_is_no_choice(address: str) -> None:
    """Where letters have hardly any mass, the model is asked for names, and each one is taken."""
    async with Model("tiny", [address], server="openai").as_client() as pool:
        decisions = await Reasoner(pool, seed=1).decide_many(crowd(16))
    assert {decision.source for decision in decisions} == {"model"}
    assert {decision.question_kind for decision in decisions} == {"name"}
    assert {decision.probabilities for decision in decisions} == {None}


async def test_the_doctor_tells_what_its_letters_are_worth(address: str) -> None:
    """The examination passes, and says that the letters have too little of the probability."""
    async with Model("tiny", [address], server="openai") as model:
        *_, letter, name = [check async for check in model.diagnose()]
    assert letter.ok
    assert "of the probability, so runs ask for names" in letter.found
    assert name.ok
