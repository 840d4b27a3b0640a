"""What keeps a state, a transition or a chart from being made, each with its sentence."""

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import AsyncMock

import pytest

from prism.errors import DefinitionError
from prism.statechart import Definition, History, State
from prism.statechart.states import AgentState, state_enum
from prism.statechart.transitions import Transition
from tests.statechart.nested.phone import Phone, phone

S = AgentState
OTHER = state_enum("Other", ["idle", "elsewhere"])
POCKET, ENGAGING, READING, SENT = Phone.POCKET, Phone.ENGAGING, Phone.READING, Phone.SENT
INSIDE = (READING, Phone.REPLYING, SENT, Phone.BROKEN)


async def asks_elsewhere(agent: Any, context: Any) -> bool:
    """Stand for a guard that cannot run inside a move."""
    return True


def one_argument(agent: Any) -> None:
    """Stand for a guard that cannot be called as one."""


def go(source: Any = S.IDLE, guard: Any = None, action: Any = None) -> Any:
    return lambda: Transition("go", source, S.RESTING, guard, action)


def flat(**given: Any) -> Any:
    """Return what makes a definition that differs from a sound one."""
    parts: dict[str, Any] = {"states": S, "transitions": (), "initial": S.IDLE, **given}
    return lambda: Definition(**parts, name="c")


def tree(*states: Any, **options: Any) -> Any:
    """Return what makes the chart of a phone with other states."""
    return lambda: phone(states=[*states] or None, **options)


def move(target: Any, source: Any = POCKET, **options: Any) -> Any:
    """Return what makes the chart of a phone with one more transition."""
    return lambda: phone(Transition("x", source, target, **options))


def shares(*values: float) -> Any:
    return lambda: phone(*(Transition("x", POCKET, READING, probability=each) for each in values))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: state_enum("Mood", []), "states must be non-empty strings, got none"),
        (lambda: state_enum("Mood", [*"abab"]), "remove the repeated states 'a', 'b'"),
        (lambda: state_enum("M", ["", 7]), "states must be non-empty strings, got '', 7"),  # type: ignore[list-item]
        (lambda: State(ENGAGING, parallel=True), "has no substates"),
        (lambda: State(ENGAGING, [SENT], initial=SENT, parallel=True), "is parallel, so all its"),
        # a transition
        (lambda: Transition("", S.IDLE, S.RESTING), "trigger must be a non-empty string, got ''"),
        *((go(each), "source and target must name a state each") for each in ([], None)),
        (move([]), "source and target must name a state each"),
        (go(guard=True), "guard True must be callable as guard(agent, context)"),
        (go(guard=one_argument), "guard 'one_argument' must be callable"),
        (go(guard=asks_elsewhere), "guard 'asks_elsewhere' is async"),
        (go(guard=AsyncMock()), "is async"),
        (go(action=partial(asks_elsewhere)), "is async"),
        (go(action=lambda agent, context: (yield)), "action '<lambda>' is async or yields"),
        (go(action=len), "action 'len' must be callable as action(agent,"),
        # a chart
        (flat(states=("idle", 3)), "chart 'c': states must be members of one Enum, such as"),
        (flat(states=(S.IDLE, OTHER("elsewhere"))), "got AgentState, Other"),
        (flat(transitions=[("go", S.IDLE, S.RESTING)]), "is no Transition: write Transition("),
        (flat(initial="idle"), "engaging_reshare, resting): use AgentState.IDLE"),
        (flat(initial=OTHER("idle")), "initial: <Other.IDLE: 'idle'> is not among the states"),
        (flat(timeouts={S.IDLE: 0}), "timeouts[idle] must be a whole number of ticks, 1 or more"),
        (
            flat(transitions=[Transition("go", OTHER("idle"), S.RESTING)]),
            "idle --go--> resting: <Other.IDLE: 'idle'> is not among",
        ),
        # states in states
        (tree(POCKET, State(ENGAGING, [READING, POCKET])), "'pocket' appears in the tree twice"),
        (
            lambda: phone().extended(without=[("opens",)]),
            "has no transition ('opens',): name one as",
        ),
        (tree(final_states=[ENGAGING]), "'engaging': it is final, but has substates: make one"),
        (
            tree(POCKET, State(ENGAGING, INSIDE, parallel=True), final_states=[SENT]),
            "state 'sent': it is a region, which cannot be final",
        ),
        (
            tree(State(ENGAGING, INSIDE, initial=History(POCKET)), POCKET),
            "'pocket' does not lie inside",
        ),
        (move(History(READING)), "'reading' has no substates, so it has no history"),
        (move((READING, Phone.REPLYING)), "do not lie in different regions"),
        (move(POCKET, SENT), "it leaves a final state"),
        (move(History(ENGAGING, default=POCKET)), "'pocket' does not lie inside 'engaging'"),
        (shares(0), "probability must be a number above 0, got 0"),
        (lambda: Transition("x", S.IDLE, S.RESTING, after=2.5), "must be a whole number above 0"),  # type: ignore[arg-type]
        (lambda: Transition("x", S.IDLE, S.RESTING, rate=True), "a number above 0, got True"),
        (lambda: Transition(None, S.IDLE, S.RESTING, after=2), "after and rate need a trigger"),
        (lambda: Transition("x", S.IDLE, S.RESTING, after=2, rate=1), "after and rate cannot be"),
        (shares(0.6, 0.6), "the probabilities of 'x' in 'pocket' add up to 1.2"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_is_refused(make: Callable[[], Any], message: str) -> None:
    """Each thing is one message that names the offender, and mostly what to do."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message follows
        make()
    assert isinstance(caught.value, DefinitionError)
    assert message in str(caught.value)


def test_a_state_is_its_member_however_it_is_written() -> None:
    """A chart with one that contains nothing says nothing that a flat one cannot."""
    bare = [State(S.IDLE), *(each for each in S if each is not S.IDLE)]
    assert flat(states=bare)() == flat()() == flat(initial=(S.IDLE,))() == flat(initial=None)()
    assert not flat(states=bare)().is_nested


def test_an_agent_is_done_only_in_a_final_state_at_the_top() -> None:
    """One inside a composite ends that alone."""
    top = phone(states=[POCKET, State(ENGAGING, INSIDE[:3]), Phone.BROKEN])
    assert top.final_states == {Phone.BROKEN}


def test_shares_that_are_a_little_more_than_the_whole_are_the_whole() -> None:
    """Their sum is 1, but for its last bits."""
    assert shares(0.33, 0.56, 0.11)()
