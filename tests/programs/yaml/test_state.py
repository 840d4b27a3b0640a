"""An agent as plain data, from one process to the next."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from prism.errors import InputError
from prism.programs.yaml import Action, Workflow, WorkflowAgent
from prism.testing import ScriptedWriter

TEXT = """
state_machine:
  states: [looking, working, done]
  transitions: [looking->working, working->looking, working->done]
steps:
  - {name: count, code: "seen = context.get('seen', 0) + 1"}
  - {name: look, type: llm, in_state: looking, prompt: "Look {seen}", transition_to: working}
  - name: work
    type: llm
    in_state: working
    prompt: "Work on {last_action_result}, {success_rate}"
    transition_to: looking
"""
ACTED = {"reasoning": "why not", "action": {"type": "wait"}}


def fresh(**settings: Any) -> WorkflowAgent:
    """Return an agent at the beginning."""
    return WorkflowAgent(Workflow.from_text(TEXT), writer(), {"balance": 3}, **settings)


def writer() -> ScriptedWriter:
    """Return a writer that has an action for every prompt."""
    return ScriptedWriter(lambda _call: ACTED)


def again(agent: WorkflowAgent, **settings: Any) -> WorkflowAgent:
    """Return an agent that went through JSON."""
    data = json.loads(json.dumps(agent.to_dict()))
    return WorkflowAgent.from_dict(Workflow.from_text(TEXT), writer(), data, **settings)


@given(st.integers(0, 6), st.integers(1, 4))
async def test_an_agent_goes_on_as_if_it_had_never_stopped(before: int, after: int) -> None:
    """Turns after a restore have the prompts, states and variables of turns without one."""

    def acted(action: Action) -> str:
        if action.turn % 3 == 0:
            raise ValueError("no")
        return f"did {action.key}"

    whole, first = fresh(on_action=acted), fresh(on_action=acted)
    for _ in range(before):
        await whole.turn()
        await first.turn()

    second = again(first, on_action=acted)
    assert second.to_dict() == first.to_dict()

    for _ in range(after):
        one, other = await whole.turn(), await second.turn()
        assert (one.number, one.state) == (other.number, other.state)
        assert whole.context == second.context
        assert list(whole.action_history) == list(second.action_history)


async def test_the_state_is_kept_in_the_context() -> None:
    """The context has current state, history and declared states under ``_state_machine``."""
    agent = fresh()
    await agent.turn()
    kept = agent.to_dict()["context"]["_state_machine"]
    assert kept["current_state"] == "working"
    assert kept["states"] == ["looking", "working", "done"]
    assert [(one["from_state"], one["to_state"]) for one in kept["history"]] == [
        ("looking", "working")
    ]
    assert "_state_machine" not in agent.context


async def test_a_context_with_a_state_begins_there() -> None:
    """A host that keeps the context alone gets the agent back in its state."""
    context = {"_state_machine": {"current_state": "working"}, "balance": 3}
    agent = WorkflowAgent(Workflow.from_text(TEXT), writer(), context)
    assert agent.state == "working"
    assert agent.context == {"balance": 3}


async def test_an_undeclared_state_is_reset_and_logged() -> None:
    """A state that the workflow no longer has becomes the initial one, with a warning."""
    agent = fresh()
    await agent.turn()
    data = agent.to_dict()
    machine = data["context"]["_state_machine"]
    machine["current_state"] = "sleeping"
    machine["history"].append({**machine["history"][0], "to_state": "sleeping"})

    with capture_logs() as events:
        restored = WorkflowAgent.from_dict(Workflow.from_text(TEXT), writer(), data)

    assert restored.state == "looking"
    assert restored.ticks_in_state == 0
    assert [each.to_state for each in restored.state_history] == ["working"]
    (reset,) = [event for event in events if event["event"] == "workflow.reset"]
    assert (reset["from_state"], reset["to_state"]) == ("sleeping", "looking")
    assert (reset["agent_id"], reset["turn"]) == ("agent", 1)
    assert (await restored.turn()).state == "working"


async def test_a_workflow_that_stopped_stays_stopped() -> None:
    """The failure is part of the data."""
    data = {**fresh().to_dict(), "failure": "step 'look': no model"}
    restored = WorkflowAgent.from_dict(Workflow.from_text(TEXT), writer(), data)
    assert restored.failure == "step 'look': no model"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"agent_id": None}, "agent_id"),
        ({"turn_number": -1}, "turn_number"),
        ({"context": []}, "context"),
        ({"failure": 3}, "failure"),
        ({"action_history": [{"action": 3, "succeeded": True}]}, "action_history[0].action"),
        (
            {"context": {"_state_machine": {"current_state": "looking", "history": [3]}}},
            "history[0]",
        ),
    ],
)
def test_data_that_is_something_else_is_refused_by_its_key(
    change: dict[str, Any], field: str
) -> None:
    """What was not written by ``to_dict`` is an error that names the key."""
    data = {**fresh().to_dict(), **change}
    with pytest.raises(InputError) as refused:
        WorkflowAgent.from_dict(Workflow.from_text(TEXT), writer(), data)
    assert refused.value.field == field
