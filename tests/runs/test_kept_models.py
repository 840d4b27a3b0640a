"""What a notebook makes with a model is kept, resumed and replayed like all else."""

import gc
import json
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import ollama
import pytest

from prism import Run, replay, resume
from prism.analysis import read_log
from prism.cli._results import spent_lines
from prism.errors import InputError, ReplayError
from prism.examples.council import Council
from prism.llm import Model
from prism.programs.thinking import Config
from prism.runs import PolicyOptions, WriterOptions
from prism.runs.status import spent_in
from prism.science import rerun
from prism.social import Feed
from prism.testing import Asked, FakeOllama, FakeOpenAI
from prism.worlds import World, during
from tests.kit.cognition import thought
from tests.kit.kept import StoppedError, stop_after
from tests.kit.servers import Gate
from tests.kit.worlds import Mood, Teller

AGENT = """
workflow:
  state_machine:
    states: [resting, writing]
    initial_state: resting
  steps:
    - {name: greet, type: llm, prompt: Greet Bo., output: text}
"""


def client_of(host: str) -> ollama.AsyncClient:
    """Return Ollama's own client; it leaves no connection behind, about which Python would warn."""
    return ollama.AsyncClient(host, headers={"Connection": "close"})


def say(prompt: str, *_more: object) -> str:
    """Write what a thinking agent can use, and to all others a greeting."""
    is_thinking = "You are in the state thinking" in prompt
    return thought(next_state="executing") if is_thinking else "Hello."


@pytest.fixture(params=["ollama", "openai", "client"])
def model(request: pytest.FixtureRequest) -> Iterator[Any]:
    """What stands for a model: a text, a `Model`, a client of another library."""
    if request.param == "openai":
        with FakeOpenAI(write=say) as server:
            yield Model("llama3.2", server.host, server="openai", price_in=1)
        return

    with FakeOllama(write=say) as server:
        if request.param == "ollama":
            yield f"ollama:llama3.2@{server.host}"
        else:
            yield Model("llama3.2", client=client_of(server.host))


def feed(model: Any, folder: Path) -> Any:
    return Run(Feed, 8, rounds=3, ticks=4, model=model, writer=WriterOptions())


def world(model: Any, folder: Path) -> Any:
    return Run("rumour", 10, rounds=3, model=model)


def workflow(model: Any, folder: Path) -> Any:
    (folder / "agent.yaml").write_text(AGENT)
    return Run(folder / "agent.yaml", rounds=3, model=model)


def thinking(model: Any, folder: Path) -> Any:
    (folder / "config.json").write_text(Config().to_json())
    return Run(folder / "config.json", memory=folder / "memory.json", rounds=3, model=model)


@pytest.mark.parametrize("make", [feed, world, workflow, thinking])
@pytest.mark.sampled(15)
def test_a_run_with_a_model_is_kept_resumed_and_replayed(
    make: Callable[[Any, Path], Any], model: Any, tmp_path: Path
) -> None:
    """Its folder says the model; stopped, it goes on, and replayed it is the same."""
    folder, options = tmp_path / "run", make(model, tmp_path)
    with pytest.raises(StoppedError):
        options.keep(folder, on_round=stop_after(2))
    told = json.loads((folder / "run.json").read_text())["config"]
    assert told["model"] == "llama3.2"

    again: dict[str, Any] = {}
    if told["reasoner"] == "client":
        assert told["client"] == "ollama.AsyncClient"
        with pytest.raises(InputError, match=r"ollama.AsyncClient, which cannot be saved: pass it"):
            resume(folder)
        again = {"model": model}

    outcome = resume(folder, **again)
    assert outcome is not None
    assert outcome.summary["spent"]["calls"] > 0
    replay(folder, tmp_path / "again")
    log = "events.jsonl"
    assert (tmp_path / "again" / log).read_bytes() == (folder / log).read_bytes()


@pytest.mark.parametrize("how", [{"rotations": "all"}, {"rotations": "drawn", "temperature": 1.0}])
def test_how_a_decision_was_asked_is_replayed(how: dict[str, Any], tmp_path: Path) -> None:
    """A replay writes what the log says about rotations, without a model; run.json has sampling."""
    with FakeOllama() as server:
        model = Model("llama3.2", server.host, **how)
        summary = Run("vaccination", 8, rounds=1, model=model).keep(tmp_path / "run").summary
    sent = {"temperature": how.get("temperature", 0.0), "top_p": 1, "top_k": 0, "min_p": 0}
    assert summary["sampling"] == {"llama3.2": sent}
    replay(tmp_path / "run", tmp_path / "again")
    log = (tmp_path / "run" / "events.jsonl").read_bytes()
    rows = read_log(tmp_path / "run").sql("from events where rotations_apart is not null")
    assert bool(rows.fetchall()) is (how["rotations"] == "all")
    assert (tmp_path / "again" / "events.jsonl").read_bytes() == log


