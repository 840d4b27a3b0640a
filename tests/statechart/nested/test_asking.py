"""What a model is asked, and may reply, in a chart with regions."""

from __future__ import annotations

from typing import Any

import pytest

from prism import Model
from prism.statechart import Question, Reasoner, Transition
from prism.testing import FakeOllama
from tests.statechart.nested.phone import Day, Sleeper, day

CHOICE = (
    Transition("bored", Day.FEED, Day.WRITING),
    Transition("bored", Day.FEED, Day.IDLE),
    Transition("bored", Day.FEED, Day.ASLEEP),
)


def owner(chart: Any) -> Sleeper:
    """Return somebody who reads a feed, and is tired."""
    agent = Sleeper()
    for trigger in ("wakes", "opens", "tires"):
        chart.fire(agent, trigger)
    assert agent.state == "feed+tired"
    return agent


@pytest.mark.parametrize(("model", "mode"), [("tiny", "chat"), ("llama3.2", "auto")])
async def test_a_model_is_told_of_all_regions(model: str, mode: Any) -> None:
    """Options and replies are whole configurations, with the meanings of their leaves."""
    chart = day(*CHOICE, decision_states=[Day.FEED])
    agent = owner(chart)
    options = tuple(chart.enabled_targets(agent, "bored"))
    assert options == ("writing+tired", "idle+tired", "asleep")

    with FakeOllama(models=["tiny", "llama3.2"], choose=lambda asked: "writing+tired") as server:
        reasoner = Reasoner(
            Model(model, hosts=[server.host]),
            mode=mode,
            descriptions={Day.WRITING: "write to a friend"},
        )
        question = Question(agent, agent.state, "bored", options, chart=chart.definition)
        (decision,) = await reasoner.answer([question])
        await chart.afire(agent, "bored", reasoner=reasoner)
        await reasoner.close()
        for asked in server.questions:
            assert asked.options == options
            assert "write to a friend; tired" in str(asked.body)

    assert (decision.chosen, decision.source) == (options[0], "model")
    assert mode == "chat" or tuple(decision.probabilities or ()) == options
    assert agent.state == "writing+tired"
