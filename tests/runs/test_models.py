"""The models of a run: loaded before its first round, and what they have cost in the end."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest

from prism import Run
from prism.analysis import read_log
from prism.errors import ModelMissingError, UnreachableError
from prism.llm import Model
from prism.runs import Observer, WriterOptions
from prism.runs.running import carry_out
from prism.social import Feed
from prism.testing import FakeOllama, FakeOpenAI, Fault

LOAD = "/api/generate"
EVERYTHING = (None, LOAD, "/api/version", "/api/show", "/api/tags")
LASTS = "; while that lasts, decisions fall back and texts are missing (see: prism doctor)"


class Heard(Observer):
    """Keeps what a run says, and ends it before its first round."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.warnings: list[str] = []

    def note(self, message: str) -> None:
        self.notes.append(message)

    def warn(self, message: str) -> None:
        self.warnings.append(message)

    def started(self, run: Any) -> None:
        raise KeyboardInterrupt


def load(**options: Any) -> Heard:
    """Load the models of a run; return what was said."""
    heard = Heard()
    with pytest.raises(KeyboardInterrupt):
        carry_out(Run("rumour", 10, rounds=1, **options), None, observer=heard)
    return heard


@pytest.fixture
def nobody() -> str:
    """Return the address of a server that has gone."""
    with FakeOllama() as server:
        return server.host


@pytest.fixture
def server() -> Iterator[FakeOllama]:
    with FakeOllama() as running:
        yield running


def test_a_loaded_model_is_no_news(server: FakeOllama) -> None:
    """Where the model is loaded nothing is said, and nothing is asked of it yet."""
    heard = load(model=Model("llama3.2", server.host))
    assert (heard.notes, heard.warnings) == ([], [])
    assert server.questions == []


