"""A run of cycles that is kept in a folder, resumed and repeated."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from prism import Run, replay, resume
from prism.errors import InputError
from prism.llm import Model
from prism.programs.thinking import Memory
from prism.runs import run_status
from prism.testing import FakeOllama
from tests.kit.cognition import action, add, limited, thought
from tests.kit.files import folder_in_memory
from tests.kit.kept import StoppedError, stop_after

CYCLES = 10


def say(prompt: str, *_more: Any) -> str:
    """Reply to a prompt: think, add, think, save, as the state asks."""
    size = len(prompt)
    if "You are in the state thinking" in prompt:
        return thought(f"{size} of it, entry_{size % 5}", "executing" if size % 7 else "dancing")

    kinds = (
        add(f"entry_{size}", f"a value of {size} " * 12),
        action("storage_save", f"entry {size % 5}", f"kept {size}"),
        action("storage_load", f"entry {size % 5}"),
        action("storage_burn", "all"),
    )
    return kinds[size % 4] if size % 3 else kinds[0]


class Complete(NamedTuple):
    """A complete run with a model, at which tests look only."""

    options: Any
    folder: Path
    results: Any


@pytest.fixture(scope="module")
def server() -> Iterator[FakeOllama]:
    """Return a server whose model writes."""
    with FakeOllama(write=say) as running:
        yield running


@pytest.fixture(scope="module")
def complete(server: FakeOllama) -> Iterator[Complete]:
    """Return a complete run."""
    with folder_in_memory() as folder:
        options = options_in(folder, server)
        results = options.keep(folder / "run").results
        yield Complete(options, folder / "run", results)


def options_in(folder: Path, server: FakeOllama) -> Any:
    """Return a run with a model and a new memory, in which paging happens."""
    config = folder / "config.json"
    config.write_text(limited(500, 900).to_json())
    data = {"storage": {"entry_1": "old"}, "mine": {"kept": [1]}}
    (folder / "memory").write_text(json.dumps(data))
    model = Model("llama3.2", hosts=(server.url,))
    return Run(config, memory=folder / "memory", rounds=CYCLES, reasoner=model)


def log_of(folder: Path) -> bytes:
    """Return the bytes of a run's log."""
    return (folder / "events.jsonl").read_bytes()


def test_results_say_what_came_of_the_run(complete: Complete) -> None:
    """Cycles, outcomes, actions, pagings, tokens and sizes are in run.json."""
    options, folder, results = complete.options, complete.folder, complete.results
    assert (results.turns, results.final["cycle"]) == (CYCLES, CYCLES)
    assert sum(results.outcomes.values()) == CYCLES
    assert results.tokens > 0
    assert json.loads((folder / "run.json").read_text())["results"] == results.to_dict()
    assert run_status(folder).state == "complete"
    with Memory.read(options.memory) as memory:
        sizes = (len(memory.working), len(memory.storage))
        assert sizes == (results.final["memories"], results.final["stored"])
        assert memory.unknown == {"mine": {"kept": [1]}}


@pytest.mark.parametrize("stopped", [1, 6, CYCLES])
@pytest.mark.sampled(2)
def test_a_stopped_run_goes_on_and_is_repeated_without_its_model(
    complete: Complete, server: FakeOllama, tmp_path: Path, stopped: int
) -> None:
    """A resumed run and a resumed replay leave the log and the memory of one that never stopped."""
    options, run, again = options_in(tmp_path, server), tmp_path / "run", tmp_path / "again"
    with pytest.raises(StoppedError):
        options.keep(run, on_round=stop_after(stopped))
    assert Memory.read(options.memory).cycle == stopped
    assert resume(run).results.turns == CYCLES
    names = [
        [orjson.loads(line)["event"] for line in log_of(folder).splitlines()]
        for folder in (run, complete.folder)
    ]
    assert names[0] == names[1]
    memory, asked = complete.options.memory.read_bytes(), len(server.questions)
    assert options.memory.read_bytes() == memory

    with pytest.raises(StoppedError):
        replay(run, again, on_round=stop_after(stopped))
    assert resume(again) is not None
    assert len(server.questions) == asked
    assert log_of(again) == log_of(run)
    assert (again / "memories/agent.json").read_bytes() == memory
    assert options.memory.read_bytes() == memory


def test_a_spent_budget_ends_the_run_and_its_replay(server: FakeOllama, tmp_path: Path) -> None:
    """At once, and for the same reason."""
    model = Model("llama3.2", hosts=(server.url,), max_calls=3)
    results = options_in(tmp_path, server).replace(reasoner=model).keep(tmp_path / "run").results
    assert results.stopped == "BudgetSpentError: budget spent: 3 calls"
    again = replay(tmp_path / "run", tmp_path / "again")
    assert (again.results, results.turns < CYCLES) == (results, True)
    assert log_of(tmp_path / "again") == log_of(tmp_path / "run")


def test_a_memory_that_somebody_changed_since_is_not_overwritten(
    server: FakeOllama, tmp_path: Path
) -> None:
    """A run that is resumed repeats its cycles from the journal, and must come to the file's."""
    options = options_in(tmp_path, server)
    with pytest.raises(StoppedError):
        options.keep(tmp_path / "run", on_round=stop_after(2))
    with Memory.open(options.memory) as memory:
        memory.add("by_hand", "x")
        memory.commit()
    with pytest.raises(InputError, match="has changed since the run stopped"):
        resume(tmp_path / "run")
    assert Memory.read(options.memory).working["by_hand"] == "x"
