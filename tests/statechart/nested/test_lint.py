"""Probable mistakes that a lint finds in well-defined charts."""

from __future__ import annotations

from typing import Any

import pytest

from prism.statechart import History, Statechart, Transition, done, state_enum
from tests.statechart.nested.phone import USED, Day, Phone, day, phone

PLAIN = [Phone.POCKET, USED]
BREAKS = Transition("breaks", "*", Phone.BROKEN)


def findings_of(chart: Statechart[Any]) -> set[tuple[str, Any]]:
    return {(each.kind, each.state) for each in chart.check()}


def whole(*more: Transition[Phone], **options: Any) -> Statechart[Phone]:
    """Return a chart in which nothing is wrong, with further transitions."""
    return phone(
        Transition("resumes", Phone.POCKET, History(Phone.ENGAGING)),
        Transition(done(Phone.ENGAGING), Phone.ENGAGING, Phone.POCKET),
        *more,
        **{"states": PLAIN, "final_states": [Phone.SENT], **options},
    )


@pytest.mark.parametrize(
    "chart",
    [
        whole(),
        whole(BREAKS, states=[*PLAIN, Phone.BROKEN], final_states=[Phone.SENT, Phone.BROKEN]),
        day(),
        # whoever is tired leaves that only with everything else
        day(Transition("drops", Day.IDLE, Day.ASLEEP)),
    ],
)
def test_nothing_is_found_in_a_sound_chart(chart: Statechart[Any]) -> None:
    """Histories, final states inside and regions are no mistakes."""
    assert chart.check() == []


def test_a_region_is_left_together_with_the_others() -> None:
    """A transition of one region that leaves all of them is a way out of every region."""
    moves = [each for each in day().transitions if each.trigger != "sleeps"]

    def flaws(*more: Transition[Day]) -> set[tuple[str, Any]]:
        states = day().definition.arguments["states"]
        return findings_of(Statechart(states, [*moves, *more], Day.ASLEEP))

    assert flaws() == {("no_way_out", Day.WRITING), ("no_way_out", Day.TIRED)}
    assert flaws(Transition("sleeps", Day.WRITING, Day.ASLEEP)) == set()


def test_all_kinds_are_found_at_once() -> None:
    """One check finds unreachable states and dead ends."""
    light = state_enum("Light", ["red", "green", "amber", "broken"])
    red, green, amber, broken = light
    moves = [
        Transition("on", red, green),
        Transition("on", green, green),
        Transition("on", red, amber, lambda *_: False),
        Transition("on", broken, red),
        Transition("timeout", broken, red),
        Transition("on", amber, red),
    ]
    findings = Statechart(light, moves, red).check()
    assert {(finding.kind, finding.state) for finding in findings} == {
        ("unreachable", broken),
        ("no_way_out", green),
    }
    assert all("add a transition that" in str(finding) for finding in findings)
