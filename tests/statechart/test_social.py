"""The chart of a social media agent, and charts derived from other charts."""

from enum import StrEnum
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.agents import StatechartMixin
from prism.errors import DefinitionError
from prism.statechart import (
    AgentState,
    History,
    Statechart,
    Transition,
    social_media_chart,
    state_enum,
)
from tests.kit.charts import ANY
from tests.statechart.nested.phone import Phone, phone

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


More = StrEnum("More", ["MUTED"])
"""One more state of a social agent."""


MUTING = [
    Transition("mutes", S.EVALUATING, More.MUTED),
    Transition("timeout", More.MUTED, S.SCROLLING),
    Transition("round_ends", More.MUTED, S.IDLE),
]


def is_bold(agent: Any, context: Any) -> bool:
    return agent.agent_id == "bold"


def arrows(chart: Statechart[Any]) -> list[str]:
    return [str(item) for item in chart.transitions]


def muting(**changes: Any) -> Statechart[Any]:
    return social_media_chart().extended(states=More, transitions=MUTING, **changes)


def test_one_more_state_makes_an_enum_of_its_own() -> None:
    """The new enum has the former members and the new ones; nothing else changes."""
    base, chart = social_media_chart(), muting()
    states = chart.state_type
    names = [(state.name, state.value) for state in (*S, *More)]
    assert [(state.name, state.value) for state in states] == names
    assert all(type(state) is states for state in chart.states)
    assert arrows(chart) == [*arrows(base), *map(str, MUTING)]
    assert chart.check() == []


DECIDES_SCROLLING = ("decides", S.EVALUATING, S.SCROLLING)


@pytest.mark.parametrize(
    "name",
    [
        DECIDES_SCROLLING,
        ("decides", "evaluating", "scrolling"),
        ("decides", "evaluating", None),
        (None, "evaluating", "scrolling"),
    ],
)
def test_a_transition_gets_another_guard(name: Any) -> None:
    """By member, text or None: a guard is set for what is named; of two, the last one counts."""
    base = social_media_chart()
    chart = base.extended(guards={(None, "evaluating", "scrolling"): None, name: is_bold})
    changed = [
        (former, item)
        for former, item in zip(base.transitions, chart.transitions, strict=True)
        if former != item
    ]
    assert (base.transitions[5], chart.transitions[5]) in changed
    assert all(item.guard is is_bold for _, item in changed)
    assert [str(item) for item, _ in changed] == [str(item) for _, item in changed]


def test_a_name_that_fits_no_transition_is_refused() -> None:
    """With every name that fits none."""
    changes: Any = {"without": [("dcides", None, None)], "guards": {("x", "y", "z"): None}}
    with pytest.raises(DefinitionError, match=r"no transition \('dcides', .*\('x', 'y', 'z'\)"):
        social_media_chart().extended(**changes)


@given(data=st.data())
def test_extending_and_taking_away_gives_the_chart_back(
    random_charts: Any, data: st.DataObject
) -> None:
    """Over random charts, what is added can be left out again; nothing else has changed."""
    chart = data.draw(random_charts.charts())
    assert chart.extended() == chart
    texts = [state.value for state in chart.definition.states]
    free = data.draw(st.text(ANY, min_size=1, max_size=3).filter(lambda text: text not in texts))
    sources = [state for state in chart.definition.states if state not in chart.final_states]
    (new,) = state_enum("New", [free])
    added = [
        Transition(f"to {free}", source, new)
        for source in sources[: data.draw(st.integers(0, len(sources)))]
    ]
    larger = chart.extended(states=[new], transitions=added)
    assert [state.value for state in larger.definition.states] == [*texts, free]
    assert larger.transitions[len(chart.transitions) :] == tuple(added)
    back = larger.extended(without=larger.transitions[len(chart.transitions) :])
    assert back.transitions == chart.transitions
    kept = {
        name: getattr(chart.definition, name)
        for name in ("initial", "decision_states", "timeouts", "final_states", "strict", "name")
    }
    assert {name: getattr(back.definition, name) for name in kept} == kept


def test_a_nested_chart_is_changed_as_it_was_written() -> None:
    """Transitions are named as written, states are added at the top, and timers stay."""
    base = phone(
        Transition("resumes", Phone.POCKET, History(Phone.ENGAGING)),
        Transition(None, Phone.READING, Phone.SENT, is_bold),
        Transition("breaks", "*", Phone.BROKEN, rate=0.1),
        Transition("tires", Phone.ENGAGING, Phone.POCKET, after=2),
    )
    (lost,) = state_enum("More", ["lost"])
    chart = base.extended(
        states=[lost],
        transitions=[Transition("loses", Phone.READING, lost)],
        without=[("resumes", None, "engaging.H"), ("always", Phone.READING, None)],
        guards={("breaks", None, None): is_bold},
        timeouts={"engaging": 9, "pocket": None},
    )
    *_, breaks, other, tires, loses = chart.transitions
    assert (breaks.source, other.source, other.rate, tires.after) == ("pocket", "engaging", 0.1, 2)
    assert (other.guard, str(loses)) == (is_bold, "reading --loses--> lost")
    agent = chart.adopt(SimpleNamespace(notes=[], agent_id="shy", random=Random(1)))
    assert chart.fire(agent, "opens") == "reading"
    assert [chart.tick(agent), chart.tick(agent)] == [None, "pocket"]
