"""Conditions of transitions: they read the context, and refuse where they do not hold."""

from typing import Any

import pytest

pytest.importorskip("pydantic_monty")

from tests.kit.structlogs import capture_logs
from tests.kit.writers import agent_of, said


def workflow(condition: str) -> str:
    return f"""
state_machine:
  states: [a, b]
  transitions:
    - from: a
      to: b
      condition: {condition}
steps:
  - {{name: ready, type: llm, prompt: p, transition_to: b}}
"""


@pytest.mark.parametrize(
    ("condition", "context"),
    [
        ("has_context", {"has_context": True}),
        ("has_context", {"has_context": "anything"}),
        ("x > 2 and y", {"x": 3, "y": [0]}),
        ("agent_id == 'agent' and tick == 1", {}),
        ("ready['action'].get('kind') == 'wait'", {}),  # what the step itself was answered
        ("true", {}),
        ("null", {}),
        ('"True"', {}),
    ],
)
async def test_a_transition_whose_condition_holds_is_made(
    condition: str, context: dict[str, Any]
) -> None:
    """It sees the context, what the runner provides, and the step's own result."""
    agent = agent_of(workflow(condition), context=context)
    assert (await agent.turn()).state == "b"


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("has_context", "the condition 'has_context' is false"),
        ("nowhere", "the condition 'nowhere' failed: NameError: name 'nowhere' is not defined"),
        ("1 / zero", "the condition '1 / zero' failed: ZeroDivisionError: division by zero"),
        ("has_context > 'x'", "the condition \"has_context > 'x'\" failed: TypeError"),
        ("false", "the condition 'False' is false"),
    ],
)
async def test_one_that_does_not_hold_is_refused(condition: str, reason: str) -> None:
    """A false, a failing and an unknown one leave the state; the step has succeeded."""
    agent = agent_of(workflow(condition), context={"has_context": False, "zero": 0})
    with capture_logs() as events:
        turn = await agent.turn()
    (run,) = turn.steps
    assert (turn.state, run.outcome, run.moved_to) == ("a", "done", None)
    assert run.reason is not None
    assert run.reason.startswith(reason)
    assert agent.context["ready"]["action"] == {"kind": "wait"}
    (event,) = said(events, "workflow.refused")
    assert (event["step"], event["target"], event["log_level"]) == ("ready", "b", "warning")
    assert event["reason"] == run.reason


class Alive:
    """A host's object with a method that must not be called."""

    called = False

    def drop_everything(self) -> bool:
        self.called = True
        return True


@pytest.mark.parametrize("condition", ["thing", "thing.get('x')", "thing == 1"])
async def test_a_live_object_never_reaches_a_condition(condition: str) -> None:
    """What is not data is refused as a variable, before anything is evaluated."""
    thing = Alive()
    agent = agent_of(workflow(condition), variables={"thing": lambda _: thing})
    turn = await agent.turn()
    assert turn.state == "a"
    assert turn.steps[0].reason is not None
    assert "must be data that JSON can hold, got Alive" in turn.steps[0].reason
    assert not thing.called


async def test_run_if_that_fails_keeps_its_step_from_running() -> None:
    """Where run_if is false or fails the step does not run; that it failed is logged."""
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
    refused = said(events, "workflow.refused")
    assert {(event["step"], event["target"]) for event in refused} == {("lost", None)}
    assert (
        refused[0]["reason"] == "run_if 'nowhere' failed: NameError: name 'nowhere' is not defined"
    )
