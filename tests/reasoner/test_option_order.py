"""The order in which a model is told its options."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prism.agents import SocialAgent
from prism.llm import Model
from prism.reasoner import Question, Reasoner
from prism.runlog import PromptLog
from prism.statechart.states import AgentState as S
from prism.testing import Asked, FakeOllama, FakeOpenAI, Fault

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
        decisions = await decided(server, 600, rotations="drawn")
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
async def test_the_order_of_the_schema_is_that_of_the_prompt() -> None:
    """A server that reads the schema sees the options in the same order."""
    with FakeOllama() as server:
        await decided(server, rotations="drawn")
    for asked in server.questions:
        assert asked.prompt.split("options:\n- ")[1].startswith(asked.options[0])


@pytest.mark.parametrize("kind", [FakeOllama, FakeOpenAI])
@pytest.mark.slow
async def test_probabilities_belong_to_options_in_any_order(kind: Any) -> None:
    """With probabilities, too, the option that the model means is taken, wherever it stands."""
    dialect: Any = "ollama" if kind is FakeOllama else "openai"
    decisions = []
    with kind(models=["llama3.2"]) as server:
        for order in ("none", "drawn"):
            async with Model("llama3.2", [server.host], server=dialect).as_client() as pool:
                reasoner = Reasoner(pool, mode="decision", pick="argmax", rotations=order, seed=1)
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
        shuffled = await decided(server, 20, rotations="drawn")
    assert [one.prompt_hash for one in plain] == [one.prompt_hash for one in shuffled]
    for event, question in zip(heard[20:], questions(20), strict=True):
        assert event["options"] == [option.value for option in question.options]
        assert event["rotation"] in range(len(question.options))


async def test_the_record_has_the_prompt_as_it_was_put(tmp_path: Path) -> None:
    """The prompt record has the text in the order in which the model was told the options."""
    with FakeOllama() as server, PromptLog(tmp_path / "answers.jsonl") as record:
        await decided(server, 20, record=record, rotations="drawn")
    lines = (tmp_path / "answers.jsonl").read_bytes().splitlines()
    recorded = [record["prompt"] for record in map(json.loads, lines) if "prompt" in record]
    assert sorted(recorded) == sorted(asked.prompt for asked in server.questions)
    assert len(set(told_first(server))) > 1


@pytest.mark.parametrize("kind", [FakeOllama, FakeOpenAI])
async def test_all_rotations_are_asked_and_averaged(kind: Any, heard: list[Any]) -> None:
    """A model that takes the first place gives each option the same chance, and this is logged."""
    dialect: Any = "ollama" if kind is FakeOllama else "openai"
    three = [replace(question, options=OPTIONS[:3]) for question in questions(60)]
    with kind() as server:
        server.fail_always(Fault.weighs({"A": 0.9}))
        async with Model("llama3.2", [server.host], server=dialect).as_client() as pool:
            decisions = await Reasoner(pool, rotations="all").decide_many(three)
        assert server.asked == 3 * len({question.agent.name for question in three})
    for decision, event in zip(decisions, heard, strict=True):
        assert list(decision.probabilities.values()) == pytest.approx([1 / 3] * 3, abs=1e-6)
        assert event["rotations_apart"] > 0.8
        assert "rotation" not in event
    # 60 draws of one third: 20 with a standard deviation of 4
    counts = Counter(decision.chosen for decision in decisions)
    assert all(6 < counts[option] < 34 for option in OPTIONS[:3])


@pytest.mark.parametrize(("is_fickle", "apart"), [(False, 0), (True, 1)])
async def test_names_in_all_rotations_are_averaged_too(
    is_fickle: bool, apart: float, tmp_path: Path
) -> None:
    """Rotations agree if a model means an option; the cost and record are of all requests."""

    def choose(asked: Asked) -> str:
        return asked.options[0] if is_fickle else "composing"

    path = tmp_path / "answers.jsonl"
    with FakeOllama(choose=choose) as server, PromptLog(path) as record:
        decisions = await decided(server, 4, rotations="all", record=record)
    for decision, question in zip(decisions, questions(4), strict=True):
        assert decision.rotations_apart == apart
        assert decision.cost.attempts == len(question.options)
    lines = (tmp_path / "answers.jsonl").read_bytes().splitlines()
    attempts = [len(record["attempts"]) for record in map(json.loads, lines) if "id" in record]
    assert attempts == [len(question.options) for question in questions(4)]


async def test_a_rotation_without_an_answer_is_left_out() -> None:
    """The others decide; only a question that no rotation answers falls back."""
    with FakeOllama(choose=lambda asked: "composing") as server:
        server.fail(*[Fault.says("neither")] * 2)
        first, *others = await decided(server, 3, rotations="all", seed=1)
    assert {decision.source for decision in (first, *others)} == {"model"}
    assert first.probabilities["composing"] == 1
