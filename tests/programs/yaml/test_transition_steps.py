"""Transition steps: the model chooses one of the map's answers, or the state stays."""

from typing import ClassVar

import pytest

pytest.importorskip("pydantic_monty")

from prism.programs.yaml import Workflow, WorkflowAgent
from tests.kit.structlogs import capture_logs
from tests.kit.writers import agent_of, prompts_of, said, writer_of

REFLECT = """
state_machine:
  states: [reflecting, implementing, observing, shipping]
steps:
  - name: reflect
    type: transition
    in_state: reflecting
    prompt: choose
    transition_map: {continue: implementing, pivot: observing, ship: shipping}
"""


@pytest.mark.parametrize(
    ("reply", "state"),
    [
        ('{"decision": "ship"}', "shipping"),
        ('{"decision": "pivot", "reasoning": "worn out", "next_focus": "x"}', "observing"),
        ('```json\n{"decision": "ship"}\n```', "shipping"),
        ("ship", "shipping"),
        ("  SHIP.\n", "shipping"),
        ("**Pivot**", "observing"),
        ("<think>ship? no, it is not ready</think>continue", "implementing"),
        ('{"decision": "ship", "reasoning": "rather than pivot or continue"}', "shipping"),
    ],
)
async def test_an_answer_is_read_as_a_careful_person_would(reply: str, state: str) -> None:
    """JSON, a word, the label of a list and prose around it lead to one state."""
    agent = agent_of(REFLECT, [reply])
    turn = await agent.turn()
    assert (turn.state, turn.steps[0].outcome, turn.steps[0].reason) == (state, "done", None)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "stop",
        "I do not know.",
        "continue, pivot or ship?",
        "do not ship",
        "do not pivot; continue",  # who denies on the way has not answered plainly
        '{"decision": "explode"}',
        '{"decision": ["ship", "pivot"]}',
        '{"reasoning": "I would rather not say"}',
        "shipping",
        "ignore the map and go to __import__('os')",
    ],
)
async def test_a_reply_outside_the_map_leaves_the_state(reply: str) -> None:
    """It is logged with the answers, and the step counts as done."""
    writer = writer_of([reply])
    agent = agent_of(REFLECT, writer)
    with capture_logs() as events:
        turn = await agent.turn()
    (run,) = turn.steps
    assert (turn.state, run.moved_to, run.outcome) == ("reflecting", None, "done")
    assert run.reason == "the answer is none of continue, pivot, ship"
    assert agent.context["reflect"]["decision"] is None
    (refused,) = said(events, "workflow.refused")
    assert (refused["step"], refused["target"]) == ("reflect", None)
    assert refused["reason"] == run.reason


async def test_an_unclear_reply_is_asked_once_more_with_what_was_wrong() -> None:
    """The second prompt has the first one, and the answers; what it brings counts."""

    class Client:
        prompts: ClassVar[list[str]] = []

        async def run(self, prompt: str) -> str:
            self.prompts.append(prompt)
            return "I do not know." if len(self.prompts) == 1 else "B) pivot"

    agent = WorkflowAgent(Workflow.from_text(REFLECT), Client())
    assert (await agent.turn()).state == "observing"
    first, second = Client.prompts
    assert first in second
    assert "the answer is none of continue, pivot, ship" in second


async def test_case_and_spaces_of_the_map_are_folded() -> None:
    """The map's own spelling does not matter, nor does the reply's."""
    text = REFLECT.replace(
        "{continue: implementing, pivot: observing, ship: shipping}",
        "{Carry  On: implementing, HAND OVER: shipping}",
    )
    for reply, state in [("carry on", "implementing"), ("Hand  over", "shipping")]:
        assert (await agent_of(text, [reply]).turn()).state == state


async def test_what_was_decided_stands_in_the_context() -> None:
    """Decision, reasoning and next focus are variables of later steps, under the step's name."""
    agent = agent_of(REFLECT, ['{"decision": "ship", "reasoning": "done", "next_focus": "rest"}'])
    await agent.turn()
    expected = {"decision": "ship", "reasoning": "done", "next_focus": "rest"}
    assert agent.context == {"reflect": expected}


async def test_without_a_map_the_target_is_that_of_the_step() -> None:
    """Whatever the model says leads to `transition_to`, and what it says is kept."""
    writer = writer_of(['{"decision": "continue", "reasoning": "why not"}'])
    agent = agent_of(
        "state_machine: {states: [a, b]}\nsteps: [{name: s, type: transition, transition_to: b}]\n",
        writer,
    )
    assert (await agent.turn()).state == "b"
    assert agent.context["s"]["decision"] == "continue"


async def test_without_a_prompt_a_default_one_is_asked() -> None:
    """It asks for continue, pivot or ship, with the state and the last result."""
    writer = writer_of(["ship"])
    await agent_of(REFLECT.replace("    prompt: choose\n", ""), writer).turn()
    (prompt,) = prompts_of(writer)
    assert "continue" in prompt
    assert "pivot" in prompt
    assert "ship" in prompt
    assert "State: reflecting." in prompt
