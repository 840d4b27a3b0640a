"""The chart of a social media agent."""

import pickle
from typing import Any

import pytest

from prism.agents import StatechartMixin
from prism.statechart import social
from prism.statechart.social import social_media_chart
from prism.statechart.statechart import Statechart
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


def by_relevance(agent: Any, post: Any) -> Any:
    """Engage by the relevance that a post has."""
    return agent.should_engage(post["relevance"])


def test_an_adapted_chart_is_written_read_and_copied() -> None:
    """An adapted chart names the guard that it was given, loads back, and can be pickled."""
    chart = social_media_chart(should_engage=by_relevance)
    written = chart.to_json()
    guards = {**vars(social), "by_relevance": by_relevance}
    assert Statechart.from_json(written, guards=guards, states=S) == chart
    assert pickle.loads(pickle.dumps(chart)) == chart != social_media_chart()
