"""Questions, answers, and what all reasoners share."""

from collections.abc import Sequence
from enum import StrEnum
from types import SimpleNamespace
from typing import Any

import pytest

from prism.errors import ReasonerError
from prism.statechart import BaseReasoner, Cost, Decision, Question, State, Statechart, Transition
from prism.statechart.states import AgentState
from tests.kit.reasoners import prompt_of

S = AgentState


class LastOption(BaseReasoner):
    """Takes the last option of every question."""

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        self.questions = list(questions)
        return [
            Decision(question.options[-1], "policy", probabilities={"idle": 1.0})
            for question in questions
        ]


def question(name: str = "a1", **changes: Any) -> Question:
    fields = {
        "state": S.EVALUATING,
        "trigger": "decides",
        "options": (S.COMPOSING, S.SCROLLING),
        "context": None,
    }
    return Question(SimpleNamespace(agent_id=name), **{**fields, **changes})


def test_a_question_needs_options() -> None:
    """A question without options is a ValueError that names agent and trigger, with advice."""
    message = (
        "agent 'a1' was asked what to do on 'decides' with no options: "
        r"ask only when chart.enabled_targets\(\)"
    )
    with pytest.raises(ValueError, match=message) as caught:
        question(options=())
    assert isinstance(caught.value, ReasonerError)


async def test_every_decision_is_announced(heard: list[Any]) -> None:
    """Each decision is one event: its question in plain texts, its source and probabilities."""
    await LastOption().decide_many([question(context=SimpleNamespace(post_id="p1"))])
    assert heard == [
        {
            "event": "reasoner.decision",
            "log_level": "info",
            "agent_id": "a1",
            "state": "evaluating",
            "trigger": "decides",
            "options": ["composing", "scrolling"],
            "chosen": "scrolling",
            "source": "policy",
            "reason": None,
            "probabilities": {"idle": 1.0},
            "context": {"post_id": "p1"},
        }
    ]


async def test_decisions_are_silent_without_configuration(capsys: Any, caplog: Any) -> None:
    """Without a logger and without configured structlog a decision prints and logs nothing."""
    await LastOption().decide_many([question()])
    assert capsys.readouterr() == ("", "")
    assert caplog.records == []


class Given(BaseReasoner):
    """Gives the same decision every time."""

    def __init__(self, decision: Decision) -> None:
        super().__init__()
        self.decision = decision

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        return [self.decision for _ in questions]


async def test_a_call_is_announced_with_its_decision(heard: list[Any]) -> None:
    """What a call took stands in the decision's event, and only where there was a call."""
    cost = Cost(0.25, "m1", "h1", 2, 30, 4)
    await Given(Decision(S.SCROLLING, "model", cost=cost)).decide_many([question()])
    await Given(Decision(S.SCROLLING, "cache")).decide_many([question()])
    costs = ("latency", "model", "host", "attempts", "input_tokens", "output_tokens")
    assert tuple(heard[0][key] for key in costs) == (0.25, "m1", "h1", 2, 30, 4)
    assert not {*costs} & {*heard[1]}


class Day(StrEnum):
    """States in two regions, of which both may change at once."""

    AWAKE = "awake"
    PHONE = "phone"
    FEED = "feed"
    WRITING = "writing"
    BODY = "body"
    FIT = "fit"
    TIRED = "tired"


async def test_in_regions_a_model_is_told_of_every_leaf() -> None:
    """Options are called by all of their leaves, with meanings where there are any."""
    chart = Statechart(
        [
            State(
                Day.AWAKE,
                [
                    State(Day.PHONE, [Day.FEED, Day.WRITING]),
                    State(Day.BODY, [Day.FIT, Day.TIRED]),
                ],
                parallel=True,
            )
        ],
        [Transition("goes", Day.FEED, Day.WRITING), Transition("goes", Day.FIT, Day.TIRED)],
        Day.AWAKE,
    )
    here, writing, tired = map(chart.state_of, ("feed+fit", "writing+fit", "feed+tired"))
    agent = SimpleNamespace(agent_id="a1", name="Ada", meanings={Day.FIT: "rested"})
    asked = Question(agent, here, "goes", (writing, tired, here))
    lines = (await prompt_of(asked)).split("\n")
    start = lines.index("- writing+fit: writing; rested")
    assert lines[start : start + 3] == [
        "- writing+fit: writing; rested",
        "- feed+tired",
        "- feed+fit: feed; rested",
    ]