def test_a_budget_holds_over_kills(tmp_path: Path) -> None:
    """However often a run is stopped, it sends as many requests as it may, and no more."""
    with FakeOllama() as server:
        model = Model("llama3.2", server.host, max_calls=25)
        with pytest.raises(StoppedError):
            Run(Feed, 20, rounds=4, model=model).keep(tmp_path / "run", on_round=stop_after(1))
        with pytest.raises(StoppedError):
            resume(tmp_path / "run", on_round=stop_after(2))
        outcome = resume(tmp_path / "run")
        assert outcome is not None
        assert server.asked == outcome.summary["spent"]["calls"] == 25


def test_requests_under_way_at_an_interruption_are_counted(tmp_path: Path) -> None:
    """They were sent and are paid for, though their answers were lost and are asked for again."""
    numbers, gate = count(1), Gate()

    def choose(asked: Asked) -> str:
        if next(numbers) == 10:
            os.kill(os.getpid(), signal.SIGINT)
            gate()
        return asked.options[0]

    with FakeOllama(choose=choose) as server:
        model = Model("llama3.2", server.host, mode="chat", price_in=1)
        with pytest.raises(KeyboardInterrupt):
            Run(Feed, 20, rounds=2, seed=1, model=model).keep(tmp_path / "run")
        gate.is_open = True
        sent, stopped = server.asked, spent_in(tmp_path / "run")
        outcome = resume(tmp_path / "run")
        asked = server.asked
    assert stopped is not None
    assert outcome is not None
    # one that was about to be sent counts, too
    assert sent <= stopped["calls"] <= sent + 4
    assert stopped["calls"] > stopped["by_model"]["llama3.2"]["calls"]
    assert stopped["money"] == stopped["by_model"]["llama3.2"]["money"] > 0
    spent = outcome.summary["spent"]
    of_model = spent["by_model"]["llama3.2"]
    assert asked <= spent["calls"] <= asked + 4
    assert of_model["answers"] == of_model["calls"] < spent["calls"]
    lost = spent["calls"] - of_model["calls"]
    assert f"({lost} without an answer, tokens unknown)" in next(spent_lines(spent))


@pytest.mark.parametrize(("tokens", "lost"), [(0, " (4 without an answer, tokens"), (9, ", 9")])
def test_requests_without_any_answer_are_lost(tokens: int, lost: str) -> None:
    """Of a run that was killed before the first; a client that names no model has answered."""
    assert next(spent_lines({"calls": 4, "tokens": tokens})).startswith(f"spent: 4 calls{lost}")


def test_what_is_left_of_a_deadline_counts_after_a_resume(tmp_path: Path) -> None:
    """The seconds of earlier processes are in the journal."""
    journal = tmp_path / "run" / "answers.jsonl"
    with FakeOllama() as server:
        model = Model("llama3.2", server.host, deadline=3600)
        run = Run(Feed, 20, rounds=3, seed=1, model=model)
        with pytest.raises(StoppedError):
            run.keep(tmp_path / "run", on_round=stop_after(1))
        *_, last = map(json.loads, journal.read_text().splitlines())
        assert 0 < last["seconds"] < 3600
        with journal.open("a") as file:
            file.write(json.dumps({"id": "call", "kind": "call", "seconds": 3600}) + "\n")
        asked, outcome = server.asked, resume(tmp_path / "run")
        assert server.asked == asked
    totals = outcome.results.totals() if outcome else {}
    unanswered = totals["decisions_asked"] - totals["decisions_answered"]
    assert totals["fallbacks"] == {"BudgetSpentError": unanswered}


@pytest.mark.slow
def test_a_run_that_goes_on_from_another_pays_for_its_own_answers(tmp_path: Path) -> None:
    """Stopped and resumed, its calls are those that the server gets, in total and by model."""
    base, again = tmp_path / "base", tmp_path / "again"
    with FakeOllama() as server:
        model = Model("llama3.2", server.host, mode="chat")
        Run(Feed, 20, rounds=4, seed=1, model=model).keep(base)
        before = server.asked
        with pytest.raises(StoppedError):
            rerun(base, again, from_round=3, on_round=stop_after(3))
        asked, stopped = server.asked - before, spent_in(again)
        outcome = resume(again)
        assert stopped is not None
        assert outcome is not None
        for calls, spent in ((asked, stopped), (server.asked - before, outcome.summary["spent"])):
            assert spent["calls"] == spent["by_model"]["llama3.2"]["calls"] == calls > 0


