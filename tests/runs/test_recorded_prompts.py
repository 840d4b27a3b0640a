"""Runs that record their prompts: stopped, killed, resumed and replayed."""

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest

from prism import Run, replay, resume
from prism.errors import InputError
from prism.llm import Model
from prism.runlog import read_prompts
from prism.runs import Observer, WriterOptions
from prism.social import Feed
from prism.testing import FakeOllama
from tests.kit import processes
from tests.kit.commands import MAIN
from tests.kit.kept import begin
from tests.kit.models import varied
from tests.kit.waiting import has_ended, wait_until

ROUNDS = 4
IDS = ("decision_id", "text_id")


class StoppedError(Exception):
    """Stops a run between two rounds."""


def options(server: FakeOllama, agents: int = 25, rounds: int = ROUNDS) -> Run[Any]:
    model = Model("llama3.2", hosts=(server.host,), record_prompts=True)
    words = WriterOptions()
    return Run(Feed, agents, rounds=rounds, seed=5, reasoner=model, writer=words)


def logged(folder: Path) -> list[dict[str, Any]]:
    """Return the decisions and texts of a log."""
    lines = (folder / "events.jsonl").read_bytes().splitlines()
    events = map(orjson.loads, lines)
    return [event for event in events if event["event"] in ("reasoner.decision", "text.written")]


def require_one_record_each(folder: Path) -> list[str]:
    """Require that every decision of the log has its record, once; return the ids in order."""
    recorded = {record["id"]: record for record in read_prompts(folder)}
    counts = Counter(record["id"] for record in read_prompts(folder))
    events = logged(folder)
    ids = [next(event[name] for name in IDS if name in event) for event in events]
    assert counts == Counter(ids)
    for record_id, event in zip(ids, events, strict=True):
        record = recorded[record_id]
        for name in ("agent_id", "round", "tick", "source"):
            assert record[name] == event[name]
        if "chosen" in event:
            assert (record["chosen"], record["options"]) == (event["chosen"], event["options"])
    return ids


@pytest.fixture
def server() -> Any:
    """Return a server whose answers depend on the prompt alone, and come when they like."""
    draw = random.Random(1)
    words = '{"text": "Rooks are overrated."}'
    with FakeOllama(
        choose=varied, write=lambda *_: words, latency=lambda: draw.uniform(0, 0.005)
    ) as running:
        yield running


def test_records_have_the_tick_to_which_their_question_belongs(tmp_path: Path) -> None:
    """Also those of readers who ask late, when others are ticks ahead."""
    with FakeOllama(choose=varied, latency=0.004, slots=4) as server:
        model = Model("llama3.2", hosts=(server.host,), record_prompts=True)
        Run(Feed, 40, rounds=3, seed=5, reasoner=model).keep(tmp_path / "run")
    assert require_one_record_each(tmp_path / "run")


@pytest.mark.slow
def test_a_run_stopped_after_each_round_has_every_record_once(
    server: FakeOllama, tmp_path: Path
) -> None:
    """Resumed at every round, a run has the ids of one that was never stopped, one record each."""

    def stop(_: Any) -> None:
        raise StoppedError

    options(server).keep(tmp_path / "whole")
    ids = require_one_record_each(tmp_path / "whole")
    with pytest.raises(StoppedError):
        options(server).keep(tmp_path / "run", on_round=stop, checkpoint_every=0)
    for _ in range(ROUNDS - 1):
        with pytest.raises(StoppedError):
            resume(tmp_path / "run", on_round=stop, checkpoint_every=0)
    resume(tmp_path / "run")
    assert require_one_record_each(tmp_path / "run") == ids
    assert len(set(ids)) == len(ids) > 20


@pytest.mark.slow
def test_a_run_without_a_checkpoint_begins_its_record_again(
    server: FakeOllama, tmp_path: Path
) -> None:
    """What was recorded before the first checkpoint is asked, and recorded, again."""

    def stop(_: Any) -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        options(server).keep(tmp_path / "run", on_round=stop, checkpoint_every=600)
    assert list(read_prompts(tmp_path / "run"))
    resume(tmp_path / "run")
    require_one_record_each(tmp_path / "run")


@pytest.mark.slow
def test_a_replayed_run_writes_the_same_ids(server: FakeOllama, tmp_path: Path) -> None:
    """The log of a replay is that of the run, ids included; it records nothing of its own."""
    options(server, agents=10, rounds=2).keep(tmp_path / "run")
    replay(tmp_path / "run", tmp_path / "again")
    first, again = (tmp_path / name / "events.jsonl" for name in ("run", "again"))
    assert first.read_bytes() == again.read_bytes()
    assert len(logged(tmp_path / "run")) > 20
    assert not (tmp_path / "again" / "prompts.jsonl.gz").exists()


