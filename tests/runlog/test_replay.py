"""Repeating a run from its log."""

import gzip
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from prism import Run
from prism.agents import synthetic_population
from prism.errors import InputError, ReplayError
from prism.llm import OllamaChatClient
from prism.runlog import ReplayReasoner, RunLog, SimulatedClock
from prism.social import Feed
from prism.statechart import AgentState, PolicyReasoner, Question, Reasoner
from prism.telemetry.events import DECISION, POST_PUBLISHED, ROUND_ENDED, RUN_ENDED, RUN_STARTED
from prism.testing import FakeOllama, Fault
from tests.kit.models import varied

S = AgentState
OPTIONS = (S.COMPOSING, S.SCROLLING)
SEED = 3
Running = Callable[..., Path]


def runner(folder: Path) -> Running:
    """Return a function that runs 15 agents for 2 rounds and returns the log, in a folder."""
    numbers = count()

    def run(reasoner: Any, seed: int = SEED) -> Path:
        population, clock = synthetic_population(15, seed=SEED), SimulatedClock()
        with RunLog(folder / f"{next(numbers)}.jsonl", clock) as log:
            Run(
                Feed(first_posts=population.posts),
                population.agents,
                rounds=2,
                seed=seed,
                reasoner=reasoner,
                logger=log.logger,
                clock=clock,
            ).run()
        return log.path

    return run


@pytest.fixture
def run(tmp_path: Path) -> Running:
    """Return a function that runs 15 agents for 2 rounds and returns the log."""
    return runner(tmp_path)


@pytest.fixture(
    scope="module",
    params=["chat", "decision", "chat with faults", "decision with faults", "policy"],
)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the log of a run in each mode, with and without faults, which tests only read.

    Its server has stopped.
    """
    run = runner(tmp_path_factory.mktemp("recorded"))
    mode, _, faults = request.param.partition(" ")
    if mode == "policy":
        return run(PolicyReasoner(SEED))
    with FakeOllama(choose=varied) as server:
        if faults:
            server.fail(
                Fault.status(400, "no"),
                Fault.says("nonsense"),
                Fault.weighs({"composing": 1.0}),
                Fault.drop(),
                Fault.status(503, retry_after="0"),
            )
        client = OllamaChatClient(server.host, "llama3.2", attempts=2, concurrency=8)
        client.backoff = lambda attempt: 0.0
        return run(Reasoner(client, mode=mode, seed=SEED))


def events_of(log: Path, *names: str) -> list[dict[str, Any]]:
    events = map(orjson.loads, log.read_bytes().splitlines())
    return [event for event in events if not names or event["event"] in names]


def without_sources(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event without a decision's source, and the counts that depend on it."""
    hidden = {
        DECISION: {"source"},
        ROUND_ENDED: {"fallbacks", "fallback_examples", "decisions_answered"},
    }
    hidden[RUN_ENDED] = hidden[ROUND_ENDED]
    return {
        key: value for key, value in event.items() if key not in hidden.get(event["event"], set())
    }


@pytest.mark.sampled(5)
def test_a_verbatim_replay_writes_the_same_bytes(recorded: Path, run: Running) -> None:
    """A verbatim replay writes the same bytes without a model, and so does a replay of it."""
    again = run(ReplayReasoner(recorded, verbatim=True))
    assert again.read_bytes() == recorded.read_bytes()
    assert run(ReplayReasoner(again, verbatim=True)).read_bytes() == recorded.read_bytes()


@pytest.mark.sampled(5)
def test_a_replay_is_marked_as_one(recorded: Path, run: Running) -> None:
    """A replay that is not verbatim differs only in the source of decisions and in fallbacks."""
    replayed = run(ReplayReasoner(recorded))
    assert {event["source"] for event in events_of(replayed, DECISION)} == {"replay"}
    assert list(map(without_sources, events_of(replayed))) == list(
        map(without_sources, events_of(recorded))
    )
    (end,) = events_of(replayed, RUN_ENDED)
    assert (end["fallbacks"], end["decisions_answered"]) == ({}, end["decisions_asked"])


