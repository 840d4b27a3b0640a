"""Steps that ask a model in one state take turns, in the order of the list."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pydantic_monty")

from prism.programs.yaml import Workflow, WorkflowAgent
from tests.kit.writers import agent_of, prompts_of, turns_of, writer_of

THREE = """
state_machine: {states: [a, b], transitions: [a->a, {from: a, to: b, condition: go}, b->a]}
steps:
  - {name: one, type: llm, prompt: one}
  - {name: two, type: llm, in_state: a, prompt: two}
  - {name: three, type: llm, in_state: a, prompt: three, transition_to: b}
  - {name: of_b, type: llm, in_state: b, prompt: of_b, transition_to: a}
"""


async def asked(text: str, turns: int, context: Any = None) -> list[str]:
    """Return the prompts of so many turns."""
    writer = writer_of()
    await turns_of(agent_of(text, writer, context), turns)
    return prompts_of(writer)


async def test_on_entering_a_state_its_first_is_next() -> None:
    """Wherever the state before had got to, also if a step of both states asked last."""
    expected = ["one", "two", "three", "one", "of_b", "one", "two", "three"]
    assert await asked(THREE, 8, {"go": True}) == expected


async def test_a_transition_to_the_same_state_enters_none() -> None:
    """So a step with such a target does not ask for ever."""
    text = """
steps:
  - {name: one, type: llm, prompt: one, transition_to: active}
  - {name: two, type: llm, prompt: two}
"""
    assert await asked(text, 4) == ["one", "two", "one", "two"]


async def test_the_place_is_kept_with_the_state() -> None:
    """An agent that is restored between any two turns asks what one that was not asks."""
    whole = await asked(THREE, 9, {"go": True})
    workflow, writer = Workflow.from_text(THREE), writer_of()
    agent = WorkflowAgent(workflow, writer, {"go": True})
    for _ in range(9):
        kept = json.loads(json.dumps(agent.to_dict()))
        agent = WorkflowAgent(workflow, writer, kept)
        await agent.turn()
    assert prompts_of(writer) == whole


@given(
    asking=st.lists(st.booleans(), min_size=1, max_size=8).filter(any),
    turns=st.integers(1, 3),
)
async def test_nobody_asks_twice_before_all_have_asked_once(asking: list[bool], turns: int) -> None:
    """Among steps that are always due, with code anywhere between them."""
    steps = "".join(
        f"  - {{name: s{number}, "
        + (f"type: llm, prompt: '{number}'}}\n" if asks else "code: ''}\n")
        for number, asks in enumerate(asking)
    )
    once = [str(number) for number, asks in enumerate(asking) if asks]
    assert await asked(f"steps:\n{steps}", turns * len(once)) == once * turns
