"""Runs with a model that are stopped between checkpoints: what they spent, and what they know."""

import json
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from prism import Run, resume
from prism.agents import SocialAgent
from prism.cli._spent import spent_lines
from prism.llm import Model
from prism.runlog._recorded import UnfinishedAnswers
from prism.runs import ReplayOptions
from prism.runs._ledger import Tally, tallied
from prism.social import Feed
from prism.statechart import AgentState as S
from prism.statechart import Budget, Decision, Question
from prism.telemetry.events import DECISION
from prism.testing import FakeOllama, FakeOpenAI
from tests.kit import processes
from tests.kit.commands import MAIN
from tests.kit.waiting import wait_until

NEVER = 1e9
"""Seconds between checkpoints so that there is none before the end."""


def options(server: FakeOllama, **settings: Any) -> Run[Any]:
    """Return a run of 15 agents over three rounds, whose model is on a server."""
    model = Model("tiny", (server.host,), mode="chat", **settings)
    return Run(Feed, 15, rounds=3, ticks=8, seed=2, reasoner=model)


def stops_after(rounds: int) -> Any:
    """Return what raises when so many rounds have ended, as a kill would end the process."""
    left = [rounds]

    def on_round(_summary: Any) -> None:
        left[0] -= 1
        if not left[0]:
            raise RuntimeError("killed")

    return on_round


def decisions(folder: Path) -> list[dict[str, Any]]:
    """Return the decisions in the log of a run."""
    lines = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == DECISION]


def stopped(server: FakeOllama, folder: Path, **settings: Any) -> None:
    """Begin a run that ends without a checkpoint after two of its rounds."""
    with pytest.raises(RuntimeError, match="killed"):
        options(server, **settings).keep(folder, on_round=stops_after(2), checkpoint_every=NEVER)


@pytest.mark.slow
def test_answers_of_unfinished_rounds_are_not_paid_for_again(tmp_path: Path) -> None:
    """A resumed run asks only what it had not asked, and its log has every answer as it was."""
    with FakeOllama(models=["tiny"]) as server:
        stopped(server, tmp_path)
        before, asked = decisions(tmp_path), server.asked
        outcome = resume(tmp_path)
        after = decisions(tmp_path)
        assert after[: len(before)] == before
        assert server.asked == asked + len(after) - len(before)
    assert outcome is not None
    assert outcome.summary["spent"]["calls"] == server.asked


def test_a_budget_knows_of_requests_behind_the_last_checkpoint(tmp_path: Path) -> None:
    """What a stopped run had spent counts, so that the server is never asked beyond the budget."""
    with FakeOllama(models=["tiny"]) as server:
        stopped(server, tmp_path, max_calls=25)
        outcome = resume(tmp_path)
        assert server.asked == 25
    assert outcome is not None
    assert outcome.summary["spent"]["calls"] == 25
    assert not (tmp_path / "checkpoints").exists()


def test_trials_before_a_run_was_resumed_are_told(tmp_path: Path) -> None:
    """The parts of what was spent add up to the total, of money, too."""
    with FakeOpenAI(models=["tiny"]) as server:
        prices: Any = {"price_in": 0.5, "price_out": 0.5}
        model = Model("tiny", (server.host,), server="openai", mode="chat", **prices)
        begun = Run(Feed, 15, rounds=3, ticks=8, seed=2, reasoner=model)
        with pytest.raises(RuntimeError, match="killed"):
            begun.keep(tmp_path, on_round=stops_after(2), checkpoint_every=NEVER)
        outcome = resume(tmp_path)
    assert outcome is not None
    spent = outcome.summary["spent"]
    (model_costs,), (trial,) = spent["by_model"].values(), spent["trials"].values()
    assert spent["earlier"]["calls"] == trial["calls"] == 1
    assert spent["calls"] == server.asked == model_costs["calls"] + 2
    tokens = [each[f"{way}put_tokens"] for each in (model_costs, trial) for way in ("in", "out")]
    assert spent["tokens"] == sum(tokens) + spent["earlier"]["tokens"]
    assert spent["money"] == pytest.approx(spent["tokens"] * 0.5 / 1_000_000, abs=2e-6)
    *_, line = spent_lines(spent)
    assert re.match("  trials and lost answers before the run was resumed: 1 call, .*, about", line)


def drawn(folder: Path) -> list[tuple[Any, ...]]:
    """Return who chose what by which seed."""
    names = ("agent_id", "state", "chosen", "sampling_seed", "timestamp")
    return [tuple(event.get(name) for name in names) for event in decisions(folder)]


@pytest.mark.slow
def test_a_resumed_run_samples_as_one_that_was_not_stopped(tmp_path: Path) -> None:
    """A model with a temperature is asked with the same seeds, and a replay needs no model."""
    with FakeOllama(models=["tiny"]) as server:
        options(server, temperature=0.9).keep(tmp_path / "whole")
        stopped(server, tmp_path / "stopped", temperature=0.9)
        asked = server.asked
        resume(tmp_path / "stopped")
        assert server.asked > asked
    whole = drawn(tmp_path / "whole")
    assert drawn(tmp_path / "stopped") == whole
    assert len({seed for *_, seed, _ in whole}) == len(whole)

    repeated = options(server).replace(reasoner=ReplayOptions(tmp_path / "whole"))
    repeated.keep(tmp_path / "again")
    logs = [(tmp_path / name / "events.jsonl").read_bytes() for name in ("whole", "again")]
    assert logs[0] == logs[1]