def test_waiting_for_a_model_is_announced_and_ends(
    server: FakeOllama, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run waits for its only server no longer than its deadline, and says what it waits for."""
    monkeypatch.setattr("prism.runs._models._QUIET_SECONDS", 0.01)
    server.fail_always(Fault.hang(), path=LOAD)
    heard = load(model=Model("llama3.2", server.host, deadline=0.1))
    assert heard.notes == [f"waiting for llama3.2 to be loaded at {server.host}"]
    assert heard.warnings == [f"llama3.2 is not loaded at {server.host} yet{LASTS}"]


FAILURES = [
    (Fault.status(401, "unauthorized"), "answered 401: unauthorized"),
    (Fault.status(500, "out of memory"), "answered 500: out of memory"),
    (Fault.body(b"yes"), "sent an invalid reply"),
    (Fault.drop(), "the connection to"),
]


@pytest.mark.parametrize(("fault", "reason"), FAILURES, ids=[reason for _, reason in FAILURES])
@pytest.mark.sampled(2)
def test_each_server_that_will_not_answer_is_named(fault: Fault, reason: str) -> None:
    """Whatever the reason, that is said before the run; one that answers is no news."""
    with ExitStack() as stack:
        servers = [stack.enter_context(FakeOllama()) for _ in range(3)]
        for each in servers[1:]:
            for path in EVERYTHING:
                each.fail_always(fault, path=path)
        heard = load(model=Model("llama3.2", tuple(each.host for each in servers)))
    assert len(heard.warnings) == 2
    for each, warning in zip(servers[1:], heard.warnings, strict=True):
        assert each.url in warning
        assert reason in warning
        assert warning.endswith(LASTS)


@pytest.mark.parametrize("options", [{}, {"patience": 0}, {"stop_at_fallbacks": "never"}])
@pytest.mark.parametrize("name", ["model", "writer"])
@pytest.mark.sampled(2)
def test_a_run_whose_only_server_is_not_there_does_not_begin(
    name: str, options: dict[str, Any], nobody: str, tmp_path: Path
) -> None:
    """Neither where a model decides nor where one writes; no folder is left."""
    if name == "writer":
        options.pop("stop_at_fallbacks", None)
        options.pop("patience", None)
    run: Any = Run(Feed, 3, **{name: Model("llama3.2", nobody, **options)})
    with pytest.raises(UnreachableError, match="cannot reach"):
        run.keep(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_model_that_no_server_has_is_an_error_at_once(server: FakeOllama) -> None:
    """A run does not begin with nothing but fallbacks, however few decisions it would have."""
    with pytest.raises(ModelMissingError, match="not found: run ollama pull llama9"):
        Run("rumour", 10, model=Model("llama9", server.host)).run()


def test_a_run_that_never_waits_nor_ends_begins_without_its_server(nobody: str) -> None:
    """Who wants to go on whatever happens is only told that nothing answers."""
    heard = load(model=Model("llama3.2", nobody, patience=0, stop_at_fallbacks="never"))
    (warning,) = heard.warnings
    assert warning.endswith(LASTS)


def test_one_server_of_two_that_is_not_there_ends_no_run(server: FakeOllama, nobody: str) -> None:
    """It is named, and the other is asked."""
    (warning,) = load(model=Model("llama3.2", (server.host, nobody))).warnings
    assert nobody in warning
    assert warning.endswith(LASTS)


def test_a_model_that_its_server_does_not_list_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Some servers answer with the model that they have, whatever the request says."""
    reply = orjson.dumps({"choices": [{"message": {"content": "x"}}]})
    with FakeOpenAI(models=["other.gguf"]) as server:
        server.fail_always(Fault.body(reply))
        for name in ("llama3.2", "other.gguf"):
            load(model=Model(name, server.host, server="openai"))
        server.fail_always(Fault.status(500, "broken"), path="/v1/models")
        load(model=Model("qwen3", server.host, server="openai"))
    (warning,) = (each.getMessage() for each in caplog.records)
    assert warning.startswith(f"llama3.2 at {server.url} is not among its models (other.gguf)")


def test_loading_counts_in_the_budget() -> None:
    """A token that is asked for to load a model has its price; Ollama loads one for nothing."""
    with FakeOpenAI(models=["llama3.2"]) as server:
        model = Model("llama3.2", server.host, server="openai")
        run = Run("rumour", 10, rounds=1, model=model)
        spent = carry_out(run, None).summary["spent"]
        of_model = spent["by_model"]["llama3.2"]
        assert (
            spent["calls"] == len(server.questions) == of_model["calls"] == of_model["answers"] + 1
        )
        assert of_model["loading"] == 1


# Money

NAMED_ELSE = {
    **{"model": "llama3.2-2026-01", "created_at": "2026-01-01T00:00:00Z", "done": True},
    **{"message": {"role": "assistant", "content": '{"next_state": "scrolling"}'}},
    **{"prompt_eval_count": 50, "eval_count": 5},
}


def spent_by(folder: Path, **options: Any) -> dict[str, Any]:
    """Keep a short run; return what it has spent."""
    summary = Run(Feed, 6, rounds=2, seed=2, **options).keep(folder / "run").summary
    spent: dict[str, Any] = summary["spent"]
    return spent


def test_a_run_says_what_it_has_spent(tmp_path: Path) -> None:
    """The summary has the money in all and by model; what fell back is no answer."""
    with FakeOllama(choose=lambda *_: "nowhere") as server:
        model = Model("llama3.2", server.host, price_in=1, stop_at_fallbacks="never")
        spent = spent_by(tmp_path, model=model)
    of_model = spent["by_model"]["llama3.2"]
    assert of_model["answers"] == 0 < of_model["calls"] == spent["calls"]
    assert spent["money"] == of_model["money"] == of_model["input_tokens"] / 1e6


def test_each_model_has_its_own_prices(tmp_path: Path) -> None:
    """A writer of another name has none of the decider's, and one's own where it says so."""
    with FakeOllama(models=["llama3.2", "mistral"]) as server:
        model = Model("llama3.2", server.host, price_in=1, price_out=4)
        writer = WriterOptions(Model("mistral", server.host, price_out=2))
        spent = spent_by(tmp_path, model=model, writer=writer)
    decides, writes = (spent["by_model"][name] for name in ("llama3.2", "mistral"))
    assert decides["money"] == pytest.approx(
        (decides["input_tokens"] + 4 * decides["output_tokens"]) / 1e6, abs=1e-6
    )
    assert writes["money"] == pytest.approx(2 * writes["output_tokens"] / 1e6, abs=1e-6)
    assert spent["money"] == pytest.approx(decides["money"] + writes["money"], abs=1e-6)


def test_a_server_that_names_its_model_differently_is_paid_for(tmp_path: Path) -> None:
    """A run with one model has its prices, whatever the replies call it."""
    with FakeOllama() as server:
        server.fail_always(Fault.body(orjson.dumps(NAMED_ELSE)))
        model = Model("llama3.2", server.host, price_in=1, mode="chat", stop_at_fallbacks="never")
        spent = spent_by(tmp_path, model=model)
    of_model = spent["by_model"]["llama3.2-2026-01"]
    assert spent["money"] == of_model["money"] == of_model["input_tokens"] / 1e6 > 0


def test_one_name_at_two_prices_is_paid_for(server: FakeOllama, tmp_path: Path) -> None:
    """Each answer has its own price."""
    model = Model("llama3.2", server.host, price_in=1)
    writer = WriterOptions(Model("llama3.2", server.host, price_in=2))
    spent = spent_by(tmp_path, model=model, writer=writer)
    of_model = spent["by_model"]["llama3.2"]
    assert of_model["money"] == spent["money"]
    assert 1 < spent["money"] / of_model["input_tokens"] * 1e6 < 2


def test_the_money_that_a_server_reports_is_taken(tmp_path: Path) -> None:
    """As gateways give it with the tokens: in the journal, the log and the summary; no price is."""
    reply = {
        "choices": [{"message": {"content": '{"next_state": "scrolling"}'}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1, "cost": 0.00025},
    }
    with FakeOpenAI(models=["llama3.2"]) as server:
        server.fail_always(Fault.body(orjson.dumps(reply)))
        model = Model(
            "llama3.2",
            server.host,
            server="openai",
            price_in=1,
            mode="chat",
            stop_at_fallbacks="never",
        )
        spent = spent_by(tmp_path, model=model)
    assert spent["money"] == spent["by_model"]["llama3.2"]["money"]
    assert spent["money"] == pytest.approx(0.00025 * spent["calls"])
    (row,) = read_log(tmp_path / "run").rows("costs")
    assert row["money"] == pytest.approx(0.00025 * row["calls"])
