"""A model, its server and its hosts in one text, its prices and its key, on the command line."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from prism.testing import FakeOllama
from tests.kit.commands import Prism


@pytest.fixture
def server() -> Iterator[FakeOllama]:
    """A model server that chats."""
    with FakeOllama() as started:
        yield started


def test_a_text_says_who_decides(prism: Prism, server: FakeOllama, tmp_path: Path) -> None:
    """The model of a text decides without --reasoner, and run.json says what a bare name would."""
    text = f"ollama:llama3.2@{server.host}"
    small = ("--agents", 8, "--rounds", 1)
    prices = ("--price-in", "0.5", "--price-out", 2)
    done = prism("simulate", *small, "--model", text, *prices, "--out", "run")
    assert (done.status, done.err) == (0, "")
    told = json.loads((tmp_path / "run" / "run.json").read_text())
    config = {name: told["config"][name] for name in ("reasoner", "model", "host", "price_in")}
    assert config == {
        "reasoner": "ollama",
        "model": "llama3.2",
        "host": [server.host],
        "price_in": 0.5,
    }
    assert told["spent"]["money"] > 0
    spent = f"spent: {told['spent']['calls']:,} calls"
    assert spent in done.out
    assert spent in prism("status", "run").out


@pytest.mark.slow
def test_a_dry_run_estimates_and_asks_nobody(
    prism: Prism, server: FakeOllama, tmp_path: Path
) -> None:
    """It says decisions, tokens and money, and leaves neither a folder nor a request."""
    text = f"ollama:llama3.2@{server.host}"
    given = ("--agents", 8, "--rounds", 6, "--model", text, "--price-in", 1, "--dry-run")
    done = prism("simulate", *given, "--out", "run")
    assert done.status == 0
    assert "estimated from 3 of 6 rounds with 8 agents" in done.out
    found = json.loads(prism("simulate", *given, "--json").out)
    model = found["models"]["llama3.2"]
    assert found["money"] == model["money"] > 0
    assert model["decisions"] > 0
    assert f"{model['calls']:,}" in done.out
    assert (server.asked, (tmp_path / "run").exists()) == (0, False)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--model", "openai:llama3.2"), "--host must name an OpenAI-compatible server"),
        (
            ("--model", "ollama:a@http://u:p,w@h"),
            "--model names a host that is not an address",
        ),
        (("--model", "a@h", "--host", "other"), "--host contradicts the text"),
        (("--reasoner", "openai", "--model", "ollama:a@h"), "--reasoner contradicts"),
        (("--model", "a@h", "--key-variable", "sk-1"), "--key-variable must be the name"),
        (("--model", "a@h", "--key-variable", "NOT_SET"), "NOT_SET, which is not set: export"),
        (
            ("--model", "a"),
            "--model must say who serves it: --model ollama:a, or --writer ollama:a",
        ),
        (("--model", "ollama"), "who serves it: --model ollama:MODEL, or --writer ollama:MODEL"),
        (("--dry-run",), "--dry-run needs a model"),
    ],
)
def test_mistakes_are_told_in_one_line(prism: Prism, given: tuple[str, ...], said: str) -> None:
    """Each names the option and what to write; nothing that may be secret is repeated."""
    done = prism("simulate", "--agents", 3, *given)
    assert done.status == 2
    assert said in done.err
    assert done.err.count("\n") == 1
    assert "p,w" not in done.err
