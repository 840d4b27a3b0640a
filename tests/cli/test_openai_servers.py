"""OpenAI-compatible servers as a user asks them: ``--reasoner openai --host URL``."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prism.testing import FakeOpenAI
from tests.kit.commands import Prism

KEY = "sk-1234567890"
RUN = ("simulate", "--agents", 8, "--rounds", 2)

Serve = Callable[..., FakeOpenAI]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a maker of running servers."""
    with ExitStack() as servers:
        yield lambda **settings: servers.enter_context(FakeOpenAI(**settings))


def asking(*servers: FakeOpenAI) -> list[str]:
    """Return the options that name the servers and their model."""
    hosts = [part for server in servers for part in ("--host", server.host)]
    return ["--reasoner", "openai", "--model", "llama3.2", *hosts]


def decisions_in(folder: Path) -> list[dict[str, Any]]:
    """Return the decisions of a run, in the order of its log."""
    lines = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    return [event for event in events if event["event"] == "reasoner.decision"]


@pytest.mark.slow
def test_decisions_have_the_probabilities_that_a_server_gives(prism: Prism, serve: Serve) -> None:
    """Where log-probabilities come back, each decision has those of its options, and is drawn."""
    server = serve()
    ran = prism(*RUN, *asking(server), "--out", "run")
    assert (ran.status, ran.err) == (0, "")
    decisions = decisions_in(prism.folder / "run")
    assert len(decisions) > 5
    for decision in decisions:
        assert (decision["source"], decision["host"], decision["attempts"]) == (
            "model",
            server.host,
            1,
        )
        assert list(decision["probabilities"]) == decision["options"]
        assert sum(decision["probabilities"].values()) == pytest.approx(1, abs=1e-5)


@pytest.mark.slow
def test_without_log_probabilities_a_model_writes_its_choice(prism: Prism, serve: Serve) -> None:
    """A server that gives none is asked to write one of the options, by a schema."""
    server = serve(logprobs=False)
    assert prism(*RUN, *asking(server), "--out", "run").status == 0
    decisions = decisions_in(prism.folder / "run")
    assert {decision["source"] for decision in decisions} == {"model"}
    assert {decision["probabilities"] is None for decision in decisions} == {True}
    assert set(server.questions[-1].options) == set(decisions[-1]["options"])


@pytest.mark.slow
def test_a_run_is_replayed_from_its_log(prism: Prism, serve: Serve) -> None:
    """Decisions of such a server are repeated without it, to the same bytes."""
    assert prism(*RUN, *asking(serve()), "--out", "run").status == 0
    assert prism("replay", "run", "--out", "again").status == 0
    first, again = (prism.folder / name / "events.jsonl" for name in ("run", "again"))
    assert first.read_bytes() == again.read_bytes()


@pytest.mark.parametrize("key", [KEY, "sk-another"])
@pytest.mark.sampled(2)
def test_the_key_is_in_no_file_and_no_message(prism: Prism, serve: Serve, key: str) -> None:
    """A right key is sent and a wrong one is repeated by the server; neither is written down."""
    server = serve(key=KEY)
    prism = replace(prism, environment={"OPENAI_API_KEY": key})
    ran = prism(*RUN, *asking(server), "--out", "run")
    assert f"Bearer {key}" in server.authorizations
    assert key not in ran.out + ran.err

    files = [path for path in (prism.folder / "run").rglob("*") if path.is_file()]
    assert len(files) > 1
    assert not any(key.encode() in path.read_bytes() for path in files)
    sources = {decision["source"] for decision in decisions_in(prism.folder / "run")}
    assert sources == ({"model"} if key == KEY else {"fallback"})


def test_such_a_server_has_no_usual_address(prism: Prism) -> None:
    """Without --host a command says what is missing."""
    ran = prism("doctor", "--reasoner", "openai", "--model", "m")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == (
        "prism: --host must name an OpenAI-compatible server, which has no default address\n"
    )
