"""The statechart of a workflow, whole and in pieces."""

import sys
from itertools import product
from pathlib import Path
from types import FrameType

import pytest

import prism
from prism.runlog import SimulatedClock
from prism.testing import ScriptedWriter
from prism.programs.yaml import Workflow, WorkflowAgent

STATES = [f"s{number}" for number in range(200)]
ROOT = f"{Path(prism.__file__).parent}/"


def written(transitions: list[str] | None, states: list[str] = STATES) -> str:
    """Return a workflow whose steps lead from each state to the next."""
    listed = [] if transitions is None else ["  transitions:", *transitions]
    steps = [
        line
        for source, target in zip([states[-1], *states], states, strict=False)
        for line in (
            f"  - name: from_{source}",
            "    type: llm",
            f"    run_if: state == '{source}'",
            "    prompt: Go on",
            "    output: text",
            f"    transition_to: {target}",
        )
    ]

    return "\n".join(
        ["state_machine:", f"  states: [{', '.join(states)}]", *listed, "steps:", *steps]
    )


ANY_TO_ANY = {
    "nothing listed": None,
    "from any, listed": [f'    - {{from: "*", to: {state}}}' for state in STATES],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nothing listed", "from any, listed"])
@pytest.mark.sampled(2)
def test_a_large_chart_is_not_made_to_load_or_to_drive(name: str) -> None:
    """200 states of which any may follow any load in fewer calls than they have transitions."""
    text = written(ANY_TO_ANY[name])
    calls = 0

    def count(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename.startswith(ROOT)

    sys.setprofile(count)
    try:
        workflow = Workflow.from_text(text)
        WorkflowAgent(workflow, ScriptedWriter(lambda _call: "ok"))
    finally:
        sys.setprofile(None)

    assert calls < len(STATES) ** 2


@pytest.mark.parametrize("name", ["nothing listed", "from any, listed"])
@pytest.mark.slow
def test_the_whole_chart_is_there_when_it_is_asked_for(name: str) -> None:
    """`Workflow.chart` has all 40,000 rows, once each."""
    chart = Workflow.from_text(written(ANY_TO_ANY[name])).chart
    rows = [(item.source, item.target) for item in chart.transitions]
    assert sorted(rows) == sorted(product(STATES, STATES))


async def test_pieces_refuse_what_the_whole_chart_refuses() -> None:
    """In a large chart, too, a false condition and a transition that is not listed are refused."""
    listed = [f'    - {{from: "*", to: {state}}}' for state in STATES if state not in ("s1", "s2")]
    text = written([*listed, "    - {from: s0, to: s1, condition: may_go}"])
    agent = WorkflowAgent(Workflow.from_text(text), ScriptedWriter(lambda _call: "ok"))

    refused = (await agent.turn()).steps[-1]
    assert (refused.moved_to, refused.outcome) == (None, "done")
    assert refused.reason is not None
    assert "may_go" in refused.reason

    agent.context["may_go"] = True
    assert (await agent.turn()).state == "s1"
    refused = (await agent.turn()).steps[-1]
    assert refused.reason == "no transition from 's1' to 's2'"


async def test_an_agents_history_is_timed_by_its_clock() -> None:
    """A clock that is given times the agent's history."""
    clock = SimulatedClock()
    clock.begin_round(1)
    clock.advance()
    workflow = Workflow.from_text(written(None, ["a", "b"]))
    agent = WorkflowAgent(workflow, ScriptedWriter(lambda _call: "ok"), clock=clock)
    await agent.turn()
    assert agent.state_history[0].to_dict()["timestamp"] == clock.timestamp
