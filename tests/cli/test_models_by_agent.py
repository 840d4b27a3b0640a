"""Models by kind of agent as a user asks for them: ``--models models.toml``."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.llm import Model
from prism.social import Feed
from prism.testing import FakeOllama, FakeOpenAI
from tests.kit.commands import Prism
from tests.kit.dice import StoppedError, stop_after
from tests.kit.event_schema import faults_of

jsonschema = pytest.importorskip("jsonschema")

RUN = ("simulate", "--agents", 24, "--rounds", 2)


@pytest.fixture
def servers() -> Iterator[tuple[FakeOllama, FakeOpenAI]]:
    """Return an Ollama server with two models, and another server."""
    with ExitStack() as stack:
        yield (
            stack.enter_context(FakeOllama(models=["tiny", "llama3.2"], latency=0.002)),
            stack.enter_context(FakeOpenAI(models=["large"])),
        )


@pytest.fixture
def models(prism: Prism, servers: tuple[FakeOllama, FakeOpenAI]) -> Path:
    """Return a file of models: two on the Ollama server, one on the other."""
    path = prism.folder / "models.toml"
    path.write_text(
        f"""\
model = "tiny"
host = "{servers[0].host}"
concurrency = 3

[archetype.contributor]
model = "llama3.2"

[agent."agent_001*"]
server = "openai"
host = "{servers[1].host}"
model = "large"
temperature = 0.7
""",
        encoding="utf-8",
    )
    return path


def events_of(folder: Path) -> list[dict[str, Any]]:
    """Return the events of a run's log."""
    lines = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def model_for(agent_id: str, archetypes: Mapping[str, str]) -> str:
    if agent_id.startswith("agent_001"):
        return "large"
    return "llama3.2" if archetypes[agent_id] == "contributor" else "tiny"


@pytest.mark.slow
def test_each_agent_has_its_model(
    prism: Prism, models: Path, servers: tuple[FakeOllama, FakeOpenAI]
) -> None:
    """Agents ask the models of the file, within the limit of each, and the log tells it."""
    ran = prism(*RUN, "--models", models, "--out", "run")
    assert (ran.status, ran.err) == (0, "")
    events = events_of(prism.folder / "run")
    archetypes = {
        event["agent_id"]: event["archetype"]
        for event in events
        if event["event"] == "agent.joined"
    }
    decisions = [event for event in events if event["event"] == "reasoner.decision"]
    assert {event["model"] for event in decisions} == {"tiny", "llama3.2", "large"}
    for event in decisions:
        assert event["model"] == model_for(event["agent_id"], archetypes)
        assert event["source"] == "model"

    first, last = events[0], events[-1]
    told = {entry["for"]: (entry["agents"], entry["model"]) for entry in first["models"]}
    assert told["agent agent_001*"] == (10, "large")
    assert sum(agents for agents, _ in told.values()) == 24
    assert {
        model: sum(event["attempts"] for event in decisions if event["model"] == model)
        for model in last["costs"]
    } == {model: costs["calls"] for model, costs in last["costs"].items()}
    assert faults_of([first, last]) == []

    said = prism("status", "run").out.splitlines()
    costs = last["costs"]["large"]
    read, written = costs["input_tokens"], costs["output_tokens"]
    assert f"  large: {costs['calls']} calls, {read:,} tokens read, {written:,} written" in said

    summary = json.loads((prism.folder / "run" / "run.json").read_text())
    assert summary["spent"]["by_model"] == last["costs"]
    # three for each of its two models
    assert servers[0].most_at_once <= 6
    assert {asked.body["temperature"] for asked in servers[1].questions[1:]} == {0.7}


@pytest.mark.slow
def test_a_run_is_replayed_and_resumed(prism: Prism, models: Path) -> None:
    """A replay writes the same log, models and costs included; a run that broke off goes on."""
    assert prism(*RUN, "--models", models, "--out", "run").status == 0
    assert prism("replay", "run", "--out", "again").status == 0
    log = (prism.folder / "run" / "events.jsonl").read_bytes()
    assert (prism.folder / "again" / "events.jsonl").read_bytes() == log

    options = Run(Feed, "24", rounds=2, reasoner=Model.from_file(models))
    broken = prism.folder / "broken"
    with pytest.raises(StoppedError):
        options.keep(broken, on_round=lambda summary: stop_after(1)(summary.number))
    models.unlink()  # what it said is in run.json
    assert prism("resume", broken).status == 0
    events = events_of(broken)
    calls = sum(event["attempts"] for event in events if event["event"] == "reasoner.decision")
    assert sum(costs["calls"] for costs in events[-1]["costs"].values()) == calls


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[kind.Lurker]\ntemperature = 1", "line 3, field 'kind.Lurker': matches no agent of this"),
        ("[archetype.x]\nmodle = 'a'", "line 4, field 'archetype.x.modle': is unknown"),
    ],
)
def test_a_table_for_nobody_is_refused(prism: Prism, table: str, message: str) -> None:
    """A mistake in the file is one line with its place, and nothing is written."""
    file = prism.folder / "models.toml"
    file.write_text(f'model = "tiny"\nhost = "http://127.0.0.1:1"\n{table}\n')
    ran = prism(*RUN, "--models", "models.toml", "--out", "run")
    assert (ran.status, list(prism.folder.iterdir())) == (2, [file])
    # not a word of the server, which has not been asked for the models yet
    (line,) = ran.err.splitlines()
    assert message in line


def test_a_missing_archetype_is_told(prism: Prism, servers: tuple[FakeOllama, FakeOpenAI]) -> None:
    """A small run may have no superuser: the run says so, and goes on."""
    file = prism.folder / "models.toml"
    file.write_text(
        f'model = "tiny"\nhost = "{servers[0].host}"\n[archetype.superuser]\nmodel = "llama3.2"\n'
    )
    ran = prism("simulate", "--agents", 5, "--rounds", 1, "--models", "models.toml")
    assert (ran.status, ran.err.count("no agent in this run has this archetype")) == (0, 1)