@pytest.mark.parametrize("mode", ["chat", "decision"])
@pytest.mark.slow
def test_faults_are_recorded(mode: Any, run: Running) -> None:
    """A run in which every answer fails is recorded and replayed with the reasons."""
    with FakeOllama() as server:
        server.fail_always(Fault.status(400, "no"))
        recorded = run(Reasoner(OllamaChatClient(server.host, "llama3.2"), mode=mode))
    reasons = [event["reason"] for event in events_of(recorded, DECISION)]
    assert reasons
    assert all(reasons)
    replayed = run(ReplayReasoner(recorded))
    assert [event["reason"] for event in events_of(replayed, DECISION)] == reasons
    assert run(ReplayReasoner(recorded, verbatim=True)).read_bytes() == recorded.read_bytes()


@pytest.mark.sampled(5)
def test_another_seed_asks_other_questions(recorded: Path, run: Running) -> None:
    """With another seed, a question that is not in the log raises an error that names it."""
    with pytest.raises(ReplayError) as caught:
        run(ReplayReasoner(recorded), seed=SEED + 1)
    message = str(caught.value)
    assert message.startswith(f"{recorded} holds no (further) decision of agent 'agent_")
    assert "in 'evaluating' on 'decides' among composing, " in message
    assert "about {'post_id': 'post_" in message
    assert "seed" in message


# The log as a file


def decision(chosen: str = "scrolling", **changes: Any) -> dict[str, Any]:
    return {
        "event": DECISION,
        "agent_id": "a1",
        "state": "evaluating",
        "trigger": "decides",
        "options": ["composing", "scrolling"],
        "chosen": chosen,
        "source": "model",
        "reason": None,
        "probabilities": None,
        "context": None,
        **changes,
    }


