"""The model of a run: what happens before its first round, and after its last."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from prism.errors import ModelMissingError, UnreachableError
from prism.llm import Model
from prism.runs._loading import load_model
from prism.runs._makers import make_reasoner, make_writer
from prism.runs._running import askers_in, run_to_end, spent_by
from prism.statechart import AgentState
from prism.testing import FakeOllama, FakeOpenAI, Fault

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
    asked = Model("llama3.2", hosts=hosts, mode="chat", **options)
    return make_reasoner(asked, 0, AgentState.SCROLLING)


def load(reasoner: Any, deadline: float | None = None, **options: Any) -> tuple[list[str], ...]:
    """Load the model; return the notes and the warnings."""
    notes: list[str] = []
    warnings: list[str] = []
    run_to_end(
        load_model(
            askers_in(reasoner),
            deadline,
            notes.append,
            warnings.append,
            may_end=getattr(reasoner, "stop_at", None) is not None,
            **options,
        )
    )
    return notes, warnings


def test_a_loaded_model_is_no_news(servers: list[FakeOllama]) -> None:
    """Where the model is loaded nothing is said, and nothing is asked of it yet."""
    assert load(reasoner_at(servers[0]), quiet_seconds=60) == ([], [])
    assert servers[0].questions == []


def test_waiting_for_a_model_is_announced_and_ends(servers: list[FakeOllama]) -> None:
    """A run waits for its only server no longer than its deadline, and says what it waits for."""
    _, silent = servers
    assert load(reasoner_at(silent), deadline=0.1, quiet_seconds=0.01) == (
        [f"waiting for llama3.2 to be loaded at {silent.host}"],
        [
            f"llama3.2 is not loaded at {silent.host} yet; "
            "while that lasts, decisions will fall back (see: prism doctor)"
        ],
    )


def test_loading_counts_in_the_budget(servers: list[FakeOllama]) -> None:
    """A token that is asked for to load a model has its price; Ollama loads one for nothing."""
    with FakeOpenAI(models=["llama3.2"]) as server:
        asked = Model("llama3.2", server="openai", hosts=(server.host,), price_in=1)
        reasoner = make_reasoner(asked, 0, AgentState.SCROLLING)
        load(reasoner)
        assert len(server.questions) == 1
    assert reasoner.budget.calls == 1
    assert reasoner.budget.tokens > 0
    spent = spent_by(reasoner, models=[asked])["spent"]
    trial = spent["trials"]["llama3.2"]
    assert trial["calls"] == 1
    assert trial["input_tokens"] + trial["output_tokens"] == reasoner.budget.tokens
    assert spent["money"] == trial["money"] == trial["input_tokens"] / 1e6
    free = reasoner_at(servers[0])
    load(free)
    assert (free.budget.calls, free.budget.tokens) == (0, 0)


EVERYTHING = (None, LOAD, "/api/version", "/api/show", "/api/tags")
FAILURES = [
    (Fault.status(401, "unauthorized"), "answered 401: unauthorized"),
    (Fault.status(500, "out of memory"), "answered 500: out of memory"),
    (Fault.body(b"yes"), "sent an invalid reply"),
    (Fault.drop(), "the connection to"),
]
LASTS = "; while that lasts, decisions will fall back (see: prism doctor)"


@pytest.mark.parametrize(("fault", "said"), FAILURES, ids=[said for _, said in FAILURES])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.sampled(4)
def test_it_is_said_when_every_decision_will_fall_back(fault: Fault, said: str, count: int) -> None:
    """Where no server answers a question, whatever the reason, that is said before the run."""
    with ExitStack() as stack:
        servers = [stack.enter_context(FakeOllama()) for _ in range(count)]
        for server in servers:
            for path in EVERYTHING:
                server.fail_always(fault, path=path)
        notes, warnings = load(reasoner_at(*servers), quiet_seconds=60)
    assert notes == []
    assert len(warnings) == count
    assert all(said in warning for warning in warnings)
    assert all(warning.endswith(LASTS) for warning in warnings)


@pytest.fixture
def nobody() -> str:
    """Return the address of a server that has gone."""
    with FakeOllama() as server:
        return server.host


@pytest.mark.parametrize(
    "options", [{}, {"patience": 0}, {"stop_at_fallbacks": "never"}], ids=["default", "0", "never"]
)
def test_a_server_that_refuses_connections_is_an_error_at_once(
    nobody: str, options: dict[str, Any]
) -> None:
    """A run whose only server is not there does not begin."""
    asked = Model("llama3.2", hosts=(nobody,), **options)
    with pytest.raises(UnreachableError, match="cannot reach"):
        load(make_reasoner(asked, 0, AgentState.SCROLLING))


def test_a_model_that_no_server_has_is_an_error_at_once(servers: list[FakeOllama]) -> None:
    """A run does not begin with nothing but fallbacks, however few decisions it would have."""
    asked = Model("llama9", hosts=(servers[0].host,))
    with pytest.raises(ModelMissingError, match="not found: run ollama pull llama9"):
        load(make_reasoner(asked, 0, AgentState.SCROLLING))


def test_a_run_that_never_waits_nor_ends_begins_without_its_server(nobody: str) -> None:
    """Who wants to go on whatever happens is only told that nothing answers."""
    asked = Model("llama3.2", hosts=(nobody,), patience=0, stop_at_fallbacks="never")
    _, (warning,) = load(make_reasoner(asked, 0, AgentState.SCROLLING))
    assert warning.endswith(LASTS)


def test_a_writer_whose_server_refuses_connections_is_an_error_at_once(nobody: str) -> None:
    """A run that has a model write does not begin without it, either."""
    with pytest.raises(UnreachableError, match="cannot reach"):
        load(make_writer(Model("llama3.2", hosts=(nobody,)), 0))


def test_where_one_server_answers_the_others_are_named() -> None:
    """Where some servers answer, those that do not are named, and not every decision falls back."""
    with FakeOllama() as well, FakeOllama() as closed:
        for path in EVERYTHING:
            closed.fail_always(Fault.status(401, "unauthorized"), path=path)
        _, warnings = load(reasoner_at(well, closed), quiet_seconds=60)
    assert warnings == [
        f"llama3.2 at {closed.host} answered 401: unauthorized: run ollama signin on that machine, "
        "or give a key in OLLAMA_API_KEY; while that lasts, decisions will fall back "
        "(see: prism doctor)"
    ]
