"""States and transitions: what a file declares, and what may follow what."""

import pytest

pytest.importorskip("pydantic_monty")

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


async def test_a_workflow_without_states_has_one() -> None:
    """Every step runs in it."""
    agent = agent_of("steps: [{name: s, code: 'x = state'}]\n")
    assert (await agent.turn()).state == "active"
    assert agent.context == {"x": "active"}


async def test_states_may_be_called_anything() -> None:
    """Words that YAML or Python take for something else are names like others."""
    names = ["on", "no", "null", "1", "mro", "None", "name", "a b"]
    listed = ", ".join(names)
    steps = "".join(
        f"  - {{name: s{number}, code: '', in_state: {names[number]}, transition_to: {target}}}\n"
        for number, target in enumerate(names[1:])
    )
    text = f"state_machine:\n  states: {listed}\nsteps:\n{steps}".replace(listed, f"[{listed}]")
    quoted = text.replace("null", "'null'").replace("1]", "'1']").replace(" 1", " '1'")
    agent = agent_of(quoted)
    turn = await agent.turn()
    assert [run.moved_to for run in turn.steps] == names[1:]


async def test_the_first_transition_of_a_pair_whose_condition_holds_is_made() -> None:
    """Several transitions may join two states; that one of them is refused is no refusal."""
    agent = agent_of(
        machine("{from: a, to: b, condition: 'False'}", "{from: '*', to: b}") + ASKS % ("a", "b")
    )
    with capture_logs() as events:
        assert (await agent.turn()).state == "b"
    assert said(events, "workflow.refused") == []