def ask(agent: str = "a1", **changes: Any) -> Question:
    return Question(
        SimpleNamespace(agent_id=agent),
        **{
            "state": S.EVALUATING,
            "trigger": "decides",
            "options": OPTIONS,
            "context": None,
            **changes,
        },
    )


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a log of events or of raw lines."""

    def write(*lines: Any) -> Path:
        path = tmp_path / "written.jsonl"
        path.write_bytes(
            b"".join(
                line if isinstance(line, bytes) else orjson.dumps(line) + b"\n" for line in lines
            )
        )
        return path

    return write


async def test_answers_come_in_the_order_of_the_log(write: Callable[..., Path]) -> None:
    """A repeated question gets the next answer of the log, until there is none left."""
    reasoner = ReplayReasoner(
        write(decision("scrolling"), decision("composing", agent_id="a2"), decision("composing"))
    )
    decisions = await reasoner.decide_many([ask("a2"), ask(), ask()])
    assert [item.chosen for item in decisions] == [S.COMPOSING, S.SCROLLING, S.COMPOSING]
    with pytest.raises(ReplayError, match=r"no \(further\) decision of agent 'a1'"):
        await reasoner.decide_many([ask()])


async def test_remembered_answers_are_skipped(write: Callable[..., Path]) -> None:
    """A remembered decision is not returned again; one that is not in the log is ignored."""
    first, other, second = decision("scrolling"), decision(agent_id="a2"), decision("composing")
    reasoner = ReplayReasoner(write(first, other, second))
    for taken in (first, decision(agent_id="a3")):
        reasoner.remember(orjson.loads(orjson.dumps(taken)))
    decisions = await reasoner.decide_many([ask(), ask("a2")])
    assert [item.chosen for item in decisions] == [S.COMPOSING, S.SCROLLING]
    with pytest.raises(ReplayError, match=r"no \(further\) decision of agent 'a1'"):
        await reasoner.decide_many([ask()])


@pytest.mark.parametrize(
    "question",
    [
        ask("a2"),
        ask(state=S.SCROLLING),
        ask(trigger="ignores"),
        ask(options=OPTIONS[::-1]),
        ask(options=(*OPTIONS, S.RESTING)),
        ask(context={"post_id": "p1"}),
    ],
)
async def test_another_question_has_no_answer(
    question: Question, write: Callable[..., Path]
) -> None:
    """A question that differs in any part from the recorded one raises an error that names it."""
    reasoner = ReplayReasoner(write(decision()))
    with pytest.raises(ReplayError) as caught:
        await reasoner.decide_many([question])
    for part in (
        question.agent.agent_id,
        question.state.value,
        question.trigger,
        *question.options,
    ):
        assert str(getattr(part, "value", part)) in str(caught.value)
    assert str(question.context) in str(caught.value)


@pytest.mark.parametrize(
    "context", [None, "a text", 7, 2.5, {"b": 1, "a": [S.IDLE, None]}, SimpleNamespace(id=4)]
)
async def test_any_context_is_found_again(
    context: Any, write: Callable[..., Path], tmp_path: Path
) -> None:
    """A question with any context is found in the log to which it was written."""
    with RunLog(tmp_path / "run.jsonl", SimulatedClock()) as log:
        (first,) = await PolicyReasoner(0, logger=log.logger).decide_many([ask(context=context)])
    (again,) = await ReplayReasoner(log.path).decide_many([ask(context=context)])
    assert (again.chosen, again.source) == (first.chosen, "replay")


@pytest.mark.parametrize(
    "strange",
    [
        {"context": {"post_id": 2**70}},
        {"context": {"post_id": "p1", "note": "half a character: \ud83d"}},
        {"context": {"numbers": list(range(2**70, 2**70 + 100))}},
        {"trigger": "\ud83d"},
    ],
    ids=["large number", "half a character", "many", "trigger"],
)
async def test_a_context_outside_json_is_found_again(strange: Any, tmp_path: Path) -> None:
    """A question whose context JSON cannot represent is recorded and replayed."""
    path = tmp_path / "strange.jsonl"
    with RunLog(path, SimulatedClock()) as log:
        (first,) = await PolicyReasoner(SEED).decide_many([ask(**strange)], logger=log.logger)
    reasoner = ReplayReasoner(path)
    with pytest.raises(ReplayError):
        await reasoner.decide_many([ask(context={"post_id": 2**71})])
    (again,) = await reasoner.decide_many([ask(**strange)])
    assert (again.chosen, again.source) == (first.chosen, "replay")


async def test_a_folder_stands_for_its_log(write: Callable[..., Path]) -> None:
    """The folder of a run can be given instead of its log."""
    path = write(decision())
    path.rename(path.parent / "events.jsonl")
    assert (await ReplayReasoner(path.parent).decide_many([ask()]))[0].chosen is S.SCROLLING


async def test_a_text_that_looks_like_a_decision_is_not_one(write: Callable[..., Path]) -> None:
    """An event that only mentions decisions is not an answer."""
    text = orjson.dumps(decision("composing")).decode()
    posts = [
        {"event": POST_PUBLISHED, "text": text, "agent_id": DECISION},
        {"event": POST_PUBLISHED, DECISION: 1},
    ]
    assert (await ReplayReasoner(write(*posts, decision())).decide_many([ask()]))[
        0
    ].chosen is S.SCROLLING


GOOD = orjson.dumps(decision()) + b"\n"


@pytest.mark.parametrize(
    ("lines", "line", "problem"),
    [
        ([GOOD, GOOD[:40]], 2, "is cut off: the run it records did not end"),
        ([GOOD[:40] + b"\n", GOOD], 1, "is damaged: not valid JSON"),
        ([GOOD, b'{"event":"round.ended\xff"}\n'], 2, "is damaged"),
        ([GOOD, b"[]\n"], 2, "is not an event: must be a JSON object"),
    ],
)
def test_a_damaged_log_is_refused(
    lines: list[bytes], line: int, problem: str, write: Callable[..., Path]
) -> None:
    """A line that is not an event raises an error that names file and line."""
    path = write(*lines)
    with pytest.raises(InputError) as caught:
        ReplayReasoner(path)
    assert str(caught.value).startswith(f"{path}, line {line}: {problem}")


STARTED = {"event": RUN_STARTED, "schema": 1, "agents": 2}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            [STARTED, decision(), STARTED, decision()],
            "line 3: begins another run: give a log that holds one",
        ),
        (
            [{**STARTED, "schema": 2}],
            "line 1, field 'schema': is 2, and this prism knows version 1: replay it with",
        ),
        ([{**STARTED, "schema": None}], "line 1, field 'schema': is None"),
        (
            [decision(source="oracle")],
            "line 1, field 'source': is 'oracle', not one of model, cache, replay",
        ),
    ],
)
def test_a_log_of_several_runs_or_another_schema_is_refused(
    lines: list[dict[str, Any]], message: str, write: Callable[..., Path]
) -> None:
    """Two runs, a newer schema, or an unknown source raises an error that names the line."""
    path = write(*lines)
    with pytest.raises(InputError) as caught:
        ReplayReasoner(path)
    assert str(caught.value).startswith(f"{path}, {message}")


async def test_of_an_applications_runs_the_last_is_replayed(write: Callable[..., Path]) -> None:
    """As all tables have the last alone; a crash before it may have cut a line off."""
    start = {"event": RUN_STARTED, "schema": 1}
    log = write(start, decision("scrolling"), b'{"event":"re\n', start, decision("composing"))
    (made,) = await ReplayReasoner(log).decide_many([ask()])
    assert made.chosen is S.COMPOSING


async def test_a_run_inside_an_applications_log_is_replayed(write: Callable[..., Path]) -> None:
    """A run inside a log of an application's own loop can be replayed."""
    log = write({"event": RUN_STARTED, "schema": 1}, STARTED, decision())
    assert (await ReplayReasoner(log).decide_many([ask()]))[0].chosen is S.SCROLLING


