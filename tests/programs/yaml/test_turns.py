"""A turn: steps in their order, one request to a model, and one transition at a time."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pydantic_monty")

from prism.errors import AgentError, InputError
from prism.programs import Turn
from prism.programs.yaml import Workflow, WorkflowAgent
from prism.reasoner import Writer
from tests.kit.clients import Model
from tests.kit.writers import ACT, agent_of, names_of, prompts_of, turns_of, writer_of

THREE = """
state_machine: {states: [a, b], transitions: [a->a, {from: a, to: b, condition: go}, b->a]}
steps:
  - {name: one, type: llm, prompt: one}
  - {name: two, type: llm, in_state: a, prompt: two}
  - {name: count, code: "seen = context.get('seen', 0) + 1"}
  - {name: three, type: llm, in_state: a, prompt: three, transition_to: b}
  - {name: of_b, type: llm, in_state: b, prompt: of_b, transition_to: a}
"""


async def test_code_behind_a_step_that_asked_runs_in_the_state_it_led_to() -> None:
    """The transition is made at once, and what follows is matched against the new state."""
    agent = agent_of(
        """
state_machine: {states: [a, b, c]}
steps:
  - {name: ask, in_state: a, type: llm, prompt: p, transition_to: b}
  - {name: of_a, in_state: a, code: 'x = 1'}
  - {name: of_b, in_state: b, code: 'y = state', transition_to: c}
  - {name: other, in_state: c, type: llm, prompt: q}
  - {name: of_c, in_state: c, code: 'z = 1'}
