"""A real llama.cpp server with a model of random weights, in an environment of its own."""

import socket
import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from prism.llm import Model
from prism.reasoner import Reasoner
from tests.kit import tiny_llama
from tests.kit.reasoners import crowd
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the model from an environment with llama.cpp, and give the server's address."""
    folder = tmp_path_factory.mktemp("llama")
    venv.create(folder / "own", with_pip=True)
    python = next(path for path in folder.glob("own/*/python*") if path.is_file())
    install = ["-m", "pip", "install", "--quiet", "xllamacpp", "gguf", "numpy"]
    subprocess.run([python, *install], check=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

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


async def test_a_choice_that_a_grammar_forced_has_no_probability(address: str) -> None:
    """Where letters have hardly any mass every choice is taken, and none is said to be certain."""
    async with Model("tiny", [address], server="openai").as_client() as pool:
        decisions = await Reasoner(pool, mode="decision", seed=1).decide_many(crowd(16))
    assert {decision.source for decision in decisions} == {"model"}
    for decision in decisions:
        assert decision.option_mass is not None
        assert (decision.probabilities is None) == (decision.option_mass < 0.5)
    assert {decision.probabilities for decision in decisions} == {None}


async def test_its_chats_are_answers(address: str) -> None:
    """With a schema it writes one of the options, whatever its weights."""
    async with Model("tiny", [address], server="openai").as_client() as pool:
        decisions = await Reasoner(pool, mode="chat", seed=1).decide_many(crowd(8))
    assert {decision.source for decision in decisions} == {"model"}


async def test_the_doctor_tells_what_its_letters_are_worth(address: str) -> None:
    """The examination passes, and says that there are no probabilities."""
    async with Model("tiny", [address], server="openai") as model:
        *_, check = [check async for check in model.diagnose()]
    assert check.ok
    assert "without probabilities" in check.found
