"""Guards and actions that name trigger, source or target as parameters get those of theirs."""

from __future__ import annotations

import pickle
from enum import StrEnum
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from prism.errors import DefinitionError
from prism.statechart import History, Statechart, Transition
from tests.statechart.nested.phone import Owner, Phone, phone


class Door(StrEnum):
    """A door."""

    SHUT = "shut"
    OPEN = "open"
    LOCKED = "locked"


def leads_out(agent: Any, context: Any, target: Any) -> bool:
    """Pass where the door opens."""
    return target is Door.OPEN


def note(agent: Any, context: Any, *, trigger: str, source: Any, target: Any) -> None:
    """Note which transition is made."""
    agent.notes.append((trigger, source, target))


def door(**options: Any) -> Statechart[Door]:
    """Return a chart whose guard chooses by target and whose action notes all."""
    return Statechart(
        Door,
        [
            Transition("turns", Door.SHUT, Door.LOCKED, leads_out, note),
            Transition("turns", Door.SHUT, Door.OPEN, leads_out, note),
            Transition("slams", "*", Door.SHUT, None, note),
        ],
        initial=Door.SHUT,
        **options,
    )


def test_each_transition_tells_its_own() -> None:
    """One guard and one action serve several transitions; of a wildcard it is the state left."""
    chart, agent = door(), SimpleNamespace(state=Door.SHUT, notes=[])
    assert chart.fire(agent, "turns", 1) is Door.OPEN
    assert chart.fire(agent, "slams") is Door.SHUT
    assert agent.notes == [
        ("turns", Door.SHUT, Door.OPEN),
        ("slams", Door.OPEN, Door.SHUT),
    ]


def test_the_machine_explain_and_pickles_tell_it_too() -> None:
    """Whatever evaluates a guard gives it the same."""
    chart, agent = door(), SimpleNamespace(state=Door.SHUT, notes=[])
    assert "failed     shut --turns--> locked" in str(chart.explain(agent, "turns"))
    assert chart.enabled_targets(agent, "turns") == [Door.OPEN]
    model = chart.adopt(SimpleNamespace(notes=[]))
    chart.machine.add_model(model)
    chart.machine.events["turns"].trigger(model, 1)
    assert model.notes == [("turns", Door.SHUT, Door.OPEN)]
    assert pickle.loads(pickle.dumps(chart)) == chart == door()


def test_in_composites_it_is_what_was_written() -> None:
    """The source is the composite, also where a leaf is left; a history is the target itself."""
    back = History(Phone.ENGAGING)
    chart = phone(
        Transition("falls", Phone.ENGAGING, Phone.BROKEN, None, note),
        Transition("resumes", Phone.POCKET, back, lambda a, c, target: target == back, note),
        Transition("buzzes", Phone.ENGAGING, None, None, note),
    )
    agent = Owner()
    chart.begin(agent)
    agent.notes.clear()
    for event in ("resumes", "buzzes", "falls"):
        assert chart.fire(agent, event) is not None
    noted: list[Any] = [each for each in agent.notes if isinstance(each, tuple)]
    assert noted == [
        ("resumes", Phone.POCKET, back),
        ("buzzes", Phone.ENGAGING, None),
        ("falls", Phone.ENGAGING, Phone.BROKEN),
    ]


def test_a_default_and_a_partial_are_filled_where_they_are_open() -> None:
    """A parameter that a partial has fixed by place is not asked for again."""

    def far(limit: int, agent: Any, context: Any, source: Any = None) -> bool:
        return source is Door.SHUT and context > limit

    chart = Statechart(
        Door, [Transition("x", Door.SHUT, Door.OPEN, partial(far, 2))], initial=Door.SHUT
    )
    assert chart.fire(SimpleNamespace(state=Door.SHUT), "x", 2) is None
    assert chart.fire(SimpleNamespace(state=Door.SHUT), "x", 3) is Door.OPEN


def other(agent: Any, context: Any, event: Any) -> bool:
    """Ask for what nobody tells."""
    return True


def by_place(agent: Any, context: Any, target: Any, /) -> bool:
    """Ask for a target that cannot be given by name."""
    return True


@pytest.mark.parametrize("guard", [other, by_place])
def test_another_name_is_refused(guard: Any) -> None:
    """Nothing else is known of a transition, and it is told by name alone."""
    with pytest.raises(DefinitionError, match=r"must take two arguments, guard\(agent, context\)"):
        Transition("x", Door.SHUT, Door.OPEN, guard)
