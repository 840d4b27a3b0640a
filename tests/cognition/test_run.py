"""A run of cycles that is kept in a folder, resumed and repeated."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest

from prism import runs
from prism.cognition import CognitiveRun, Config, Cycle, Memory
from prism.errors import InputError, ReplayError
from prism.runlog._schema import json_schema
from prism.runs import ModelOptions, run_status
from prism.testing import FakeOllama
from tests.kit.cognition import action, add, limited, thought

CYCLES = 16


def say(prompt: str, *_more: Any) -> str:
    """Reply to a prompt: think, add, think, save, as the state asks."""
    size = len(prompt)
    if "You are in the state thinking" in prompt:
        return thought(f"{size} of it, entry_{size % 5}", "executing" if size % 7 else "dancing")

    kinds = (
        add(f"entry_{size}", f"a value of {size} " * 8),
        action("storage_save", f"entry {size % 5}", f"kept {size}"),
        action("storage_load", f"entry {size % 5}"),
        action("storage_burn", "all"),
    )
    return kinds[size % 4] if size % 3 else kinds[0]


@pytest.fixture
def server() -> Iterator[FakeOllama]:
    """Return a server whose model writes."""
    with FakeOllama(write=say) as running:
        yield running


@pytest.fixture(params=["json", "sqlite"])
def options(tmp_path: Path, server: FakeOllama, request: pytest.FixtureRequest) -> CognitiveRun:
    """Return a run with a model, in which paging happens."""
    config = tmp_path / "config.json"
    config.write_text(limited(600, 800).to_json())
    memory = tmp_path / "memory"
    with Memory.create(
        memory, {"storage": {"entry_1": "old"}, "mine": {"kept": [1]}}, storage=request.param
    ):
        pass
    model = ModelOptions("llama3.2", host=(server.url,))
    return CognitiveRun(config, memory, cycles=CYCLES, goal="to be brief", reasoner=model)


@pytest.fixture
def kept(options: CognitiveRun, tmp_path: Path) -> Path:
    """Return the folder of a complete run with a model."""
    runs.begin(options, tmp_path / "run")
    return tmp_path / "run"


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


def repeated(folder: Path) -> Path:
    """Return the memory of a repeated run."""
    (found,) = (path for path in folder.glob("memory.*") if path.suffix in (".json", ".sqlite"))
    return found


def assert_same_memory(one: Path, other: Path) -> None:
    """Assert that two memories are the same: JSON to the byte, databases in what they hold."""
    assert memory_of(one) == memory_of(other)
    if other.suffix == ".json":
        assert one.read_bytes() == other.read_bytes()


def test_every_event_of_a_run_is_of_the_schema(kept: Path) -> None:
    """The log of a run of cycles holds events of the published schema only, with all their keys."""
    validator = jsonschema.Draft202012Validator(json_schema(strict=True))
    events = events_of(kept)
    assert [error.message for event in events for error in validator.iter_errors(event)] == []
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


def test_results_say_what_came_of_the_run(options: CognitiveRun, tmp_path: Path) -> None:
    """Cycles, outcomes, actions, pagings, tokens and sizes are in run.json."""
    outcome = runs.begin(options, tmp_path / "run")
    results = outcome.results
    assert (results.cycles, results.cycle) == (CYCLES, CYCLES)
    assert sum(results.outcomes.values()) == CYCLES
    assert results.pagings > 0
    assert results.tokens > 0
    summary = json.loads((tmp_path / "run" / "run.json").read_text())
    assert summary["results"] == results.to_dict()
    assert run_status(tmp_path / "run").state == "complete"
    with Memory.read(options.memory) as memory:
        assert (len(memory.working), memory.stored_count) == (results.memories, results.stored)
        assert memory.unknown == {"mine": {"kept": [1]}}


def test_a_run_is_repeated_without_its_model(
    options: CognitiveRun, kept: Path, server: FakeOllama
) -> None:
    """A replay asks no model, and writes the same log and the same memory; the first one stays."""
    server.stop()
    before = options.memory.read_bytes()
    again = kept.parent / "again"
    runs.replay(kept, CognitiveRun, again)
    assert log_of(again) == log_of(kept)
    assert_same_memory(options.memory, repeated(again))
    assert options.memory.read_bytes() == before


@pytest.mark.sampled(2)
def test_a_replay_needs_no_folder(options: CognitiveRun, kept: Path) -> None:
    """Without a folder a replay's memory is nowhere, and its results are the same."""
    before = options.memory.read_bytes()
    outcome = runs.replay(kept, CognitiveRun)
    first = json.loads((kept / "run.json").read_text())["results"]
    assert outcome.results.to_dict() == first
    assert options.memory.read_bytes() == before


