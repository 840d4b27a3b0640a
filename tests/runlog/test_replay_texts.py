"""Repeating texts from the log of an earlier run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.errors import InputError, ReplayError
from prism.llm import AnswerCache, OllamaChatClient
from prism.runlog import ReplayWriter, RunLog, SimulatedClock
from prism.runlog._recorded import UnfinishedAnswers
from prism.statechart import BaseWriter, TextCall, Writer, Written
from prism.telemetry.events import TEXT_WRITTEN
from prism.testing import FakeOllama, Fault, ScriptedWriter


def call(key: str = "k", prompt: str = "?", agent: str = "ada", **changes: Any) -> TextCall:
    return TextCall(agent, key, prompt, **changes)


def number(text: str) -> int:
    return int(json.loads(text)["n"])


CALLS = [
    call(f"{turn}:{step}", f"{step}, {turn}?", agent, schema={"type": "object"}, read=number)
    for turn in range(4)
    for agent in ("ada", "bo")
    for step in ("see", "act")
]


async def record(path: Path, writer: BaseWriter, calls: Any = CALLS) -> list[Written]:
    """Have texts written into a log, some one by one and the others together."""
    with RunLog(path, SimulatedClock()) as log:
        single = [await writer.write(each, logger=log.logger) for each in calls[:2]]
        return [*single, *await writer.write_many(calls[2:], logger=log.logger)]


@pytest.fixture(params=["model", "faults", "cache", "script"])
async def recorded(request: Any, tmp_path: Path) -> Path:
    """Return the log of a run with each kind of text; its server has stopped."""
    path = tmp_path / "first.jsonl"
    if request.param == "script":
        await record(path, ScriptedWriter(lambda asked: {"n": len(asked.key)}))
        return path

    with FakeOllama(write=lambda prompt, schema: {"n": len(prompt)}) as server:
        if request.param == "faults":
            server.fail(
                Fault.status(400, "no"), Fault.says("nonsense"), Fault.says(""), Fault.drop()
            )
        client = OllamaChatClient(server.host, "llama3.2", attempts=1)
        cache = AnswerCache(tmp_path / "kept") if request.param == "cache" else None
        for name in ("warm.jsonl", path.name) if cache else (path.name,):
            await record(tmp_path / name, Writer(client, cache=cache))
        await client.close()
        if cache:
            cache.close()

    return path


def told(written: Written) -> tuple[Any, ...]:
    return (
        written.text,
        written.source,
        written.value,
        written.reason,
        written.cost,
    )


@pytest.mark.sampled(4)
async def test_a_verbatim_replay_writes_the_same_bytes(recorded: Path, tmp_path: Path) -> None:
    """A verbatim replay writes the same bytes without a model, and so does a replay of it."""
    again, third = tmp_path / "again.jsonl", tmp_path / "third.jsonl"
    first = await record(again, ReplayWriter(recorded, verbatim=True))
    assert again.read_bytes() == recorded.read_bytes()
    second = await record(third, ReplayWriter(again, verbatim=True))
    assert third.read_bytes() == recorded.read_bytes()
    assert [*map(told, first)] == [*map(told, second)]
    assert {each.value for each in first} > {None} or not any(each.has_failed for each in first)


@pytest.mark.sampled(4)
async def test_a_replay_is_marked_as_one(recorded: Path) -> None:
    """A replay that is not verbatim differs in the source alone, and failures stay failures."""
    plain, verbatim = ReplayWriter(recorded), ReplayWriter(recorded, verbatim=True)
    for first, again in zip(
        await verbatim.write_many(CALLS), await plain.write_many(CALLS), strict=True
    ):
        assert again.source == ("failed" if first.has_failed else "replay")
        assert told(again)[2:] == told(first)[2:]
        assert again.text == first.text


@given(st.text(st.characters(exclude_categories=()), max_size=30))
async def test_any_text_is_found_again(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """Whatever a model writes, half characters too, is in the replay as it was in the run."""
    path = tmp_path_factory.mktemp("log") / "run.jsonl"
    (first,) = await record(path, ScriptedWriter([text]), [call()])
    assert (await ReplayWriter(path, verbatim=True).write(call())).text == first.text


async def test_repeated_calls_come_in_the_order_of_the_log(tmp_path: Path) -> None:
    """A call of the same name gets the next text of the log, until there is none left."""
    path = tmp_path / "run.jsonl"
    await record(path, ScriptedWriter(["one", "two", "three"]), [call(), call("j"), call()])
    writer = ReplayWriter(path)
    assert [each.text for each in await writer.write_many([call(), call(), call("j")])] == [
        "one",
        "three",
        "two",
    ]
    with pytest.raises(ReplayError, match=r"holds no \(further\) text 'k' of agent 'ada'"):
        await writer.write(call())


async def test_remembered_texts_are_skipped(tmp_path: Path) -> None:
    """A text that a run took before it was interrupted is not given again; others are ignored."""
    path = tmp_path / "run.jsonl"
    await record(path, ScriptedWriter(["one", "two"]), [call(), call()])
    taken = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    events = [event for event in taken if event["event"] == TEXT_WRITTEN]
    writer = ReplayWriter(path)
    writer.remember(events[0])
    writer.remember({**events[0], "agent_id": "nobody"})
    assert (await writer.write(call())).text == "two"


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        (call("other"), r"holds no \(further\) text 'other' of agent 'ada': replay with the files"),
        (call(agent="bo"), r"holds no \(further\) text 'k' of agent 'bo'"),
        (call(prompt="!"), r"holds the text 'k' of agent 'ada' for another prompt \("),
        (call(read=json.loads), r"was valid when it was written, but no longer is \(the text"),
    ],
)
async def test_another_call_has_no_text(other: TextCall, problem: str, tmp_path: Path) -> None:
    """A call that differs in agent, key, prompt or reading raises an error that says what to do."""
    path = tmp_path / "run.jsonl"
    await record(path, ScriptedWriter(["one"]), [call()])
    with pytest.raises(ReplayError, match=problem) as caught:
        await ReplayWriter(path).write(other)
    assert str(caught.value).startswith(str(path))
    assert "replay with the files" in str(caught.value)


async def test_a_refused_call_leaves_the_text(tmp_path: Path) -> None:
    """A call with another prompt does not use up the text of the right one."""
    path = tmp_path / "run.jsonl"
    await record(path, ScriptedWriter(["one"]), [call()])
    writer = ReplayWriter(path)
    with pytest.raises(ReplayError):
        await writer.write(call(prompt="!"))
    assert (await writer.write(call())).text == "one"


async def test_a_fallback_has_to_be_the_same(write: Callable[..., Path]) -> None:
    """A text that was taken instead of a model's is compared with the one of today."""
    path = write(text(text="hm", source="fallback", reason="ReplyError"))
    assert (await ReplayWriter(path).write(call(fallback="hm"))).text == "hm"
    with pytest.raises(ReplayError, match=r"the fallback for the .* differs from the present 'oh'"):
        await ReplayWriter(path).write(call(fallback="oh"))


