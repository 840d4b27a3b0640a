"""The chart of a social media agent."""

from typing import Any

import pytest

from prism.agents._mixin import StatechartMixin
from prism.statechart.social import RESTING_TICKS, social_media_chart
from prism.statechart.states import AgentState

S = AgentState
ACTIVE = [state for state in S if state is not S.IDLE]
ENGAGING = [S.ENGAGING_LIKE, S.ENGAGING_REPLY, S.ENGAGING_RESHARE]


class SocialAgent(StatechartMixin):
    """What the chart reads of a social agent."""

    def __init__(
        self, state: S = S.IDLE, *, engages: bool = True, pending_action: str | None = None
    ) -> None:
        self.state = state
        self.engages = engages
        self.pending_action = pending_action

    def should_engage(self, post: Any) -> bool:
        return self.engages


CATALOG = {
    "feed_ready": {S.IDLE: [S.SCROLLING]},
    "sees_post": {S.SCROLLING: [S.EVALUATING]},
    "ignores": {S.EVALUATING: [S.SCROLLING]},
    "decides": {S.EVALUATING: [S.COMPOSING, S.ENGAGING_LIKE, S.SCROLLING]},
    "compose_done": {S.COMPOSING: [S.ENGAGING_REPLY, S.ENGAGING_RESHARE, S.RESTING, S.SCROLLING]},
    "action_done": {key: [S.RESTING] for key in ENGAGING},
    "round_ends": {key: [S.IDLE] for key in ACTIVE},
    "timeout": {
        **{key: [S.SCROLLING] for key in [S.EVALUATING, S.COMPOSING, *ENGAGING]},
        S.SCROLLING: [S.RESTING],
        S.RESTING: [S.IDLE],
    },
}


@pytest.mark.parametrize("trigger", CATALOG)
def test_triggers_are_those_of_the_catalog(trigger: str) -> None:
    """A trigger applies in the states of the catalog and leads to the documented targets."""
    chart = social_media_chart()
    found = {state: chart.valid_targets(state, trigger) for state in S}
    assert {state: targets for state, targets in found.items() if targets} == CATALOG[trigger]


def test_there_are_no_further_triggers() -> None:
    """Together the states react to the triggers of the catalog and no others."""
    chart = social_media_chart()
    assert {trigger for state in S for trigger in chart.valid_triggers(state)} == set(CATALOG)


def test_the_chart_has_its_documented_settings() -> None:
    """Agents start in IDLE, decide in EVALUATING, and rest two ticks."""
    chart = social_media_chart()
    assert (chart.name, chart.initial, chart.decision_states) == (
        "social_media",
        S.IDLE,
        {S.EVALUATING},
    )
    assert chart.timeouts == {S.RESTING: RESTING_TICKS} == {S.RESTING: 2}


def test_the_check_finds_nothing() -> None:
    """The chart's own check has nothing to say about it."""
    assert social_media_chart().check() == []


@pytest.mark.parametrize(
    ("engages", "enabled"),
    [(True, [S.COMPOSING, S.ENGAGING_LIKE, S.SCROLLING]), (False, [S.SCROLLING])],
)
def test_only_an_agent_that_should_engage_has_a_choice(engages: bool, enabled: list[S]) -> None:
    """An agent that would not engage can only scroll on; others may compose, like, or scroll on."""
    agent = SocialAgent(S.EVALUATING, engages=engages)
    assert social_media_chart().enabled_targets(agent, "decides", "post") == enabled


@pytest.mark.parametrize(
    ("pending", "target"),
    [
        ("reply", S.ENGAGING_REPLY),
        ("reshare", S.ENGAGING_RESHARE),
        ("post", S.RESTING),
        (None, S.SCROLLING),
        ("sing", S.SCROLLING),
    ],
)
def test_a_composed_text_goes_where_it_was_meant_for(pending: str | None, target: S) -> None:
    """A composing agent does what its pending action says; without one the draft is dropped."""
    agent = SocialAgent(S.COMPOSING, pending_action=pending)
    assert social_media_chart().fire(agent, "compose_done") is target


@pytest.mark.parametrize("state", ACTIVE)
def test_no_agent_is_stuck(state: S) -> None:
    """From every active state, ticks alone bring an agent back to IDLE."""
    chart, agent = social_media_chart(), SocialAgent(state)
    for _ in range(3 * (agent.timeout_threshold + 1)):
        chart.tick(agent)
    assert agent.state is S.IDLE


@pytest.mark.parametrize(
    ("state", "target", "ticks"), [(S.RESTING, S.IDLE, 3), (S.EVALUATING, S.SCROLLING, 6)]
)
def test_resting_is_shorter_than_other_states(state: S, target: S, ticks: int) -> None:
    """Resting times out on the third tick; other states have the agent's own limit of five."""
    chart, agent = social_media_chart(), SocialAgent(state)
    assert [chart.tick(agent) for _ in range(ticks)] == [None] * (ticks - 1) + [target]


def test_options_reach_the_chart(logger: Any, capture: Any) -> None:
    """Strictness, logger and clock are those of the caller."""
    chart = social_media_chart(strict=True, logger=logger, clock=lambda: 60.0)
    agent = SocialAgent()
    chart.fire(agent, "feed_ready")
    assert chart.strict
    assert agent.state_history[0].timestamp.minute == 1
    assert [entry["chart"] for entry in capture.entries] == ["social_media"]
