"""What a chart reports to its log."""

from collections import deque
from typing import Any

import pytest

from prism.statechart.statechart import Statechart
from prism.statechart.states import AgentState
from prism.statechart.transitions import Transition
from tests.kit.moves import Post, chart_of

S = AgentState


def test_every_move_is_one_event(agent: Any, events: list[Any]) -> None:
    """Each transition, also each of a chain, is one event with dwell time and context."""
    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING),
        Transition(
            "on", S.SCROLLING, S.EVALUATING, action=lambda agent, _post: chart.fire(agent, "back")
        ),
        Transition("back", S.EVALUATING, S.IDLE),
        name="c",
    )
    agent.ticks_in_state = 4
    for trigger in ("go", "nonsense", "on"):
        chart.fire(agent, trigger, Post("p1"))
    common = {"event": "statechart.transition", "log_level": "info", "chart": "c", "agent_id": "a1"}
    moves = [
        ("idle", "scrolling", "go", 4),
        ("scrolling", "evaluating", "on", 0),
        ("evaluating", "idle", "back", 0),
    ]
    assert events == [
        {
            **common,
            "from_state": source,
            "to_state": target,
            "trigger": trigger,
            "ticks_in_state": dwell,
            "context": None if trigger == "back" else {"post_id": "p1"},
        }
        for source, target, trigger, dwell in moves
    ]


def test_a_given_logger_hears_moves_without_configuration(
    agent: Any, logger: Any, capture: Any
) -> None:
    """A chart's own logger gets its transitions even if structlog is not configured."""
    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING), Transition("go", S.SCROLLING, S.IDLE), logger=logger
    )
    chart.fire(agent, "go")
    chart.fire(agent, "go")
    assert [entry["event"] for entry in capture.entries] == ["statechart.transition"] * 2


def test_without_configuration_moves_are_silent(
    agent: Any, capsys: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Moves print nothing and log nothing until the application configures structlog."""
    chart = chart_of(Transition("go", S.IDLE, S.SCROLLING), Transition("go", S.SCROLLING, S.IDLE))
    for _ in range(3):
        chart.fire(agent, "go")
    assert capsys.readouterr() == ("", "")
    assert caplog.records == []


@pytest.mark.parametrize("field", ["guard", "action"])
def test_history_tells_the_truth_about_a_function_that_meddles(
    field: str, capture: Any, logger: Any
) -> None:
    """If a guard or an action moves the agent, record and log start where it is then."""

    def meddle(agent: Any, context: Any) -> bool:
        agent.state = S.RESTING
        return True

    options: Any = {field: meddle}
    chart = Statechart(S, [Transition("go", S.IDLE, S.SCROLLING, **options)], S.IDLE, logger=logger)

    class Walker:
        def __init__(self) -> None:
            self.state, self.state_history = S.IDLE, deque[Any]()

    # the second one takes the fast way, if anybody does
    for agent in (Walker(), Walker()):
        assert chart.fire(agent, "go") is S.SCROLLING
        assert [(record.from_state, record.to_state) for record in agent.state_history] == [
            (S.RESTING, S.SCROLLING)
        ]
    assert [each["from_state"] for each in capture.entries] == ["resting", "resting"]