@pytest.mark.sampled(2)
def test_a_replay_is_replayed(kept: Path) -> None:
    """A repeated run can be repeated in its turn."""
    runs.replay(kept, CognitiveRun, kept.parent / "again")
    runs.replay(kept.parent / "again", CognitiveRun, kept.parent / "third")
    assert log_of(kept.parent / "third") == log_of(kept)


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


@pytest.mark.parametrize("stopped", [1, 5, 15])
@pytest.mark.sampled(3)
def test_a_stopped_run_goes_on(options: CognitiveRun, tmp_path: Path, stopped: int) -> None:
    """A resumed run has the log and the memory of one that never stopped."""
    beside = tmp_path / "beside"
    data = memory_of(options.memory)
    storage = "sqlite" if options.memory.read_bytes().startswith(b"SQLite") else "json"
    Memory.create(beside, data, storage=storage).close()
    runs.begin(options, tmp_path / "whole")

    other = CognitiveRun(**{**_fields(options), "memory": beside})
    with pytest.raises(StopError):
        runs.begin(other, tmp_path / "run", on_round=stop_after(stopped))
    assert memory_of(beside)["prism"]["cycle"] == stopped
    outcome = runs.resume(tmp_path / "run", CognitiveRun)
    assert outcome is not None
    assert outcome.results.cycles == CYCLES
    assert list(map(_without_time, events_of(tmp_path / "run"))) == list(
        map(_without_time, events_of(tmp_path / "whole"))
    )
    assert memory_of(beside) == memory_of(options.memory)
    if storage == "json":
        assert beside.read_bytes() == options.memory.read_bytes()


def _fields(options: CognitiveRun) -> dict[str, Any]:
    return {name: getattr(options, name) for name in CognitiveRun.__dataclass_fields__}


@pytest.mark.parametrize("stopped", [1, 6, CYCLES])
@pytest.mark.sampled(3)
def test_a_stopped_replay_is_resumed_to_the_same_bytes(
    options: CognitiveRun, kept: Path, stopped: int
) -> None:
    """Stopped after any cycle, a replayed run goes on to the log of one that never stopped."""
    again = kept.parent / "again"
    with pytest.raises(StopError):
        runs.replay(kept, CognitiveRun, again, on_round=stop_after(stopped))
    assert runs.resume(again, CognitiveRun) is not None
    assert log_of(again) == log_of(kept)
    assert_same_memory(options.memory, repeated(again))
    results = [json.loads((path / "run.json").read_text())["results"] for path in (kept, again)]
    assert results[0] == results[1]


@pytest.mark.sampled(2)
def test_a_memory_that_was_changed_is_gone_on_from(options: CognitiveRun, tmp_path: Path) -> None:
    """A change between stop and resume stays, is told, and is repeated by a replay."""
    out = tmp_path / "run"
    with pytest.raises(StopError):
        runs.begin(options, out, on_round=stop_after(4))
    with Memory.open(options.memory) as memory:
        memory.add("by_hand", "written by somebody else")
        memory.commit()
    assert runs.resume(out, CognitiveRun) is not None
    assert memory_of(options.memory)["prism"]["cycle"] == CYCLES
    (event,) = [each for each in events_of(out) if each["event"] == "cognition.memory_changed"]
    assert (event["round"], event["cycle"], event["expected_cycle"]) == (4, 4, 4)

    for number in (3, 4, 5, CYCLES):
        again = tmp_path / f"again_{number}"
        with pytest.raises(StopError):
            runs.replay(out, CognitiveRun, again, on_round=stop_after(number))
        runs.resume(again, CognitiveRun)
        assert log_of(again) == log_of(out)
        assert_same_memory(options.memory, repeated(again))
    assert "by_hand" in {
        **memory_of(options.memory)["working_memory"],
        **memory_of(options.memory)["storage"],
    }


@pytest.mark.sampled(2)
def test_a_second_run_goes_on_with_the_memory(options: CognitiveRun, tmp_path: Path) -> None:
    """A memory is used by one run after another, and each is repeated from where it began."""
    runs.begin(options, tmp_path / "first")
    runs.begin(options, tmp_path / "second")
    assert memory_of(options.memory)["prism"]["cycle"] == 2 * CYCLES
    runs.replay(tmp_path / "first", CognitiveRun, tmp_path / "again")
    runs.replay(tmp_path / "second", CognitiveRun, tmp_path / "more")
    assert log_of(tmp_path / "more") == log_of(tmp_path / "second")
    assert_same_memory(options.memory, repeated(tmp_path / "more"))


@pytest.mark.sampled(2)
def test_max_iterations_bounds_a_run_with_its_resumes(
    options: CognitiveRun, tmp_path: Path
) -> None:
    """The cycles before a stop count."""
    config = Config.load(options.config)
    short = Config(
        paging_limit=config.paging_limit,
        hard_limit=config.hard_limit,
        iterate=type(config.iterate)(max_iterations=5),
    )
    options.config.write_text(short.to_json())
    with pytest.raises(StopError):
        runs.begin(options, tmp_path / "run", on_round=stop_after(3))
    outcome = runs.resume(tmp_path / "run", CognitiveRun)
    assert outcome is not None
    assert (outcome.results.cycles, memory_of(options.memory)["prism"]["cycle"]) == (5, 5)


