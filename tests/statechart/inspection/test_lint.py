"""Probable mistakes that a lint finds in a well-defined chart."""

from enum import StrEnum
from typing import Any

import pytest

from prism.statechart import Finding, Statechart, Transition


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


def test_a_self_transition_is_no_way_out() -> None:
    """A self-transition is no way out of a state, and a time-out into itself no recovery."""
    found = flaws(
        Transition("on", Light.RED, Light.GREEN),
        Transition("on", Light.GREEN, Light.AMBER),
        Transition("timeout", Light.GREEN, Light.GREEN),
        Transition("on", Light.AMBER, Light.AMBER),
        Transition("fail", Light.RED, Light.BROKEN),
    )
    kinds = {(finding.kind, finding.state) for finding in found}
    assert ("no_way_out", Light.AMBER) in kinds
    assert ("no_timeout", Light.GREEN) in kinds
    assert ("no_timeout", Light.AMBER) in kinds


def test_a_limit_needs_a_timeout() -> None:
    """The initial state needs a time-out only if the chart sets a limit for it."""
    moves = (Transition("on", "*", Light.GREEN), Transition("timeout", Light.GREEN, Light.RED))
    for timeouts, expected in (({}, False), ({Light.RED: 3}, True)):
        kinds = {(finding.kind, finding.state) for finding in flaws(*moves, timeouts=timeouts)}
        assert (("no_timeout", Light.RED) in kinds) is expected


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


def test_finding_prints_as_its_message() -> None:
    """A finding prints as what is wrong and how to mend it."""
    assert str(Finding("no_way_out", Light.RED, "mend it")) == "mend it"