"""
    )
    turn = await agent.turn()
    assert names_of(turn.steps) == ["ask", "of_b", "of_c"]
    assert (turn.state, agent.context["y"], "x" in agent.context) == ("c", "b", False)


async def test_a_stopped_workflow_takes_no_further_turns() -> None:
    """Each says so, asks nobody and is not counted; the agent says why."""
    writer = writer_of([OSError("no route")])
    agent = agent_of("steps: [{name: s, type: llm, prompt: p, on_failure: fail}]\n", writer)
    for _ in range(2):
        turn = await agent.turn()
        assert (turn.number, turn.has_stopped) == (1, True)
    assert agent.stopped == "step 's': no route"
    assert len(writer.calls) == 1


KINDS = {
    "code": "code: ''",
    "llm": "type: llm\n    prompt: p",
    "transition": "type: transition\n    transition_map: {x: a, y: b, z: c}",
}
STATES = st.sampled_from(["a", "b", "c"])


@st.composite
def steps(draw: st.DrawFn) -> str:
    lines = []
    for number in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(sorted(KINDS)))
        lines.append(f"  - name: s{number}\n    {KINDS[kind]}\n")
        if draw(st.booleans()):
            lines.append(f"    in_state: [{draw(STATES)}, {draw(STATES)}]\n")
        if kind != "transition" and draw(st.booleans()):
            lines.append(f"    transition_to: {draw(STATES)}\n")
        if draw(st.booleans()):
            lines.append("    on_failure: skip\n")

    return "".join(lines)


PAIRS = st.lists(st.tuples(STATES | st.just("*"), STATES), max_size=5, unique=True)
REPLIES = st.lists(st.sampled_from([ACT, "x", "y", "z", "neither", ""]), min_size=1, max_size=8)


@given(steps=steps(), pairs=PAIRS, replies=REPLIES)
async def test_laws_of_a_turn(steps: str, pairs: list[tuple[str, str]], replies: list[str]) -> None:
    """A turn asks once at most, runs steps in order once, and makes only allowed transitions."""
    listed = "".join(f"\n  - {{from: '{source}', to: {target}}}" for source, target in pairs)
    machine = f"  states: [a, b, c]\n  transitions: {listed or '[]'}\n"
    agent = agent_of(f"state_machine:\n{machine}steps:\n{steps}", replies)
    order = {step.name: number for number, step in enumerate(agent.workflow.steps)}

    for _ in range(4):
        if agent.stopped is not None:
            break
        before, moves = agent.state.value, len(agent.state_history)
        turn = await agent.turn()
        asked = [run for run in turn.steps if run.kind != "code"]
        places = [order[run.step] for run in turn.steps]
        assert len(asked) <= 1
        assert places == sorted(set(places))
        for run in turn.steps:
            assert run.state == before
            if run.moved_to is not None:
                assert not pairs or {(before, run.moved_to), ("*", run.moved_to)} & set(pairs)
                assert run.moved_to != before
                before = run.moved_to
        assert turn.state == before
        assert turn.transitions == len(agent.state_history) - moves


async def test_an_agent_is_at_one_turn_at_a_time() -> None:
    """A second turn beside one that is under way is refused; afterwards the agent goes on."""

    agent = agent_of(THREE, Writer(Model(ACT)))
    first, second = await asyncio.gather(agent.turn(), agent.turn(), return_exceptions=True)
    assert isinstance(first, Turn)
    assert isinstance(second, AgentError)
    assert "'agent' is at its turn 1: await one turn before the next" in str(second)
    assert (await agent.turn()).number == 2


# Steps that ask in one state take turns, and the place is kept with the state


async def prompts_after(text: str, turns: int, context: Any = None) -> list[str]:
    """Return the prompts of so many turns."""
    writer = writer_of()
    await turns_of(agent_of(text, writer, context), turns)
    return prompts_of(writer)


async def test_on_entering_a_state_its_first_is_next() -> None:
    """Wherever the state before had got to, also if a step of both states asked last."""
    expected = ["one", "two", "three", "one", "of_b", "one", "two", "three"]
    assert await prompts_after(THREE, 8, {"go": True}) == expected


@given(
    asking=st.lists(st.booleans(), min_size=1, max_size=8).filter(any),
    turns=st.integers(1, 3),
)
async def test_nobody_asks_twice_before_all_have_asked_once(asking: list[bool], turns: int) -> None:
    """Among steps that are always due, with code between them; no target enters its own state."""
    steps = "".join(
        f"  - {{name: s{number}, "
        + (f"type: llm, prompt: '{number}', transition_to: active}}\n" if asks else "code: ''}\n")
        for number, asks in enumerate(asking)
    )
    once = [str(number) for number, asks in enumerate(asking) if asks]
    assert await prompts_after(f"steps:\n{steps}", turns * len(once)) == once * turns


async def test_an_agent_goes_on_as_if_it_had_never_stopped() -> None:
    """One that is restored between any two turns asks and holds what one that was not does."""
    workflow, writer, other = Workflow.from_text(THREE), writer_of(), writer_of()
    whole = WorkflowAgent(workflow, other, {"go": True})
    agent = WorkflowAgent(workflow, writer, {"go": True})
    for _ in range(9):
        agent = WorkflowAgent(workflow, writer, json.loads(json.dumps(agent.to_dict())))
        await agent.turn()
        await whole.turn()
        assert (agent.state, agent.context) == (whole.state, whole.context)
    assert prompts_of(writer) == prompts_of(other)


async def test_the_state_is_kept_under_one_name() -> None:
    """Current state, history and declared states; of another program's, the state is enough."""
    agent = agent_of(THREE, context={"go": True})
    await turns_of(agent, 3)
    kept = agent.to_dict()["_state_machine"]
    assert (kept["current_state"], kept["states"]) == ("b", ["a", "b"])
    assert [(moved["from_state"], moved["to_state"]) for moved in kept["history"]] == [("a", "b")]
    assert "_state_machine" not in agent.context
    begun = {"_state_machine": {"current_state": "b"}, "balance": 3}
    other = agent_of(THREE, context=begun)
    assert (other.state, other.context) == ("b", {"balance": 3})


@pytest.mark.parametrize("machine", [[], "a", {}, {"current_state": "sleeping"}])
def test_a_state_that_is_something_else_is_refused(machine: Any) -> None:
    """By the name of the key, with the states that there are."""
    with pytest.raises(InputError, match=r"_state_machine.*one of a, b"):
        agent_of(THREE, context={"_state_machine": machine})
