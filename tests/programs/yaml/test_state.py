"""An agent's state in its context, from one process to the next."""

import json
from typing import Any

import pytest

pytest.importorskip("pydantic_monty")

from prism.errors import InputError
from prism.programs.yaml import Workflow, WorkflowAgent
from prism.testing import ScriptedWriter

TEXT = """
state_machine:
  states: [looking, working, done]
  transitions: [looking->working, working->looking, working->done]
steps:
  - {name: count, code: "seen = context.get('seen', 0) + 1"}
  - {name: look, type: llm, in_state: looking, prompt: "Look {seen}", transition_to: working}
  - {name: work, type: llm, in_state: working, prompt: "Work {seen}", transition_to: looking}
"""


def agent_with(context: Any) -> WorkflowAgent:
    """Return an agent whose model has an action for every prompt."""
    writer = ScriptedWriter(lambda _call: {"reasoning": "why not", "action": {"type": "wait"}})
    return WorkflowAgent(Workflow.from_text(TEXT), writer, context)


async def test_an_agent_goes_on_as_if_it_had_never_stopped() -> None:
    """Turns after a restore have the states and variables of turns without one."""
    whole = part = agent_with({"balance": 3})
    for _ in range(5):
        part = agent_with(json.loads(json.dumps(part.to_dict())))
        one, other = await whole.turn(), await part.turn()
        assert one.state == other.state
        assert whole.context == part.context


async def test_the_state_is_kept_under_one_name() -> None:
    """Current state, history and declared states; no variable of the agent's own."""
    agent = agent_with({})
    await agent.turn()
    kept = agent.to_dict()["_state_machine"]
    assert (kept["current_state"], kept["states"]) == ("working", ["looking", "working", "done"])
    (moved,) = kept["history"]
    assert (moved["from_state"], moved["to_state"]) == ("looking", "working")
    assert "_state_machine" not in agent.context


async def test_a_context_of_another_program_begins_in_its_state() -> None:
    """The history may be missing."""
    begun = {"_state_machine": {"current_state": "working"}, "balance": 3}
    assert (agent_with(begun).state, agent_with(begun).context) == ("working", {"balance": 3})


@pytest.mark.parametrize("machine", [[], "looking", {}, {"current_state": "sleeping"}])
def test_a_state_that_is_something_else_is_refused(machine: Any) -> None:
    """By the name of the key, with the states that there are."""
    with pytest.raises(InputError, match=r"_state_machine.*looking, working, done"):
        agent_with({"_state_machine": machine})
