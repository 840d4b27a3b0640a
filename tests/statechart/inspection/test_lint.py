"""Probable mistakes that a lint finds in a well-defined chart."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

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