@pytest.mark.slow
def test_recorded_prompts_are_asked_again(tmp_path: Path) -> None:
    """Where every prompt is to be on record the model is asked anew, and each has its record."""
    with FakeOllama(models=["tiny"]) as server:
        stopped(server, tmp_path, record_prompts=True)
        asked = server.asked
        resume(tmp_path)
        after = decisions(tmp_path)
        assert server.asked == asked + len(after)
    assert len({event["decision_id"] for event in after}) == len(after)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [150])
def test_a_killed_process_has_written_down_its_requests(tmp_path: Path, limit: int | None) -> None:
    """Killed at any request, a run counts those that were sent, but for what was under way."""
    folder = tmp_path / "run"
    limits = [] if limit is None else ["--max-calls", str(limit)]
    due = [40, 80, 120]
    started: list[processes.Process] = []

    def kill_when_due() -> float:
        if due and server.asked >= due[0]:
            # the process of the third kill, say, is the third that was started
            wait_until(lambda: len(started) + len(due) > 3)
            due.pop(0)
            started[-1].kill()
        return 0.01

    with FakeOllama(models=["tiny"], latency=kill_when_due) as server:
        asking = [sys.executable, "-c", MAIN]
        begin_line = [
            *(
                *asking,
                "simulate",
                "--host",
                server.host,
                "--reasoner",
                "ollama",
                "--model",
                "tiny",
                "--agents",
                "60",
            ),
            *("--rounds", "4", "--out", folder, *limits),
        ]
        for line in (begin_line, *[[*asking, "resume", folder]] * 2):
            silent = subprocess.DEVNULL
            started.append(processes.start(line, stdin=silent, stdout=silent, stderr=silent))
            assert started[-1].wait() == -signal.SIGKILL
        outcome = resume(folder)
    assert not due
    assert outcome is not None
    # four questions under way at each of three kills
    assert 0 <= outcome.summary["spent"]["calls"] - server.asked <= 12
    if limit is not None:
        assert server.asked <= limit


@pytest.mark.slow
def test_a_run_that_has_parted_from_another_asks_once(tmp_path: Path) -> None:
    """It takes the other run's answers, then those that it had before it was killed."""
    with FakeOllama(models=["tiny"]) as server:
        run = options(server)
        run.keep(tmp_path / "first")
        again = ReplayOptions(tmp_path / "first", model=run.reasoner, then="model")
        longer = run.replace(rounds=4, reasoner=again)
        asked = server.asked
        longer.keep(tmp_path / "whole")
        new = server.asked - asked
        with pytest.raises(RuntimeError, match="killed"):
            longer.keep(tmp_path / "run", on_round=stops_after(4), checkpoint_every=NEVER)
        resume(tmp_path / "run")
        assert server.asked == asked + 2 * new
    assert len(decisions(tmp_path / "first")) + new == len(decisions(tmp_path / "run"))


# The parts


def test_a_tally_outlives_its_budget(tmp_path: Path) -> None:
    """Each request is in the file before it is sent, and a later budget counts it."""
    path = tmp_path / "checkpoints" / "spent"
    first = Budget(max_calls=5)
    with tallied(first, path):
        first.take()
        first.take()
        first.add(tokens=30)
        with Tally(path) as tally:
            assert tally.read() == (2, 30)

    again = Budget(max_calls=5)
    again.restore(calls=1, tokens=10, seconds=0.0)
    with tallied(again, path):
        assert (again.calls, again.tokens) == (2, 30)
    assert again.note is None


def test_an_answer_is_taken_for_the_same_question_once(tmp_path: Path) -> None:
    """Agent, state, event, options, context and prompt have to be the same; fallbacks are asked."""
    question = Question(SocialAgent("ada"), S.EVALUATING, "decides", (S.COMPOSING, S.SCROLLING))
    told = {
        "event": DECISION,
        "agent_id": "ada",
        "state": "evaluating",
        "trigger": "decides",
        "options": ["composing", "scrolling"],
        "context": None,
        "chosen": "scrolling",
        "source": "model",
        "reason": None,
        "probabilities": None,
        "prompt_hash": "0" * 16,
    }
    earlier = UnfinishedAnswers([told, {**told, "source": "fallback"}])
    assert earlier.answer_to(question, lambda: "1" * 16, None) is None
    found = earlier.answer_to(question, lambda: "0" * 16, None)
    assert isinstance(found, Decision)
    assert (found.chosen, found.source) == (S.SCROLLING, "model")
    assert earlier.answer_to(question, lambda: "0" * 16, None) is None


def test_a_line_that_was_cut_off_is_no_answer(tmp_path: Path) -> None:
    """What was being written when the process was killed is asked for again."""
    log = tmp_path / "events.jsonl"
    log.write_bytes(b'{"event": "run.started"}\n{"event": "reasoner.dec')
    assert Counter(vars(UnfinishedAnswers.behind(log, 0))["_answers"]) == Counter()