def test_texts_of_a_workflow_are_recorded(tmp_path: Path) -> None:
    """Every text that a workflow's model wrote has its record."""
    pytest.importorskip("yaml")
    (tmp_path / "agent.yaml").write_text(
        "state_machine: {states: [a], transitions: [a->a]}\n"
        "steps: [{name: look, type: llm, prompt: 'Look.'}]\n"
    )
    said = '{"reasoning": "so", "action": {"type": "wait"}}'
    with FakeOllama(write=lambda *_: said) as server:
        model = Model("llama3.2", hosts=(server.host,), record_prompts=True)
        begin(Run(tmp_path / "agent.yaml", rounds=3, reasoner=model), tmp_path / "run")
    assert require_one_record_each(tmp_path / "run") == ["agent:1", "agent:2", "agent:3"]


@pytest.mark.slow
def test_the_run_says_what_is_private(server: FakeOllama, tmp_path: Path) -> None:
    """A line at the start of the run names the file, and what stands in it."""
    said: list[str] = []

    class Listening(Observer):
        def note(self, message: str) -> None:
            said.append(message)

    options(server).keep(tmp_path / "run", observer=Listening())
    assert any("prompts.jsonl.gz" in line and "private" in line for line in said)


def test_prompts_need_a_folder(server: FakeOllama) -> None:
    """A run that is not kept cannot record its prompts, and says so before it begins."""
    with pytest.raises(InputError, match="needs a folder"):
        options(server).run()
    assert server.asked == 0


def test_a_model_that_only_writes_is_recorded(server: FakeOllama, tmp_path: Path) -> None:
    """Where the policy decides and a model writes, the texts have ids and records."""
    words = WriterOptions(Model("llama3.2", hosts=(server.host,), record_prompts=True))
    Run(Feed, 10, rounds=2, writer=words).keep(tmp_path / "run")
    texts = [event for event in logged(tmp_path / "run") if event["event"] == "text.written"]
    ids = [record["id"] for record in read_prompts(tmp_path / "run")]
    assert sorted(ids) == sorted(event["text_id"] for event in texts) != []


@pytest.mark.slow
def test_a_lost_file_is_not_begun_anew(server: FakeOllama, tmp_path: Path) -> None:
    """A run whose prompts were taken away is not resumed without them."""

    def stop(_: Any) -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        options(server).keep(tmp_path / "run", on_round=stop, checkpoint_every=0)
    (tmp_path / "run" / "prompts.jsonl.gz").rename(tmp_path / "aside")
    with pytest.raises(InputError, match="is missing: restore it"):
        resume(tmp_path / "run")
    (tmp_path / "aside").rename(tmp_path / "run" / "prompts.jsonl.gz")
    resume(tmp_path / "run")
    require_one_record_each(tmp_path / "run")


@pytest.mark.long
@pytest.mark.parametrize("number", range(6))
def test_a_killed_run_has_every_record_once(number: int, tmp_path: Path) -> None:
    """Killed at any instant, again and again, the final log has one record for each decision."""
    draw = random.Random(number)
    with FakeOllama(choose=varied, latency=0.004, slots=4) as server:
        begin = ("--agents", "40", "--rounds", "8", "--reasoner", "ollama", "--model", "llama3.2")
        began = (*begin, "--host", server.host, "--record-prompts", "--out", "run")
        whole = [sys.executable, "-c", MAIN, "simulate", *began[:-1], "whole"]
        processes.run(whole, cwd=tmp_path, check=True, capture_output=True)
        questions = server.asked
        kills = 0
        for _ in range(40):
            is_begun = (tmp_path / "run" / "run.json").exists()
            line: tuple[str, ...] = ("resume", "run") if is_begun else ("simulate", *began)
            with processes.start(
                [sys.executable, "-c", MAIN, *line, "--checkpoint-every", "0"],
                cwd=tmp_path,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            ) as process:
                if kills < 8:
                    enough = server.asked + draw.uniform(0.1, 0.4) * questions
                    wait_until(
                        lambda enough=enough, run=process: server.asked > enough or has_ended(run)
                    )
                    process.kill()
                _, said = process.communicate()
            kills += process.returncode < 0
            assert process.returncode in (0, -9), said.decode()
            if process.returncode == 0:
                break
        assert kills
    require_one_record_each(tmp_path / "run")
