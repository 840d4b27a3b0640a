"""Reasoners that answer late, fail, or record what they are asked."""

from types import SimpleNamespace

import pytest

from prism.statechart import AgentState, Decision, PolicyReasoner, Question
from prism.testing import FailingReasoner, LateReasoner, RecordingReasoner, ScriptedReasoner

S = AgentState
OPTIONS = (S.COMPOSING, S.SCROLLING)


def crowd(size: int) -> list[Question]:
    """Return a question to each of several agents."""
    return [
        Question(SimpleNamespace(agent_id=f"a{number}"), S.EVALUATING, "decides", OPTIONS)
        for number in range(size)
    ]


@pytest.mark.parametrize("kind", [RecordingReasoner, LateReasoner])
async def test_answers_are_those_of_the_wrapped_reasoner(kind: type[RecordingReasoner]) -> None:
    """A wrapper answers like the wrapped reasoner, by default the policy."""
    wanted = await PolicyReasoner(3).decide_many(crowd(20))
    assert await kind(PolicyReasoner(3)).decide_many(crowd(20)) == wanted
    assert await kind().decide_many(crowd(20)) == await PolicyReasoner().decide_many(crowd(20))


async def test_questions_are_recorded_by_call() -> None:
    """The questions of every call are kept, together and call by call."""
    recording, (first, second, third) = RecordingReasoner(), crowd(3)
    await recording.decide_many([first, second])
    await recording.decide_many([third])
    assert recording.batches == [(first, second), (third,)]
    assert recording.questions == [first, second, third]


async def test_concurrency_is_that_of_the_wrapped_reasoner() -> None:
    """A wrapper takes as many questions at once as the wrapped reasoner, unless it answers late."""
    late = LateReasoner(concurrency=7)
    assert (RecordingReasoner(late).concurrency, FailingReasoner(KeyError(), late).concurrency) == (
        7,
        7,
    )
    assert RecordingReasoner().concurrency == 0


async def test_late_answers_overtake_each_other_in_the_same_way_for_a_seed() -> None:
    """Answers come out of order, how many depends on the seed alone; none is left under way."""
    late, again = LateReasoner(seed=1), LateReasoner(seed=1)
    for reasoner in (late, again):
        await reasoner.decide_many(crowd(20))
        assert (reasoner.under_way, len(reasoner.questions)) == ([], 20)
    assert late.overtaken == again.overtaken > 0
    assert late.most_at_once == again.most_at_once > 10


async def test_without_turns_to_wait_answers_stay_in_order() -> None:
    """A late reasoner with no turns to wait answers each question before the next."""
    reasoner = LateReasoner(most_turns=0)
    await reasoner.decide_many(crowd(20))
    assert (reasoner.overtaken, reasoner.most_at_once) == (0, 1)


async def test_a_failure_comes_at_its_question() -> None:
    """Only the call with the failing question raises; those before and after it are answered."""
    failing = FailingReasoner(LookupError("gone"), ScriptedReasoner({"decides": "scrolling"}), at=4)
    assert len(await failing.decide_many(crowd(3))) == 3
    with pytest.raises(LookupError, match="gone"):
        await failing.decide_many(crowd(2))
    assert len(await failing.decide_many(crowd(3))) == 3
    assert len(failing.questions) == 8


async def test_a_failure_may_be_an_impossible_decision() -> None:
    """A decision given as the failure takes the place of the right one, whatever it chooses."""
    wrong = Decision("flying", "policy")
    decisions = await FailingReasoner(wrong, at=2).decide_many(crowd(3))
    assert [decision is wrong for decision in decisions] == [False, True, False]
