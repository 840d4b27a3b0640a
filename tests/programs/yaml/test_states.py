"""States and transitions: what a file declares, and what may follow what."""

import pytest

pytest.importorskip("pydantic_monty")

from prism.errors import InputError
from tests.kit.structlogs import capture_logs
from tests.kit.writers import agent_of, said

ASKS = "steps: [{name: s, code: '', in_state: %s, transition_to: %s}]\n"


def machine(*transitions: str, initial: str | None = None) -> str:
    lines = ["state_machine:", "  states: [a, b, c]"]
    if initial is not None:
        lines.append(f"  initial_state: {initial}")
    if transitions:
        lines += ["  transitions:", *(f"    - {item}" for item in transitions)]

    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("declared", "state"), [(None, "a"), ("c", "c")])
def test_the_initial_state(declared: str | None, state: str) -> None:
    """It is the declared one, and the first where none is declared."""
    assert agent_of(machine(initial=declared) + ASKS % ("a", "b")).state == state


@pytest.mark.parametrize(
    ("listed", "source", "target", "is_allowed"),
    [
        ("{from: a, to: b}", "a", "b", True),
        ("{from: a, to: b}", "a", "c", False),
        ("{from: a, to: b}", "b", "a", False),
        ("{from: [a, b], to: c}", "b", "c", True),
        ("{from: [a, b], to: c}", "c", "c", False),
        ('{from: "*", to: b}', "c", "b", True),
        ('{from: "*", to: b}', "b", "b", True),
        ('{from: "*", to: b}', "c", "a", False),
        ('{from: [a, "*"], to: b}', "c", "b", True),
        ('"a->b"', "a", "b", True),
        ("a -> b", "a", "b", True),
        ('"*->b"', "c", "b", True),
        ("a->b", "a", "c", False),
    ],
)
async def test_the_list_of_transitions_says_what_may_follow(
    listed: str, source: str, target: str, is_allowed: bool
) -> None:
    """Single states, lists, the wildcard and the shorthand allow what they name, and no more."""
    agent = agent_of(machine(listed, initial=source) + ASKS % (source, target))
    turn = await agent.turn()
    assert turn.state == (target if is_allowed else source)
    assert turn.steps[0].moved_to == (target if is_allowed else None)
    assert turn.steps[0].outcome == "done"
    if not is_allowed:
        assert turn.steps[0].reason == f"no transition from {source!r} to {target!r}"


async def test_the_first_transition_of_a_pair_whose_condition_holds_is_made() -> None:
    """Several transitions may join two states; that one of them is refused is no refusal."""
    agent = agent_of(
        machine("{from: a, to: b, condition: 'False'}", "{from: '*', to: b}") + ASKS % ("a", "b")
    )
    with capture_logs() as events:
        assert (await agent.turn()).state == "b"
    assert said(events, "workflow.refused") == []


def test_any_state_may_follow_any_as_long_as_they_are_few() -> None:
    """Hundreds of free states would be tens of thousands of transitions: they are to be listed."""

    def free(number: int) -> str:
        names = [f"s{each}" for each in range(number)]
        steps = "".join(f"  - {{name: {n}, code: '', transition_to: {n}}}\n" for n in names)
        return f"state_machine: {{states: [{', '.join(names)}]}}\nsteps:\n{steps}"

    assert len(agent_of(free(30)).chart.transitions) == 900
    with pytest.raises(InputError, match="transitions are possible: list the allowed ones"):
        agent_of(free(300))
