"""What is wrong with a server, in words to act on."""

import pytest

from prism.llm import Check, Model
from prism.testing import Asked, FakeOllama, FakeOpenAI, Fault
from tests.kit.servers import BOTH, Serve
from tests.kit.waiting import MOST_SECONDS

STEPS = ["server", "load", "letter", "name"]


def idle(asked: Asked) -> str:
    """Choose the same in any order."""
    return "idle" if "idle" in asked.options else "Hello."


async def findings(server: FakeOllama, model: str, timeout: float = 5) -> list[Check]:
    """Examine a server, and return what was found."""
    kind = "openai" if isinstance(server, FakeOpenAI) else "ollama"
    async with Model(
        model, server.host, server=kind, timeout=timeout, load_timeout=timeout
    ) as asked:
        return [check async for check in asked.diagnose() if check.ok is not None]


@BOTH
async def test_a_good_server_passes(serve: Serve) -> None:
    """Where all is well every step is, and tells what it found and how long it took."""
    server = serve(choose=idle)
    found = await findings(server, "tiny")
    assert [(check.what, check.ok) for check in found] == [(step, True) for step in STEPS]
    assert found[0].result.startswith(f"{server.host} has tiny, one of ")
    for check in found[-2:]:
        assert check.result.startswith("answers idle 100%, scrolling 0%, composing 0% on average")
        assert not check.is_doubtful


@BOTH
async def test_a_model_that_takes_the_first_place_is_found_out(serve: Serve) -> None:
    """Where the order of the options decides more than the question, both kinds say so."""
    found = await findings(serve(choose=lambda asked: next(iter(asked.options), "Hello.")), "tiny")
    for check in found[-2:]:
        assert (check.ok, check.is_doubtful) == (True, True)
        assert "the order changes up to 100% of an answer" in check.result
        assert "equal by position to 100%" in check.result


@BOTH
async def test_letters_that_say_little_are_reported(serve: Serve) -> None:
    """It says what runs then do, with few log-probabilities or none at all."""
    server = serve()
    server.fail_always(Fault.weighs({"A": 0.02, "Sure": 0.9}))
    (letter,) = [check for check in await findings(server, "tiny") if check.what == "letter"]
    assert letter.result.startswith("the letters have 2% of the probability, so runs ask for names")
    found = await findings(serve(logprobs=False), "tiny")
    assert "gives no log-probabilities" in found[-2].result


@pytest.mark.parametrize(
    ("path", "fault", "last", "words"),
    [
        ("/api/tags", Fault.status(401), "server", "ollama signin"),
        ("/api/tags", Fault.hang(), "server", "no complete reply from tiny"),
        ("/api/generate", Fault.hang(), "load", "no complete reply from tiny"),
        (None, None, "server", "check that 'ollama serve' is running there"),
        (None, Fault.says("I would rather not."), "name", "chose none of the options"),
        ("/api/chat", Fault.status(500), "name", "answered 500"),
    ],
    ids=["401", "silent", "slow load", "gone", "prose", "500"],
)
@pytest.mark.sampled(3)
async def test_each_kind_of_trouble_is_found(
    path: str | None, fault: Fault | None, last: str, words: str, server: FakeOllama
) -> None:
    """The last step is the one that fails, and says why and what to do."""
    if fault is None:
        server.stop()
    else:
        server.fail_always(fault, path=path)
    # only what hangs is waited for so long
    found = await findings(server, "tiny", timeout=2 if "no complete" in words else MOST_SECONDS)
    assert (found[-1].what, found[-1].ok) == (last, False)
    assert words in found[-1].result


@pytest.mark.parametrize(
    ("model", "is_there"), [("vast", False), ("tiny", True), ("library/tiny:latest", True)]
)
async def test_a_model_that_ollama_does_not_list_is_not_there(
    model: str, is_there: bool, serve: Serve
) -> None:
    """The list has models by any of their names; what is missing is to be pulled."""
    found = await findings(serve(models=["tiny", model] if is_there else ["tiny"]), model)
    assert found[0].ok is is_there
    if not is_there:
        assert f"not among its models (tiny); run  ollama pull {model}" in found[0].result