def test_a_question_that_has_changed_is_an_error(tmp_path: Path) -> None:
    """A replay asks what the run asked; the message names answer, round and tick."""
    with FakeOllama() as server:
        Run(Feed, 8, rounds=2, model=Model("llama3.2", server.host)).keep(tmp_path / "run")
    answers = tmp_path / "run" / "answers.jsonl"
    lines = answers.read_text().splitlines()
    first, *rest = (each for each in lines if '"kind":"decision"' in each)
    line = json.loads(first)
    answers.write_text("\n".join([json.dumps({**line, "digest": "0"}), *rest, ""]))
    with pytest.raises(ReplayError, match=rf"{line['id']} .*another question \(round 1, tick"):
        replay(tmp_path / "run")
    answers.write_text("\n".join([*rest, ""]))
    with pytest.raises(ReplayError, match=f"the journal has no answer {line['id']}"):
        replay(tmp_path / "run")


class Patient(World[Teller]):
    """One agent decides in all rounds, the others begin in a round that stands in the code."""

    begins: ClassVar[int] = 3

    @during(Mood.CALM)
    async def hear(self, teller: Teller) -> None:
        if teller.agent_id == "teller_1" or self.round >= self.begins:
            await teller.decide("hears", prompt=f"It is round {self.round}.")


def test_code_that_is_restored_locks_no_run_out(tmp_path: Path) -> None:
    """What other code asked until it was refused answers nothing, and stays in the journal."""
    folder = tmp_path / "run"
    with FakeOllama(choose=lambda _: "calm") as server:
        run = Run(Patient, 2, model=Model("llama3.2", server.host))
        with pytest.raises(StoppedError):
            run.keep(folder, on_round=stop_after(2))
        Patient.begins = 2
        with pytest.raises(ReplayError, match="does not do the same"):
            resume(folder)
        Patient.begins = 3
        resume(folder)
        assert json.loads((folder / "run.json").read_text())["spent"]["calls"] == server.asked
    assert (folder / "answers.jsonl").read_text().count('{"id":"teller_2:1"') == 2
    assert replay(folder).results.rounds[1].counts["decisions_asked"] == 1


def test_a_run_that_asks_servers_takes_no_client(tmp_path: Path) -> None:
    """A client that would not be asked is refused where it is given."""
    with FakeOllama() as server:
        run = Run(Feed, 3, rounds=2, ticks=2, model=Model("llama3.2", server.host))
        with pytest.raises(StoppedError):
            run.keep(tmp_path / "servers", on_round=stop_after(1))
        with pytest.raises(InputError, match="the run has no client of another library"):
            resume(tmp_path / "servers", model=client_of(server.host))


def test_a_model_and_a_policy_cannot_both_decide(tmp_path: Path) -> None:
    """What names two deciders is refused where it is made; a new model takes an old one's place."""
    with pytest.raises(InputError, match="has no effect beside a reasoner"):
        _ = Run(Feed, 3, model="llama3.2", reasoner=PolicyOptions("policy.json")).agents
    with pytest.raises(InputError, match="has no effect beside a reasoner"):
        _ = Run(Council(), 5, model="llama3.2", reasoner=object()).agents  # type: ignore[arg-type]

    writer = WriterOptions(Model("other", max_calls=3))
    with pytest.raises(InputError, match="must have no max_calls: that of the deciding model"):
        _ = Run(Feed, 3, model="llama3.2", writer=writer).agents

    run = Run(Feed, 3, model="small").replace(model="large")
    assert run.reasoner == Model("large")


@pytest.mark.slow
def test_a_client_serves_one_run_after_the_other() -> None:
    """Each run has an event loop of its own; connections left in the last one cost no decision."""
    # Python warns of those that nobody can close any more
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        with FakeOllama() as server:
            model = Model("llama3.2", client=ollama.AsyncClient(server.host))
            for _ in range(3):
                totals = Run(Feed, 8, rounds=1, model=model).run().totals()
                assert totals["decisions_answered"] == totals["decisions_asked"] > 0

        del model
        gc.collect()