@pytest.mark.parametrize("key", [key for key in decision() if key != "event"])
def test_an_incomplete_decision_is_refused(key: str, write: Callable[..., Path]) -> None:
    """A decision without one of its keys raises an error that names file, line and key."""
    incomplete = {name: value for name, value in decision().items() if name != key}
    path = write(decision(), incomplete)
    with pytest.raises(InputError) as caught:
        ReplayReasoner(path)
    assert str(caught.value) == f"{path}, line 2, field {key!r}: is missing from a decision"


async def test_a_compressed_log_can_be_replayed(write: Callable[..., Path]) -> None:
    """A log that is compressed with gzip can be replayed, unless it is truncated."""
    packed = gzip.compress(write(decision(), decision("composing")).read_bytes())
    log = write(packed)
    answers = await ReplayReasoner(log).decide_many([ask(), ask()])
    assert [answer.chosen for answer in answers] == [S.SCROLLING, S.COMPOSING]
    with pytest.raises(InputError, match="compressed data is cut off; repeat the run"):
        ReplayReasoner(write(packed[:-9]))


async def test_an_answer_outside_the_options_is_refused(write: Callable[..., Path]) -> None:
    """A choice outside the options raises an error that names agent and choice."""
    with pytest.raises(
        ReplayError, match="agent 'a1' chose 'flying', which is not among its options"
    ):
        await ReplayReasoner(write(decision("flying"))).decide_many([ask()])


async def test_a_replayed_fallback_is_logged(
    write: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    """A fallback is a warning in a verbatim replay, otherwise an answer of the log."""
    log = write(decision(source="fallback", reason="why"))
    for verbatim in (True, False):
        await ReplayReasoner(log, verbatim=verbatim).decide_many([ask()])
    assert Counter(record.levelname for record in caplog.records) == {"WARNING": 1}
