"""Posts whose words a model writes."""

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from signal import SIGKILL
from typing import Any

import orjson
import pytest

from prism import Run, resume
from prism.agents import synthetic_population
from prism.llm import Model
from prism.runlog import ReplayReasoner, ReplayWriter
from prism.runs import WriterOptions
from prism.social import Feed
from prism.statechart import Budget, Reasoner, Wording, Writer
from prism.testing import FakeOllama, Fault, LateReasoner, ScriptedWriter
from tests.kit import processes
from tests.kit.runs import LoggedRun
from tests.kit.worlds import Stopped
from tests.kit.writers import LateWriter

ROUNDS = 3


def without_words(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events as they would be if the templates had been taken."""
    told = []
    for event in events:
        event.pop("texts", None)
        if "template" in event:
            event["text"] = event.pop("template")
            del event["source"]
        if event["event"] != "text.written":
            told.append(event)

    return told


def simulated(run_logged: Any, **options: Any) -> LoggedRun:
    """Run thirty agents for a few rounds."""
    population = synthetic_population(30, seed=2)
    options = {"seed": 2, "rounds": ROUNDS, **options}
    done: LoggedRun = run_logged(population.agents, population.posts, **options)
    return done


@pytest.mark.slow
def test_words_move_nobody(run_logged: Any) -> None:
    """With a writer the same seed makes the same transitions, posts and decisions."""
    plain = simulated(run_logged)
    written = simulated(run_logged, writer=LateWriter(share=0.2))
    assert without_words(written.events()) == plain.events()
    posts = [each for each in written.events("post.published") if "source" in each]
    assert {each["source"] for each in posts} == {"model", "fallback"}
    for post in posts:
        assert (post["text"] == post["template"]) == (post["source"] == "fallback")


@pytest.mark.parametrize("reasoner", [None, LateReasoner])
@pytest.mark.slow
def test_a_log_does_not_tell_how_long_words_took(run_logged: Any, reasoner: Any) -> None:
    """Whatever overtakes what, of decisions and texts: the log is the same."""
    logs = {
        simulated(
            run_logged,
            writer=LateWriter(number, share=0.1),
            reasoner=None if reasoner is None else reasoner(seed=number),
        ).log
        for number in range(3)
    }
    assert len(logs) == 1


@pytest.mark.slow
def test_a_replay_has_the_same_words(run_logged: Any, tmp_path: Path) -> None:
    """Texts come from the log, at once, in a run that waits for nothing."""
    wording = Wording(60, "Latin")
    done = simulated(
        run_logged, writer=LateWriter(share=0.2), reasoner=LateReasoner(), wording=wording
    )
    path = tmp_path / "recorded.jsonl"
    path.write_bytes(done.log)
    again = simulated(
        run_logged,
        writer=ReplayWriter(path, verbatim=True),
        reasoner=ReplayReasoner(path, verbatim=True),
        wording=wording,
    )
    assert again.log == done.log


@pytest.mark.slow
def test_one_pool_and_one_budget_serve_decisions_and_words() -> None:
    """Every request that the server got is counted once, and what agents read are the words."""
    with FakeOllama(
        models=["tiny"], write=lambda prompt, schema: {"text": "Words of a model."}, latency=0.002
    ) as server:
        server.fail(Fault.status(503), Fault.drop())
        pool, budget = Model("tiny", [server.host]).as_client(), Budget()
        population = synthetic_population(10, seed=1)
        simulation = Run(
            Feed(first_posts=population.posts, preset="classic"),
            population.agents,
            rounds=ROUNDS,
            seed=1,
            reasoner=Reasoner(pool, mode="chat", budget=budget),
            writer=Writer(pool, budget=budget),
        )
        totals = simulation.run().totals

    assert budget.calls == server.asked
    assert totals.texts.total() == totals.posts + totals.replies + totals.reshares
    asked = [each.prompt for each in server.questions]
    assert any("Words of a model." in prompt and "next_state" in prompt for prompt in asked)


@pytest.mark.slow
def test_a_run_that_is_stopped_and_resumed_writes_the_same_bytes(tmp_path: Path) -> None:
    """A replay of words, stopped after each round, ends with the log of the run with the model."""
    with FakeOllama(
        models=["tiny", "small"], write=lambda prompt, schema: {"text": f"{len(prompt)} words"}
    ) as server:
        # what only a model that decides is told does not keep another one from writing
        told: dict[str, Any] = {"attributes": ("name",), "remember": 2, "reasons": True}
        model = Model("tiny", hosts=(server.host,), mode="chat", **told)
        writer = WriterOptions("small", max_length=70, language="Latin")
        options = Run(Feed, 8, rounds=ROUNDS, seed=4, reasoner=model, writer=writer)
        first = options.keep(tmp_path / "first")
        asked = server.asked

    log = (tmp_path / "first" / "events.jsonl").read_bytes()
    events = [orjson.loads(line) for line in log.splitlines()]
    texts = [each for each in events if each["event"] == "text.written"]
    assert {each["model"] for each in texts} == {"small"}
    assert first.summary["spent"]["calls"] == asked == sum(e.get("attempts", 0) for e in events)
    assert first.summary["results"]["totals"]["texts"] == {"model": len(texts)}

    again, due = options.replaying(tmp_path / "first"), set(range(1, ROUNDS + 1))

    def on_round(summary: Any) -> None:
        if summary.number in due:
            due.remove(summary.number)
            raise Stopped

    folder: Path = tmp_path / "again"
    while not (folder / "run.json").exists() or "results" not in (folder / "run.json").read_text():
        try:
            if (folder / "run.json").exists():
                resume(folder, on_round=on_round, checkpoint_every=0)
            else:
                again.keep(folder, on_round=on_round, checkpoint_every=0)
        except Stopped:
            continue

    assert (folder / "events.jsonl").read_bytes() == log
    config = json.loads((folder / "run.json").read_text())["config"]
    assert config["writer"] == {"model": None, "max_length": 70, "language": "Latin"}


def test_texts_that_a_model_declines_are_told_from_those_that_failed(tmp_path: Path) -> None:
    """Both get the template, and are counted apart, in a replay as well."""
    fault = Fault.status(400, "the disk is full")
    with FakeOllama(models=["tiny"]) as server:
        writer = WriterOptions(Model("tiny", hosts=(server.host,)))
        options = Run(Feed, 8, rounds=2, seed=4, writer=writer)
        server.fail(fault, *[Fault.status(400, "content_filter")] * 100, path="/api/chat")
        totals = options.keep(tmp_path / "run").summary["results"]["totals"]
    assert (totals["texts"]["fallback"], totals["texts"].keys()) == (1, {"declined", "fallback"})

    log = (tmp_path / "run" / "events.jsonl").read_bytes()
    assert b'"source":"fallback","reason":"DeclinedError: ' in log
    options.replaying(tmp_path / "run").keep(tmp_path / "again")
    assert (tmp_path / "again" / "events.jsonl").read_bytes() == log


def test_the_options_of_a_writer_are_kept() -> None:
    """What run.json says is read back as the same options, for a writer alone, too."""
    alone = WriterOptions(Model("tiny", hosts=("http://127.0.0.1:1",)), language="Latin")
    for options in (
        Run(Feed, 5, writer=alone),
        Run(Feed, 5, reasoner=Model("tiny"), writer=WriterOptions("small", 90)),
    ):
        config = json.loads(json.dumps(options.to_config()))
        assert Run.from_config(config, Path("run.json")).to_config() == options.to_config()
        assert not options.is_repeatable


class Host:
    """A server whose words depend on the prompt alone, and a run that asks it in a process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.on_request: Callable[[], None] = lambda: None
        self.server = FakeOllama(models=["tiny"], write=self._words)

    def _words(self, prompt: str, _schema: Any) -> dict[str, str]:
        self.on_request()
        return {"text": f"{len(prompt)} and {sum(map(ord, prompt)) % 97} words"}

    def run(self, kill_at: int = 0) -> int:
        """Begin the run, or go on with it; kill it while it asks for a certain text."""
        prism_command = [sys.executable, "-c", "from prism.cli import main; main()"]
        begun = (self.folder / "run.json").exists()
        given = [
            *("simulate", "--preset", "classic", "--agents", "60", "--rounds", "4"),
            *("--out", str(self.folder)),
            *("--writer", "ollama", "--model", "tiny", "--host", self.server.url),
            *("--checkpoint-every", "0"),
        ]
        line = [*prism_command, *(["resume", str(self.folder)] if begun else given)]
        asked = iter(range(kill_at - 1, -1, -1))
        # the first request may come before this thread knows of the process
        started: Future[subprocess.Popen[bytes]] = Future()
        if kill_at:
            self.on_request = lambda: None if next(asked, 1) else started.result().kill()
        with processes.start(line, stdout=subprocess.PIPE) as process:
            started.set_result(process)
            process.communicate()
        self.on_request = lambda: None
        return process.returncode

    def told(self) -> list[dict[str, Any]]:
        """Return the events of the run, without what was measured."""
        lines = (self.folder / "events.jsonl").read_bytes().splitlines()
        keys = ("host", "latency", "queue_seconds", "request_seconds")
        return [
            {
                name: value
                for name, value in orjson.loads(line).items()
                if name not in keys and not name.endswith("_duration")
            }
            for line in lines
        ]


@pytest.mark.slow
def test_a_run_that_is_killed_while_it_asks_for_words_goes_on(tmp_path: Path) -> None:
    """Killed again and again in the middle of a text, a run tells what one alone tells."""
    whole, killed = Host(tmp_path / "whole"), Host(tmp_path / "killed")
    with whole.server:
        assert whole.run() == 0
    with killed.server:
        codes = [killed.run(kill_at) for kill_at in (1, 15, 9, 3)]
        assert codes.count(-SIGKILL) >= 3
        assert killed.run() == 0
    assert killed.told() == whole.told()


@pytest.mark.slow
def test_a_text_that_was_cut_says_so_and_is_repeated(run_logged: Any, tmp_path: Path) -> None:
    """The event of a text says that a part of it was taken, also in a replay."""
    words = ScriptedWriter(lambda call: {"text": f"{call.agent_id} has too much to say of it."})
    short = Wording(max_length=12)
    written = simulated(run_logged, writer=words, wording=short)
    assert {each.get("cut") for each in written.events("text.written")} == {True}

    path = tmp_path / "log.jsonl"
    path.write_bytes(written.log)
    writer = ReplayWriter(path, verbatim=True)
    assert simulated(run_logged, writer=writer, wording=short).log == written.log
