"""A run of cycles that is kept in a folder, resumed and repeated."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from prism import Run, replay, resume
from prism.errors import InputError
from prism.llm import Model
from prism.programs.thinking import Cycle, Memory
from prism.runs import run_status
from prism.testing import FakeOllama
from tests.kit import kept as runs
from tests.kit.cognition import action, add, limited, thought
from tests.kit.event_schema import faults_of
from tests.kit.files import folder_in_memory

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
        results = runs.begin(options, folder / "run").results
        yield Complete(options, folder / "run", results)


@pytest.fixture
def options(server: FakeOllama, tmp_path: Path) -> Any:
    """Return the options of such a run, with a configuration and a memory of their own."""
    return options_in(tmp_path, server)


@pytest.fixture
def kept(complete: Complete, tmp_path: Path) -> Path:
    """Return a copy of the folder of the complete run."""
    return Path(shutil.copytree(complete.folder, tmp_path / "kept"))


def options_in(folder: Path, server: FakeOllama) -> Any:
    """Return a run with a model and a new memory, in which paging happens."""
    config = folder / "config.json"
    config.write_text(limited(500, 900).to_json())
    data = {"storage": {"entry_1": "old"}, "mine": {"kept": [1]}}
    (folder / "memory").write_text(json.dumps(data))
    model = Model("llama3.2", hosts=(server.url,))
    return Run(config, memory=folder / "memory", rounds=CYCLES, reasoner=model)


def events_of(folder: Path) -> list[dict[str, Any]]:
    """Return the events of a run."""
    return [orjson.loads(line) for line in log_of(folder).splitlines()]


def log_of(folder: Path) -> bytes:
    """Return the bytes of a run's log."""
    return (folder / "events.jsonl").read_bytes()


def memory_of(path: Path) -> Any:
    """Return what is in a memory."""
    with Memory.read(path) as memory:
        return memory.to_dict()


@pytest.mark.slow
def test_every_event_of_a_run_is_of_the_schema(complete: Complete) -> None:
    """The log of a run of cycles holds events of the published schema only, with all their keys."""
    events = events_of(complete.folder)
    assert faults_of(events) == []
    assert {event["event"] for event in events} >= {
        "run.started",
        "round.started",
        "text.written",
        "statechart.transition",
        "cognition.cycle",
        "cognition.action",
        "cognition.paged",
        "round.ended",
        "run.ended",
    }


@pytest.mark.sampled(2)
def test_results_say_what_came_of_the_run(complete: Complete) -> None:
    """Cycles, outcomes, actions, pagings, tokens and sizes are in run.json."""
    options, folder, results = complete.options, complete.folder, complete.results
    assert (results.turns, results.final["cycle"]) == (CYCLES, CYCLES)
    assert sum(results.outcomes.values()) == CYCLES
    assert results.tokens > 0
    summary = json.loads((folder / "run.json").read_text())
    assert summary["results"] == results.to_dict()
    assert run_status(folder).state == "complete"
    with Memory.read(options.memory) as memory:
        assert (len(memory.working), len(memory.storage)) == (
            results.final["memories"],
            results.final["stored"],
        )
        assert memory.unknown == {"mine": {"kept": [1]}}


@pytest.mark.sampled(2)
def test_a_run_is_repeated_without_its_model(
    complete: Complete, server: FakeOllama, tmp_path: Path
) -> None:
    """A replay asks no model, and writes the same log and the same memory; the first one stays."""
    before, asked = complete.options.memory.read_bytes(), len(server.questions)
    again = tmp_path / "again"
    replay(complete.folder, again)
    assert len(server.questions) == asked
    assert log_of(again) == log_of(complete.folder)
    assert complete.options.memory.read_bytes() == (again / "memories/agent.json").read_bytes()
    assert complete.options.memory.read_bytes() == before


class StopError(Exception):
    """Stands for whatever stops a process."""


def stop_after(number: int) -> Any:
    """Return a callback that stops a run after so many cycles."""
    ended: list[Cycle] = []

    def on_round(cycle: Cycle) -> None:
        ended.append(cycle)
        if len(ended) == number:
            raise StopError

    return on_round


def _without_time(event: dict[str, Any]) -> dict[str, Any]:
    measured = ("seconds", "latency", "queue_seconds", "request_seconds")
    return {
        name: value
        for name, value in event.items()
        if name not in measured and not name.endswith("_duration")
    }


@pytest.mark.parametrize("stopped", [1, 5, CYCLES - 1])
@pytest.mark.sampled(6)
def test_a_stopped_run_goes_on(
    complete: Complete, options: Any, tmp_path: Path, stopped: int
) -> None:
    """A resumed run has the log and the memory of one that never stopped."""
    with pytest.raises(StopError):
        runs.begin(options, tmp_path / "run", on_round=stop_after(stopped))
    assert memory_of(options.memory)["prism"]["cycle"] == stopped
    outcome = resume(tmp_path / "run")
    assert outcome is not None
    assert outcome.results.turns == CYCLES
    assert list(map(_without_time, events_of(tmp_path / "run"))) == list(
        map(_without_time, events_of(complete.folder))
    )
    assert complete.options.memory.read_bytes() == options.memory.read_bytes()


@pytest.mark.parametrize("stopped", [1, 6, CYCLES])
@pytest.mark.sampled(6)
def test_a_stopped_replay_is_resumed_to_the_same_bytes(
    complete: Complete, tmp_path: Path, stopped: int
) -> None:
    """Stopped after any cycle, a replayed run goes on to the log of one that never stopped."""
    kept, again = complete.folder, tmp_path / "again"
    with pytest.raises(StopError):
        replay(kept, again, on_round=stop_after(stopped))
    assert resume(again) is not None
    assert log_of(again) == log_of(kept)
    assert complete.options.memory.read_bytes() == (again / "memories/agent.json").read_bytes()
    results = [json.loads((path / "run.json").read_text())["results"] for path in (kept, again)]
    assert results[0] == results[1]


def test_a_memory_that_somebody_changed_since_is_not_overwritten(
    options: Any, tmp_path: Path
) -> None:
    """A run that is resumed repeats its cycles from the journal, and must come to the file's."""
    with pytest.raises(StopError):
        runs.begin(options, tmp_path / "run", on_round=stop_after(2))
    with Memory.open(options.memory) as memory:
        memory.add("by_hand", "x")
        memory.commit()
    with pytest.raises(InputError, match="has changed since the run stopped"):
        resume(tmp_path / "run")
    assert memory_of(options.memory)["working_memory"]["by_hand"] == "x"
