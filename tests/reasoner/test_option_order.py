"""The order in which a model is told its options."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from prism.agents import SocialAgent
from prism.cli._results import spent_lines
from prism.randomness import RandomStream
from prism.reasoner import Question, Reasoner, Router
from prism.statechart.states import AgentState as S
from prism.testing import FakeOllama, Fault
from tests.kit.servers import BOTH, Connect

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


@pytest.mark.slow
async def test_of_many_questions_each_rotation_has_its_share(
    server: FakeOllama, connect: Connect, heard: list[Any]
) -> None:
    """A model that takes the first option takes each about as often; the log keeps the chart's."""
    plain = await Reasoner(connect(), mode="chat").decide_many(questions(200))
    # by default every prompt has the options as the chart has them
    told = {asked.prompt.split("options:\n- ")[1].split(":")[0] for asked in server.questions}
    reasoner = Reasoner(connect(), mode="chat", rotations="drawn")
    decisions: list[Any] = await reasoner.decide_many(questions(200))
    assert (told, {each.rotation for each in plain}) == ({"composing"}, {None})
    by_number = [Counter[Any]() for _ in OPTIONS]
    for question, decision, event in zip(questions(200), decisions, heard[200:], strict=True):
        assert decision.chosen == question.options[decision.rotation]
        assert event["options"] == [option.value for option in question.options]
        by_number[len(question.options) - 1][decision.rotation] += 1
    assert [sorted(counts) for counts in by_number] == [
        [],
        *([*range(size)] for size in range(2, 7)),
    ]
    assert [one.prompt_hash for one in plain] == [one.prompt_hash for one in decisions]
    # a server that reads the schema sees the same order
    for asked in server.questions:
        assert asked.prompt.split("options:\n- ")[1].startswith(asked.options[0])


async def test_a_rotation_depends_on_seed_agent_and_decision(connect: Connect) -> None:
    """Agents with equal random numbers have other rotations, and so has each decision of one."""

    async def rotations(seed: int, *names: str) -> list[int | None]:
        reasoner = Reasoner(connect(), mode="chat", rotations="drawn", seed=seed)
        agents = {each: SimpleNamespace(name=each, random=RandomStream(1)) for each in names}
        asked = [Question(agents[each], S.EVALUATING, "decides", OPTIONS) for each in names]
        return [decision.rotation for decision in await reasoner.decide_many(asked)]

    crowd = [f"n{number}" for number in range(12)]
    first = await rotations(1, *crowd)
    assert first == await rotations(1, *crowd) != await rotations(2, *crowd)
    assert len({*first}) > 1 < len({*await rotations(1, *["ada"] * 12)})


@BOTH
async def test_probabilities_belong_to_options_in_any_order(
    server: FakeOllama, connect: Connect
) -> None:
    """With probabilities, too, the option that the model means is taken, wherever it stands."""
    server.choose = lambda asked: "composing"
    decisions = await Reasoner(connect(), rotations="drawn").decide_many(questions(30))
    assert {one.rotation for one in decisions} > {0, 1}
    for one, question in zip(decisions, questions(30), strict=True):
        assert list(one.probabilities) == [option.value for option in question.options]
        assert (one.chosen, one.probabilities["composing"]) == (S.COMPOSING, 1)


async def test_a_junk_rotation_says_nothing_of_letters(server: FakeOllama, connect: Any) -> None:
    """The decision is by name, and has no mass, by which a resumed run would ask all by name."""
    letter = Fault.weighs({"A": 0.9})
    server.fail(*[letter] * 3, Fault.says("well"), *[letter] * 2)
    reasoner = Reasoner(connect(), rotations="all")
    three = [replace(question, options=OPTIONS[:3]) for question in questions(2)]
    _, last = [(await reasoner.decide_many([each]))[0] for each in three]
    assert (last.question_kind, last.option_mass) == ("name", None)


@BOTH
@pytest.mark.sampled(2)
async def test_all_rotations_are_asked_and_averaged(
    server: FakeOllama, connect: Connect, heard: list[Any]
) -> None:
    """A model that takes the first position gives all options one chance, and this is logged."""
    three = [replace(question, options=OPTIONS[:3]) for question in questions(60)]
    server.fail_always(Fault.weighs({"A": 0.9}))
    decisions = await Reasoner(connect(), rotations="all").decide_many(three)
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
    is_fickle: bool, apart: float, server: FakeOllama, connect: Connect
) -> None:
    """Rotations agree if a model means an option; the cost is that of all requests."""
    server.choose = lambda asked: asked.options[0] if is_fickle else "composing"
    reasoner = Reasoner(connect(), mode="chat", rotations="all")
    decisions: list[Any] = await reasoner.decide_many(questions(4))
    for decision, question in zip(decisions, questions(4), strict=True):
        assert decision.rotations_apart == apart
        assert decision.cost.attempts == len(question.options)


async def test_a_rotation_without_an_answer_is_left_out(
    server: FakeOllama, connect: Connect
) -> None:
    """The others decide; only a question that no rotation answers falls back."""
    server.choose = lambda asked: "composing"
    server.fail(*[Fault.says("neither")] * 2)
    reasoner = Reasoner(connect(), mode="chat", rotations="all", seed=1)
    first, *others = await reasoner.decide_many(questions(3))
    assert {decision.source for decision in (first, *others)} == {"model"}
    assert first.probabilities["composing"] == 1


@pytest.mark.parametrize(
    "fault", [None, Fault.weighs({"A": 0.4, "B": 0.3, "C": 0.1, "D": 0.1})], ids=["name", "letter"]
)
async def test_a_run_counts_the_places_that_a_model_takes(
    fault: Fault | None, server: FakeOllama, connect: Connect
) -> None:
    """A model that prefers the first position takes it in every list whose order was drawn."""
    if fault is not None:
        server.fail_always(fault)
    mode: Any = "auto" if fault else "chat"
    router = Router({"all": Reasoner(connect(), mode=mode, rotations="drawn")})
    await router.decide_many(questions(60))
    assert router.positions == {str(n): [12, *[0] * (n - 1)] for n in range(2, 7)}


@pytest.mark.parametrize(
    ("positions", "explained"),
    [
        ({"2": [35, 0]}, "35 of 35"),
        ({"3": [100, 50, 50], "2": [30, 70]}, "170 of 300"),
        ({"3": [8, 0, 0]}, "8 of 8"),
        ({"2": [0, 12]}, "12 of 12"),
        ({"2": [20, 20], "3": [10, 0, 0]}, "10 of 10"),
        ({"2": [30, 20]}, None),
        ({"2": [10, 0]}, None),
        ({"3": [7, 0, 0], "4": [2, 1, 1, 0]}, None),
        ({"1": [50]}, None),
        ({}, None),
    ],
)
def test_a_position_that_explains_the_choices_is_reported(
    positions: Any, explained: str | None
) -> None:
    """A chi-square test finds it in many choices, an exact one in few, both at p < .001."""
    told = list(spent_lines({"calls": 0, "tokens": 0, "positions": positions}))[1:]
    said = f"beware: the position in the list explains {explained} choices (p < .001)"
    assert told == ([said] if explained else [])
