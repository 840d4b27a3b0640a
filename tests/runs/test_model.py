"""The model of a run: what happens before its first round, and after its last."""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from prism.errors import InputError
from prism.llm import AnswerCache
from prism.runs import ModelOptions
from prism.runs._model import closing_cache, load_model, spent_by
from prism.runs._options import make_reasoner
from prism.statechart import AgentState, PolicyReasoner
from prism.testing import FakeOllama, Fault

LOAD = "/api/generate"


@pytest.fixture
def servers() -> Iterator[list[FakeOllama]]:
    """Return two servers; the second never loads its model."""
    with ExitStack() as stack:
        running = [stack.enter_context(FakeOllama()) for _ in range(2)]
        running[1].fail_always(Fault.hang(), path=LOAD)
        yield running


def reasoner_at(*servers: FakeOllama, **options: Any) -> Any:
    """Make a reasoner that asks some servers."""
    hosts = tuple(server.host for server in servers)
    asked = ModelOptions("llama3.2", host=hosts, mode="chat", **options)
    return make_reasoner(asked, 0, AgentState.SCROLLING)


def load(reasoner: Any, deadline: float | None = None, **options: Any) -> tuple[list[str], ...]:
    """Load the model; return the notes and the warnings."""
    notes: list[str] = []
    warnings: list[str] = []
    load_model(reasoner, deadline, notes.append, warnings.append, **options)
    return notes, warnings


def test_a_loaded_model_is_no_news(servers: list[FakeOllama]) -> None:
    """Where the model is loaded nothing is said, and nothing is asked of it yet."""
    assert load(reasoner_at(servers[0]), quiet_seconds=60) == ([], [])
    assert servers[0].questions == []


def test_one_server_is_enough_to_begin(servers: list[FakeOllama]) -> None:
    """A server that does not load its model is named, and the run does not wait for it."""
    _, warnings = load(reasoner_at(*servers))
    (warning,) = warnings
    assert warning == (
        f"llama3.2 is not loaded at {servers[1].host} yet; "
        "its decisions will fall back (see: prism doctor)"
    )


def test_waiting_for_a_model_is_announced_and_ends(servers: list[FakeOllama]) -> None:
    """A run waits for its only server no longer than its deadline, and says what it waits for."""
    _, silent = servers
    assert load(reasoner_at(silent), deadline=0.1, quiet_seconds=0.01) == (
        [f"waiting for llama3.2 to be loaded at {silent.host}"],
        [
            f"llama3.2 is not loaded at {silent.host} yet; "
            "until that is mended every decision will fall back (see: prism doctor)"
        ],
    )


def test_a_policy_has_no_model_to_load() -> None:
    """A reasoner without a model is not loaded, and has spent nothing."""
    assert load(PolicyReasoner()) == load(None) == ([], [])
    assert spent_by(PolicyReasoner()) == spent_by(None) == {}


def test_spending_is_that_of_the_budget(servers: list[FakeOllama]) -> None:
    """What a model has cost is its budget's calls and tokens."""
    reasoner = reasoner_at(servers[0])
    reasoner.budget.take()
    reasoner.budget.add(tokens=7)
    assert spent_by(reasoner) == {"spent": {"calls": 1, "tokens": 7}}


def test_a_cache_that_cannot_be_written_is_a_warning(
    tmp_path: Path, servers: list[FakeOllama], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers that cannot be written at the end of a run are a warning."""

    def fail(cache: AnswerCache) -> None:
        raise InputError("is locked", path=tmp_path / "answers.db")

    warnings: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(AnswerCache, "close", fail)
        with closing_cache(reasoner_at(servers[0], cache=tmp_path / "answers.db"), warnings.append):
            pass
    assert warnings == [f"{tmp_path / 'answers.db'}: is locked; the last answers are not in it"]


def test_a_cache_is_closed_when_a_run_ends(tmp_path: Path, servers: list[FakeOllama]) -> None:
    """The file of answers is closed at the end of a run, so that others can write it."""
    path = tmp_path / "answers.db"
    with closing_cache(reasoner_at(servers[0], cache=path), pytest.fail):
        pass
    with sqlite3.connect(path) as other:
        other.execute("BEGIN EXCLUSIVE")
    other.close()