def test_a_repeated_round_takes_a_text_once() -> None:
    """If the prompt is the same, and the text is still valid."""
    asked = call(read=number)
    events = [text(text='{"n": 3}'), text(text="three")]
    answers = UnfinishedAnswers(events)
    assert answers.answer_to(asked, lambda: "another", None) is None
    first = answers.answer_to(asked, lambda: asked.prompt_hash, None)
    assert (first.text, first.value, first.source) == ('{"n": 3}', 3, "model")
    assert answers.answer_to(asked, lambda: asked.prompt_hash, None) is None


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a log of events."""

    def write(*lines: Any) -> Path:
        path = tmp_path / "written.jsonl"
        path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
        return path

    return write


def text(**changes: Any) -> dict[str, Any]:
    keys = {"agent_id": "ada", "key": "k", "prompt_hash": call().prompt_hash}
    answer = {"text": "one", "source": "model", "reason": None}
    return {"event": TEXT_WRITTEN, **keys, **answer, **changes}


@pytest.mark.parametrize("key", [key for key in text() if key != "event"])
def test_an_incomplete_text_is_refused(key: str, write: Callable[..., Path]) -> None:
    """A text without one of its keys raises an error that names file, line and key."""
    path = write(text(), {name: value for name, value in text().items() if name != key})
    with pytest.raises(InputError) as caught:
        ReplayWriter(path)
    assert str(caught.value) == f"{path}, line 2, field {key!r}: is missing from a text"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": "oracle"}, "field 'source': is 'oracle', not one of model, cache, replay, sc"),
        ({"text": None}, "field 'text': is no text"),
        ({"text": 7}, "field 'text': is no text"),
        ({"latency": 0.1}, "field 'model': is missing from a text"),
    ],
)
def test_a_wrong_text_is_refused(
    changes: dict[str, Any], message: str, write: Callable[..., Path]
) -> None:
    """An unknown source, a text that is none, or half a cost raises an error that names it."""
    with pytest.raises(InputError) as caught:
        ReplayWriter(write(text(**changes)))
    assert f"line 1, {message}" in str(caught.value)