@pytest.mark.sampled(2)
def test_the_options_are_in_run_json(options: CognitiveRun, kept: Path) -> None:
    """What a run is can be read from its folder again, and how its memory is stored with it."""
    config = json.loads((kept / "run.json").read_text())["config"]
    read = CognitiveRun.from_config(config, kept / "run.json")
    assert read.storage in ("json", "sqlite")
    assert {**_fields(read), "storage": None} == _fields(options)


def test_a_run_whose_configuration_changed_is_not_resumed(
    options: CognitiveRun, tmp_path: Path
) -> None:
    """The configuration has to be what it was when the run began."""
    with pytest.raises(StopError):
        runs.begin(options, tmp_path / "run", on_round=stop_after(2))
    options.config.write_text(options.config.read_text() + "\n")
    with pytest.raises(InputError, match=r"is not what it was when the run in .* began"):
        runs.resume(tmp_path / "run", CognitiveRun)


@pytest.mark.sampled(2)
def test_a_replay_beyond_the_log_says_so(options: CognitiveRun, kept: Path) -> None:
    """More cycles than were recorded have no texts."""
    other = CognitiveRun(**{**_fields(options), "cycles": CYCLES + 1}).replaying(kept)
    with pytest.raises(ReplayError, match="holds no"):
        runs.begin(other)


@pytest.mark.sampled(2)
def test_a_replay_that_fails_at_once_leaves_no_folder(kept: Path) -> None:
    """Where the log does not fit from the beginning, nothing is left of the attempt."""
    before = json.loads((kept / "memory_before.json").read_text())
    before["working_memory"] = {"other": "memory"}
    (kept / "memory_before.json").write_text(json.dumps(before))
    with pytest.raises(ReplayError, match="for another prompt"):
        runs.replay(kept, CognitiveRun, kept.parent / "again")
    assert not (kept.parent / "again").exists()


@pytest.mark.sampled(2)
def test_a_run_need_not_be_kept(options: CognitiveRun) -> None:
    """Without a folder the memory is changed all the same."""
    outcome = runs.begin(options)
    assert memory_of(options.memory)["prism"]["cycle"] == outcome.results.cycle == CYCLES


@pytest.mark.sampled(2)
def test_a_replay_needs_the_folder_of_the_run(options: CognitiveRun, kept: Path) -> None:
    """A log alone does not say what the memory was."""
    (kept / "memory_before.json").unlink()
    with pytest.raises(ReplayError, match=r"holds no memory_before\.json"):
        runs.replay(kept, CognitiveRun)


def test_a_run_needs_somebody_who_writes(options: CognitiveRun, tmp_path: Path) -> None:
    """Without a model and without a log there is no run, and nothing is written."""
    with pytest.raises(InputError, match="name the model"):
        runs.begin(CognitiveRun(options.config, options.memory), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.sampled(2)
def test_a_memory_in_use_is_refused(options: CognitiveRun, tmp_path: Path) -> None:
    """A run does not begin with a memory that another process has open, and leaves no folder."""
    with Memory.open(options.memory), pytest.raises(InputError, match="process"):
        runs.begin(options, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_memory_that_cannot_be_opened_is_refused(options: CognitiveRun, tmp_path: Path) -> None:
    """A memory in a folder that there is not is named, and nothing is written."""
    elsewhere = CognitiveRun(**{**_fields(options), "memory": tmp_path / "no" / "memory.json"})
    with pytest.raises(InputError, match="cannot be opened: No such file"):
        runs.begin(elsewhere, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "bad",
    [
        {"cycles": 0},
        {"seed": 2**60},
        {"agent_id": ""},
        {"agent_id": "\ud800"},
        {"goal": "\ud800"},
        {"storage": "paper"},
    ],
)
def test_options_out_of_range_are_refused(tmp_path: Path, bad: dict[str, Any]) -> None:
    """What no run can be, or JSON has no room for, is refused at once."""
    with pytest.raises(InputError):
        CognitiveRun(tmp_path / "c.json", tmp_path / "m.json", **bad)


@pytest.mark.sampled(2)
def test_a_model_that_fails_fails_cycles(options: CognitiveRun, server: FakeOllama) -> None:
    """A run whose model is gone comes to its end, every cycle failed and counted."""
    server.stop()
    outcome = runs.begin(options, options.memory.parent / "run")
    assert outcome.results.outcomes["failed"] >= CYCLES - 1
    assert outcome.results.cycle == CYCLES
