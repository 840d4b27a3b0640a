"""What a workflow tells: each step, each refusal, and what any chart tells."""

from typing import Any

import pytest
from structlog.testing import LogCapture

pytest.importorskip("pydantic_monty")

from tests.kit.writers import ACT, agent_of, said, turns_of

WORKFLOW = """
name: w
state_machine: {states: [a, b]}
steps:
  - {name: count, code: 'n = context.get("n", 0) + 1'}
  - {name: ask, type: llm, in_state: a, prompt: '{n} {nobody}', transition_to: b}
  - {name: fail, type: llm, in_state: b, prompt: p, on_failure: skip}
"""
KEYS = {
    "event", "log_level", "agent_id", "turn", "step", "type", "state", "outcome", "moved_to",
    "target",
    "reason", "seconds", "input_tokens", "output_tokens", "unknown_variables",
}  # fmt: skip


@pytest.fixture
async def events(logger: Any, capture: LogCapture) -> list[Any]:
    """Return the events of two turns."""
    agent = agent_of(WORKFLOW, [ACT, OSError("down")], logger=logger, agent_id="ada")
    await turns_of(agent, 2)
    return list(capture.entries)


def test_every_step_is_an_event(events: list[Any]) -> None:
    """Name, type, state, outcome and where it led; seconds and tokens where there were any."""
    steps = said(events, "workflow.step")
    assert {frozenset(event) for event in steps} == {frozenset(KEYS)}
    assert [(e["turn"], e["step"], e["type"], e["state"], e["outcome"]) for e in steps] == [
        (1, "count", "code", "a", "done"),
        (1, "ask", "llm", "a", "done"),
        (2, "count", "code", "b", "done"),
        (2, "fail", "llm", "b", "skipped"),
    ]
    assert [event["moved_to"] for event in steps] == [None, "b", None, None]
    assert [event["unknown_variables"] for event in steps] == [[], ["nobody"], [], []]
    assert all(event["seconds"] >= 0 for event in steps)
