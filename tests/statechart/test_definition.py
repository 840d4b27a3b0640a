"""What must hold before a chart is built, and what a lint finds in one that was."""

from enum import Enum, StrEnum
from typing import Any

import pytest

from prism.errors import DefinitionError
from prism.statechart._definition import definition_problems, expand
from prism.statechart.inspection._lint import Finding, find_flaws
from prism.statechart.states import AgentState, state_enum
from prism.statechart.transitions import Transition

S = AgentState
OTHER = state_enum("Other", ["idle", "elsewhere"])


class Light(StrEnum):
    RED = "red"
    GREEN = "green"
    AMBER = "amber"
    BROKEN = "broken"


class Level(Enum):
    LOW = 1


def never(agent: Any, context: Any) -> bool:
    return False


def problems(
    states: Any = tuple(S),
    transitions: Any = (),
    initial: Any = S.IDLE,
    decisions: Any = (),
    timeouts: Any = None,
) -> list[str]:
    return definition_problems(states, transitions, initial, decisions, timeouts or {})


def test_a_sound_definition_has_no_problems() -> None:
    """Nothing is said about a definition in which everything holds."""
    moves = [Transition("go", S.IDLE, S.RESTING), Transition("stop", "*", S.IDLE)]
    assert problems(transitions=moves, decisions=[S.IDLE], timeouts={S.RESTING: 1}) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"states": ()}, "a chart needs at least one state"),
        (
            {"states": ("idle", 3)},
            "states must be members of a str-based Enum such as AgentState, got 'idle', 3",
        ),
        ({"states": (Level.LOW,)}, "states must be members of a str-based Enum"),
        (
            {"states": (S.IDLE, Light.RED)},
            "states must all come from one enum, got members of AgentState, Light",
        ),
        ({"initial": "idle"}, "initial state 'idle' is not among the states (idle, scrolling,"),
        ({"initial": OTHER("idle")}, "initial state <Other.S0: 'idle'> is not among the states"),
        ({"initial": None}, "initial state None is not among the states"),
        ({"states": (S.IDLE,), "initial": S.RESTING}, "is not among the states (idle)"),
        (
            {"decisions": [OTHER("elsewhere")]},
            "decision state <Other.S1: 'elsewhere'> is not among the states",
        ),
        (
            {"timeouts": {OTHER("elsewhere"): 2}},
            "timeouts names <Other.S1: 'elsewhere'>, which is not among",
        ),
        (
            {"timeouts": {S.IDLE: 0}},
            "timeouts[idle] must be a whole number of ticks from 1 on, got 0",
        ),
        (
            {"timeouts": {S.IDLE: 2.5}},
            "timeouts[idle] must be a whole number of ticks from 1 on, got 2.5",
        ),
        (
            {"timeouts": {S.IDLE: True}},
            "timeouts[idle] must be a whole number of ticks from 1 on, got True",
        ),
        ({"transitions": ["go"]}, "transition 1 must be a Transition, got 'go'"),
        (
            {"transitions": [Transition("go", OTHER("idle"), S.RESTING)]},
            "transition 1 (idle --go--> resting): source <Other.S0: 'idle'> is not among the states",
        ),
        (
            {"states": (S.IDLE,), "transitions": [Transition("go", S.IDLE, S.RESTING)]},
            "transition 1 (idle --go--> resting): target <AgentState.RESTING: 'resting'> is not among the states",
        ),
        (
            {"transitions": [Transition("state", S.IDLE, S.RESTING)]},
            "transition 1 (idle --state--> resting): a trigger cannot be called 'state', rename it",
        ),
    ],
)
def test_a_problem_names_its_offender(given: dict[str, Any], message: str) -> None:
    """Each thing that keeps a chart from being built is told once, with the offender and the mend."""
    (found,) = problems(**given)
    assert message in found


def test_all_problems_are_listed_at_once() -> None:
    """Every offender of a definition is in the list, in one go."""
    moves = [None, Transition("go", OTHER("idle"), OTHER("elsewhere"))]
    found = problems(transitions=moves, initial=None, decisions=["x"], timeouts={"x": -1})
    assert len(found) == 7


def test_definition_error_is_a_value_error() -> None:
    """The error of a badly defined chart is a ValueError."""
    assert issubclass(DefinitionError, ValueError)


def test_expand_replaces_a_wildcard_in_place() -> None:
    """A wildcard becomes one transition for every state, in the states' order and at its own place in the list."""
    first, last = (
        Transition("go", Light.RED, Light.GREEN),
        Transition("go", Light.GREEN, Light.AMBER),
    )
    stop = Transition("stop", "*", Light.RED, never, print)
    expanded = expand([first, stop, last], list(Light))
    assert expanded == (
        first,
        *(Transition("stop", light, Light.RED, never, print) for light in Light),
        last,
    )


def flaws(*moves: Transition[Any], decisions: Any = (), timeouts: Any = None) -> list[Finding]:
    return find_flaws(
        list(Light), expand(moves, list(Light)), Light.RED, frozenset(decisions), timeouts or {}
    )


def test_a_sound_chart_has_no_flaws() -> None:
    """Nothing is found in a chart that can reach, leave and time out of every state."""
    assert not flaws(
        Transition("on", Light.RED, Light.GREEN),
        Transition("on", Light.GREEN, Light.AMBER),
        Transition("fail", Light.AMBER, Light.BROKEN, never),
        Transition("timeout", "*", Light.RED),
    )


def test_all_four_kinds_are_found_at_once() -> None:
    """One check finds the unreachable state, the dead end, the shadowed transition and the missing time-out."""
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
    """A state that only leads to itself has no way out, and timing out into itself is no recovery."""
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
