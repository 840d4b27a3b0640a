"""The order in which a model is told its options."""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from prism.agents import SocialAgent
from prism.errors import FieldValueError
from prism.llm import Model
from prism.reasoner import Question, Reasoner
from prism.runlog import PromptLog
from prism.statechart.states import AgentState as S
from prism.testing import FakeOllama, FakeOpenAI

OPTIONS = (S.COMPOSING, S.ENGAGING_LIKE, S.ENGAGING_REPLY, S.ENGAGING_RESHARE, S.SCROLLING, S.IDLE)


def questions(count: int) -> list[Question]:
    """Return the questions of so many agents, each about a post."""
    return [
        Question(
            SocialAgent(f"agent {number}", interests=["tea"]),
            S.EVALUATING,
            "decides",
            OPTIONS[: 2 + number % 5],
            {"post_id": f"p{number}", "text": "Tea!"},
        )
        for number in range(count)
    ]


def told_first(server: FakeOllama | FakeOpenAI) -> list[str]:
    """Return the option that stood first in each prompt, in order of the agents' names."""
    prompts = sorted(asked.prompt for asked in server.questions)
    return [prompt.split("options:\n- ")[1].split(":")[0] for prompt in prompts]


async def decided(server: FakeOllama, count: int = 60, **settings: Any) -> list[Any]:
    """Return the decisions of so many agents, in chat."""
    async with Model("llama3.2", [server.host]).as_client() as pool:
        reasoner = Reasoner(pool, mode="chat", **settings)
        return await reasoner.decide_many(questions(count))


async def test_the_order_is_the_charts_unless_it_is_shuffled() -> None:
    """By default every prompt has the options as the chart has them, and the log no rotation."""
    with FakeOllama() as server:
        decisions = await decided(server)
    assert set(told_first(server)) == {"composing"}
    assert {decision.rotation for decision in decisions} == {None}


@pytest.mark.slow
async def test_of_many_questions_each_rotation_has_its_share() -> None:
    """Shuffled, a model that takes the first option takes each about as often."""
    with FakeOllama() as server:
        decisions = await decided(server, 600, option_order="shuffled")
    by_number = [Counter[Any]() for _ in OPTIONS]
    for question, decision in zip(questions(600), decisions, strict=True):
        assert decision.chosen == question.options[decision.rotation]
        by_number[len(question.options) - 1][decision.rotation] += 1
    assert [sorted(counts) for counts in by_number] == [
        [],
        [0, 1],
        [0, 1, 2],
        [0, 1, 2, 3],
        [0, 1, 2, 3, 4],
        [0, 1, 2, 3, 4, 5],
    ]
    assert all(min(counts.values()) >= 4 for counts in by_number if counts)


@pytest.mark.slow
async def test_the_same_question_has_the_same_order() -> None:
    """Asked again with the same seed, an agent is told the same; another seed has another order."""
    with FakeOllama() as server:
        runs = [
            [one.rotation for one in await decided(server, 20, seed=seed, option_order="shuffled")]
            for seed in (1, 1, 2)
        ]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.slow
async def test_the_order_of_the_schema_is_that_of_the_prompt() -> None:
    """A server that reads the schema sees the options in the same order."""
    with FakeOllama() as server:
        await decided(server, option_order="shuffled")
    for asked in server.questions:
        assert asked.prompt.split("options:\n- ")[1].startswith(asked.options[0])


@pytest.mark.parametrize("kind", [FakeOllama, FakeOpenAI])
@pytest.mark.slow
async def test_probabilities_belong_to_options_in_any_order(kind: Any) -> None:
    """With probabilities, too, the option that the model means is taken, wherever it stands."""
    dialect: Any = "ollama" if kind is FakeOllama else "openai"
    decisions = []
    with kind(models=["llama3.2"]) as server:
        for order in ("chart", "shuffled"):
            async with Model("llama3.2", [server.host], server=dialect).as_client() as pool:
                reasoner = Reasoner(
                    pool, mode="decision", pick="argmax", option_order=order, seed=1
                )
                decisions.append(await reasoner.decide_many(questions(30)))
    plain, shuffled = decisions
    assert {one.rotation for one in shuffled} > {0, 1}
    for one, other, question in zip(plain, shuffled, questions(30), strict=True):
        assert list(other.probabilities) == [option.value for option in question.options]
        best = max(other.probabilities, key=other.probabilities.__getitem__)
        assert other.chosen == best
        assert sum(one.probabilities.values()) == pytest.approx(1, abs=1e-5)


@pytest.mark.slow
async def test_what_is_logged_and_hashed_is_in_the_order_of_the_chart(heard: list[Any]) -> None:
    """The log has the chart's options, the rotation, and the hash of the prompt in that order."""
    with FakeOllama() as server:
        plain = await decided(server, 20)
        shuffled = await decided(server, 20, option_order="shuffled")
    assert [one.prompt_hash for one in plain] == [one.prompt_hash for one in shuffled]
    for event, question in zip(heard[20:], questions(20), strict=True):
        assert event["options"] == [option.value for option in question.options]
        assert event["rotation"] in range(len(question.options))


async def test_the_record_has_the_prompt_as_it_was_put(tmp_path: Path) -> None:
    """The prompt record has the text in the order in which the model was told the options."""
    with FakeOllama() as server, PromptLog(tmp_path / "prompts.jsonl.gz") as record:
        await decided(server, 20, record=record, option_order="shuffled")
    lines = gzip.decompress((tmp_path / "prompts.jsonl.gz").read_bytes()).splitlines()
    recorded = [record["prompt"] for record in map(json.loads, lines) if "prompt" in record]
    assert sorted(recorded) == sorted(asked.prompt for asked in server.questions)
    assert len(set(told_first(server))) > 1


def test_an_unknown_order_is_refused() -> None:
    """An order that does not exist is named with those that do."""
    with pytest.raises(FieldValueError, match="option_order"):
        Reasoner(Model("m", ["http://127.0.0.1:1"]).as_client(), option_order="random")  # type: ignore[arg-type]
