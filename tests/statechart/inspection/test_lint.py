"""Probable mistakes that a lint finds in a well-defined chart."""

from __future__ import annotations

from enum import StrEnum
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from prism.agents import StatechartMixin
from prism.errors import AgentError
from prism.statechart import AgentState, Finding, Statechart, Transition
from prism.statechart.inspection import require_fit

if TYPE_CHECKING:
    pass


class Light(StrEnum):
    RED = "red"
    GREEN = "green"
    AMBER = "amber"
    BROKEN = "broken"


def never(agent: Any, context: Any) -> bool:
    return False


def flaws(*moves: Transition[Any], decisions: Any = (), timeouts: Any = None) -> list[Finding]:
    chart = Statechart(Light, moves, Light.RED, decision_states=decisions, timeouts=timeouts)
    return chart.check()


def test_a_sound_chart_has_no_flaws() -> None:
    """Nothing is found in a chart that can reach, leave and time out of every state."""
    assert not flaws(
        Transition("on", Light.RED, Light.GREEN),
        Transition("on", Light.GREEN, Light.AMBER),
        Transition("fail", Light.AMBER, Light.BROKEN, never),
        Transition("timeout", "*", Light.RED),
    )


def test_all_four_kinds_are_found_at_once() -> None:
    """One check finds unreachable states, dead ends, shadowed transitions and missing time-outs."""
    shadowed = Transition("on", Light.RED, Light.AMBER, never)
    found = flaws(
        Transition("on", Light.RED, Light.GREEN),
        shadowed,
        Transition("on", Light.BROKEN, Light.RED),
        Transition("timeout", Light.BROKEN, Light.RED),
        Transition("on", Light.AMBER, Light.RED),
    )
    assert {(finding.kind, finding.state) for finding in found} == {
        ("unreachable", Light.BROKEN),
        ("no_way_out", Light.GREEN),
        ("shadowed", Light.RED),
        ("no_timeout", Light.AMBER),
        ("no_timeout", Light.GREEN),
    }
    assert [finding.transition for finding in found if finding.kind == "shadowed"] == [shadowed]
    assert all(text in " ".join(map(str, found)) for text in ("add a transition", "put it first"))


@pytest.mark.parametrize(
    ("guard", "decisions", "expected"),
    [(None, (), 1), (never, (), 0), (None, (Light.RED,), 0), (None, "other", 1)],
)
def test_only_what_cannot_fire_is_shadowed(guard: Any, decisions: Any, expected: int) -> None:
    """A transition is shadowed by an earlier unguarded one, unless a reasoner may choose it."""
    found = flaws(
        Transition("on", Light.RED, Light.GREEN, guard),
        Transition("on", Light.RED, Light.AMBER),
        Transition("off", Light.RED, Light.BROKEN),
        decisions=(Light.GREEN,) if decisions == "other" else decisions,
    )
    assert sum(finding.kind == "shadowed" for finding in found) == expected


S = AgentState


class Slotted:
    __slots__ = ("mood", "patience", "state")

    def speak(self) -> None: ...


class Mixed(StatechartMixin):
    def __init__(self) -> None:
        (self.mood, self.patience), self.speak = (1, 2), None


def chart_with(*needs: str) -> Statechart[S]:
    return Statechart(S, [], S.IDLE, name="c", needs=needs)


def test_an_agent_that_lacks_something_is_refused() -> None:
    """The error names the agent, its class and all that it lacks."""
    chart = chart_with("mood").definition
    fine = SimpleNamespace(state=S.IDLE, mood=1, extra=2)
    require_fit([fine, fine], chart, ["extra"])
    with pytest.raises(AgentError, match=r"'c': Slotted lacks state, mood, extra"):
        require_fit([fine, Slotted()], chart, ["extra"])
    with pytest.raises(AgentError, match=r"'Mixed@.*' does not fit chart 'c': Mixed lacks extra"):
        require_fit([Mixed()], chart, ["extra"])
