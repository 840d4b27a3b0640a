"""States and transitions: what a file declares, what may follow what, and under which condition."""

from typing import Any

import pytest

pytest.importorskip("pydantic_monty")

from tests.kit.structlogs import capture_logs
from tests.kit.writers import agent_of, events_named

ASKS = "steps: [{name: s, code: '', in_state: %s, transition_to: %s}]\n"


def machine(*transitions: str, initial: str = "a") -> str:
    listed = "".join(f"\n    - {item}" for item in transitions)
    return (
        f"state_machine:\n  states: [a, b, c]\n  initial_state: {initial}\n"
        f"  transitions: {listed or '[]'}\n"
    )


@pytest.mark.parametrize(
    ("listed", "source", "target", "is_allowed"),
    [
        ("{from: a, to: b}", "a", "b", True),
        ("{from: a, to: b}", "a", "c", False),
        ("{from: [a, b], to: c}", "b", "c", True),
        ("{from: [a, b], to: c}", "c", "c", False),
        ('{from: "*", to: b}', "c", "b", True),
        ('{from: "*", to: b}', "c", "a", False),
        ('{from: [a, "*"], to: b}', "c", "b", True),
        ("a -> b", "a", "b", True),
        ('"*->b"', "c", "b", True),
    ],
)
async def test_the_list_of_transitions_says_what_may_follow(
    listed: str, source: str, target: str, is_allowed: bool
) -> None:
    """Single states, lists, the wildcard and the shorthand allow what they name, and no more."""
    agent = agent_of(machine(listed, initial=source) + ASKS % (source, target))
    turn = await agent.turn()
    (run,) = turn.steps
    assert (turn.state, run.outcome) == (target if is_allowed else source, "done")
    assert run.moved_to == (target if is_allowed and target != source else None)
    refusal = None if is_allowed else f"no transition from {source!r} to {target!r}"
    assert run.reason == refusal
    # the reader has said so before
    warned = [each.message for each in agent.workflow.problems]
    assert warned == ([] if is_allowed else [f"no transition leads from {source} to {target!r}"])


async def test_the_first_transition_of_a_pair_whose_condition_holds_is_made() -> None:
    """Several transitions may join two states; that one of them is refused is no refusal."""
    agent = agent_of(
        machine("{from: a, to: b, condition: 'False'}", "{from: '*', to: b}") + ASKS % ("a", "b")
    )
    with capture_logs() as events:
        assert (await agent.turn()).state == "b"
    assert events_named(events, "workflow.refused") == []


# Conditions

READY = "steps: [{name: ready, type: llm, prompt: p, transition_to: b}]\n"


@pytest.mark.parametrize(
    ("condition", "context"),
    [
        ("has_context", {"has_context": True}),
        ("x > 2 and y", {"x": 3, "y": [0]}),
        ("agent_id == 'agent' and tick == 1", {}),
        ("ready['action'].get('kind') == 'wait'", {}),  # what the step itself was answered
        ("true", {}),
        ('"True"', {}),
    ],
)
async def test_a_transition_whose_condition_holds_is_made(
    condition: str, context: dict[str, Any]
) -> None:
    """It sees the context, what the runner provides, and the step's own result."""
    text = machine(f"from: a\n      to: b\n      condition: {condition}") + READY
    assert (await agent_of(text, context=context).turn()).state == "b"


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("has_context", "the condition 'has_context' is false"),
        ("nowhere", "the condition 'nowhere' failed: NameError: name 'nowhere' is not defined"),
        ("1 / zero", "the condition '1 / zero' failed: ZeroDivisionError: division by zero"),
        ("thing == 1", "the condition 'thing == 1' failed: the variable 'thing' must be data"),
        ("false", "the condition 'False' is false"),
    ],
)
async def test_one_that_does_not_hold_is_refused(condition: str, reason: str) -> None:
    """A false, a failing and an unknown one leave the state; the step has succeeded."""
    text = machine(f"from: a\n      to: b\n      condition: {condition}") + READY
    context = {"has_context": False, "zero": 0}
    agent = agent_of(text, context=context, variables={"thing": lambda _: object()})
    with capture_logs() as events:
        turn = await agent.turn()
    (run,) = turn.steps
    assert (turn.state, run.outcome, run.moved_to) == ("a", "done", None)
    assert str(run.reason).startswith(reason)
    assert agent.context["ready"]["action"] == {"kind": "wait"}
    (event,) = events_named(events, "workflow.refused")
    assert (event["step"], event["target"], event["log_level"]) == ("ready", "b", "warning")
    assert event["reason"] == run.reason


async def test_run_if_that_fails_keeps_its_step_from_running() -> None:
    """Where run_if is false or fails the step does not run; that it failed is logged by name."""
    agent = agent_of(
        """
steps:
  - {name: off, code: 'a = 1', run_if: 'False'}
  - {name: lost, code: 'b = 1', run_if: nowhere}
  - {name: on, code: 'c = 1', run_if: 'tick == 1'}
"""
    )
    with capture_logs() as events:
        await agent.turn()
        await agent.turn()
    assert agent.context == {"c": 1}
    failed = events_named(events, "workflow.run_if_failed")
    assert [(each["turn"], each["step"]) for each in failed] == [(1, "lost"), (2, "lost")]
    assert failed[0]["reason"] == "'nowhere' failed: NameError: name 'nowhere' is not defined"
    assert events_named(events, "workflow.refused") == []
