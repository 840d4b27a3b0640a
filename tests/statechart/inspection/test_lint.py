"""Probable mistakes that a lint finds in a well-defined chart."""

from __future__ import annotations

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


def flaws(*moves: Transition[Any], decisions: Any = ()) -> list[Finding]:
    chart = Statechart(Light, moves, Light.RED, decision_states=decisions)
    return chart.check()


def test_a_sound_chart_has_no_flaws() -> None:
    """Nothing is found in a chart that can reach and leave every state."""
    assert not flaws(
        Transition("on", Light.RED, Light.GREEN),
        Transition("on", Light.GREEN, Light.AMBER),
        Transition("fail", Light.AMBER, Light.BROKEN, never),
        Transition("timeout", "*", Light.RED),
    )


def test_all_kinds_are_found_at_once() -> None:
    """One check finds unreachable states, dead ends and shadowed transitions."""
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
