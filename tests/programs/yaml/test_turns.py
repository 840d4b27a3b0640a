"""A turn: steps in their order, one request to a model, and one transition at a time."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pydantic_monty")

from prism.errors import AgentError
from prism.programs import Turn
from prism.statechart import Writer
from tests.kit.writers import ACT, agent_of, names_of, writer_of

ALTERNATING = """
state_machine:
  states: [day, night]
steps:
  - {name: dawn, code: 'sun = 1'}
  - {name: work, type: llm, in_state: day, prompt: 'work {sun}', transition_to: night}
  - {name: dream, type: llm, in_state: night, prompt: dream, transition_to: day}
  - {name: dusk, code: 'late = 1'}
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
    assert agent.failure == "step 's': no route"
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
        if agent.failure is not None:
            break
        before = agent.state.value
        turn = await agent.turn()
        asked = [run for run in turn.steps if run.kind != "code"]
        places = [order[run.step] for run in turn.steps]
        assert len(asked) <= 1
        assert places == sorted(set(places))
        for run in turn.steps:
            assert run.state == before
            if run.moved_to is not None:
                assert not pairs or {(before, run.moved_to), ("*", run.moved_to)} & set(pairs)
                before = run.moved_to
        assert turn.state == before


async def test_an_agent_is_at_one_turn_at_a_time() -> None:
    """A second turn beside one that is under way is refused; afterwards the agent goes on."""
    agent = agent_of(ALTERNATING, Writer(Slow()))
    first, second = await asyncio.gather(agent.turn(), agent.turn(), return_exceptions=True)
    assert isinstance(first, Turn)
    assert isinstance(second, AgentError)
    assert "'agent' is at its turn 1: await one turn before the next" in str(second)
    assert (await agent.turn()).number == 2


class Slow:
    """A client that lets others run before it answers."""

    async def run(self, prompt: str) -> str:
        await asyncio.sleep(0)
        return ACT
