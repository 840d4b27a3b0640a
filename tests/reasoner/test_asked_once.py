"""Equal questions and texts are asked once at temperature 0, and else of each agent."""

import asyncio
from dataclasses import replace
from math import sqrt
from types import SimpleNamespace
from typing import Any

import pytest

from prism.randomness import RandomStream
from prism.reasoner import Decision, Question, Reasoner, Router, TextCall, Writer
from prism.testing import FakeOllama, Fault
from tests.kit.reasoners import S, answer, ask
from tests.kit.servers import BOTH, Connect


@pytest.mark.parametrize(("mode", "model"), [("chat", "tiny"), ("auto", "llama3.2")])
async def test_an_equal_question_is_not_asked_again(
    mode: Any, model: str, server: FakeOllama, connect: Connect, heard: list[Any]
) -> None:
    """A later decision on the same prompt takes the answer, and costs nothing."""
    reasoner = Reasoner(connect(model=model), mode=mode)
    first, later = [await reasoner.decide_many([ask()]) for _ in range(2)]
    assert (first[0].source, later[0].source, later[0].cost) == ("model", "cache", None)
    assert later[0].probabilities == first[0].probabilities
    costs = {"latency", "model", "host", "attempts", "input_tokens", "output_tokens"}
    assert [costs & {*event} for event in heard] == [costs, set()]
    await reasoner.decide_many([ask(options=(S.SCROLLING, S.COMPOSING))])
    assert len(server.questions) == 2


@pytest.mark.parametrize(
    "fault", [Fault.says("nonsense"), Fault.says(answer("resting")), Fault.status(500)]
)
async def test_a_useless_answer_is_not_kept(
    fault: Fault, server: FakeOllama, connect: Connect
) -> None:
    """A fallback is no answer, so the question is asked again."""
    # a model whose words are of no use is asked once more for the same decision
    server.fail(*[fault] * (1 if fault.content is None else 2))
    reasoner = Reasoner(connect(attempts=1), mode="chat")
    decisions = [(await reasoner.decide_many([ask()]))[0] for _ in range(3)]
    assert [each.source for each in decisions] == ["fallback", "model", "cache"]


@pytest.mark.parametrize("at_once", [True, False])
async def test_an_equal_text_is_written_once(at_once: bool, connect: Connect) -> None:
    """Calls with one prompt share a text, whether they come together or one after the other."""
    with FakeOllama(models=["tiny"], write=lambda *_: "Hello.") as server:
        writer = Writer(connect(server))
        calls = [TextCall(name, "greeting", "Greet Bo.") for name in ("ann", "ben", "cem")]
        if at_once:
            written = await writer.write_many(calls)
        else:
            written = [await writer.write(each) for each in calls]
        assert [each.value for each in written] == ["Hello."] * 3
        assert server.asked == 1
        assert sum(each.cost.attempts for each in written if each.cost) == 1
        assert (await writer.write(TextCall("ann", "greeting", "Greet Bo.", variation=1))).value
        assert server.asked == 2


async def test_calls_read_a_shared_text_each_in_its_way(connect: Connect) -> None:
    """A call that cannot use the text of an equal one fails alone."""
    with FakeOllama(models=["tiny"], write=lambda *_: "Hello.") as server:
        writer = Writer(connect(server))
        words, number = TextCall("ann", "k", "Say it."), TextCall("ben", "k", "Say it.", read=int)
        found = await asyncio.gather(writer.write(words), writer.write(number))
    assert [each.has_failed for each in found] == [False, True]


async def test_a_resumed_run_knows_what_it_has_asked(server: FakeOllama, connect: Connect) -> None:
    """Answers that come from a journal are answers to equal questions, too."""
    asked, resumed = (Reasoner(connect(), mode="chat") for _ in range(2))
    (decision,) = await asked.decide_many([ask()])
    router = Router({"all": resumed})
    router.skip(ask(), decision)
    assert (await router.decide_many([ask()]))[0].source == "cache"
    assert len(server.questions) == 1


# Answers that a model samples

AGENTS = 100
SHARE = 0.3


def twins(count: int = AGENTS) -> list[Question]:
    """Return the same question to so many agents, who differ in nothing but their ids."""
    agents = [SimpleNamespace(agent_id=f"agent {each}", name="Ada") for each in range(count)]
    return [replace(ask(), agent=agent) for agent in agents]


def sampled(question: Any) -> str:
    """Choose as a model does that gives the first option a share, by the seed of the request."""
    seed = question.body.get("options", question.body)["seed"]
    number = RandomStream(seed).random()
    return str(question.options[0 if number < SHARE else 1])


def is_near(count: int, share: float, of: int = AGENTS) -> bool:
    """Return True if a count is within four standard errors of a share."""
    return abs(count - share * of) <= 4 * sqrt(share * (1 - share) * of)


def chosen(decisions: list[Decision]) -> list[Any]:
    return [decision.chosen for decision in decisions]


@pytest.mark.slow
async def test_agents_with_one_prompt_draw_independently(
    server: FakeOllama, connect: Connect
) -> None:
    """At another temperature than 0 the shares are those of the model, at a request for each."""
    server.choose = sampled
    reasoner = Reasoner(connect(temperature=0.8), mode="chat", seed=3)
    first, second = [await reasoner.decide_many(twins()) for _ in range(2)]
    assert is_near(chosen(first).count(S.COMPOSING), SHARE)
    assert is_near(chosen(second).count(S.COMPOSING), SHARE)
    # whether an agent accepts says nothing about its next answer
    both = sum(a == b == S.COMPOSING for a, b in zip(chosen(first), chosen(second), strict=True))
    assert is_near(both, SHARE**2)
    assert server.asked == 2 * AGENTS
    seeds = [question.body["options"]["seed"] for question in server.questions]
    assert len({*seeds}) == 2 * AGENTS


@BOTH
async def test_a_seed_repeats_every_draw(server: FakeOllama, connect: Connect) -> None:
    """The same seed gives the same answers, whoever is asked first; another gives others."""
    found, server.choose = [], sampled
    for seed, step in ((1, 1), (1, -1), (2, 1)):
        reasoner = Reasoner(connect(temperature=0.8), mode="chat", seed=seed)
        found.append(chosen(await reasoner.decide_many(twins(40)[::step]))[::step])
    assert found[0] == found[1] != found[2]
