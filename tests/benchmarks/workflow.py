"""Turns of a workflow whose model answers at once, and loading one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from prism.programs.yaml import Workflow, WorkflowAgent
from tests.benchmarks.harness import Claim, Effort, Measurement, Table
from tests.kit.writers import writer_of

_TURN = """
state_machine:
  states: [a, b]
  transitions:
    - {{from: a, to: b, condition: tick > 0}}
    - {{from: b, to: a, condition: tick > 0}}
steps:
{code}
  - {{name: go, type: llm, in_state: a, prompt: "turn {{tick}} of {{agent_id}}", output: text,
     transition_to: b}}
  - {{name: back, type: llm, in_state: b, prompt: "turn {{tick}} of {{agent_id}}", output: text,
     transition_to: a}}
"""
_CODE = "  - {name: count, code: \"n = context.get('n', 0) + 1\"}"
_TURNS = 2_000


class _Client:
    """A client of the host's that answers at once."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def run(self, prompt: str) -> str:
        self.calls.append(prompt)
        return "done"


def run(effort: Effort) -> Sequence[Table]:
    """Measure turns with and without code, with few and many steps, and loading."""
    return [_turns(effort), _sizes(effort), _loading(effort)]


def _turns(effort: Effort) -> Table:
    bare = _measured("no code step", _TURN.format(code=""), effort)
    asked = _measured("no code step, a client asked", _TURN.format(code=""), effort, _Client)
    code = _measured("one code step", _TURN.format(code=_CODE), effort)
    claims = [
        _rate("turns without a code step, on one core", bare, 2_000),
        _rate("turns whose client is asked with retries and a budget", asked, 1_500),
        _rate("turns with a code step", code, 600),
    ]

    return Table("workflow, one turn", "µs", bare.name, [bare, asked, code], claims)


def _sizes(effort: Effort) -> Table:
    few = _measured("5 steps", ring(5), effort)
    many = _measured("200 steps", ring(200), effort)
    ratio = Claim(
        "a turn of 200 steps against 5",
        many.best / few.best,
        many.median / few.median,
        "x",
        at_most=1.5,
    )

    return Table("workflow, one turn by number of steps", "µs", few.name, [few, many], [ratio])


def _loading(effort: Effort) -> Table:
    found = [
        _loaded("200 states in a ring", ring(200), effort),
        _loaded("200 states, any after any, in every state", anywhere(200), effort),
    ]
    claims = [
        Claim(f"load {item.name}", item.best, item.median, "ms", at_most=100.0) for item in found
    ]

    return Table("workflow, loading 200 steps", "ms", found[0].name, found, claims)


def ring(number: int) -> str:
    """Return a workflow of so many states and steps, each leading to the next."""
    steps = [
        f"  - {{name: s{n}, type: llm, in_state: q{n}, prompt: 'turn {{tick}}', output: text, "
        f"transition_to: q{(n + 1) % number}}}"
        for n in range(number)
    ]
    return f"{_states(number)}steps:\n" + "\n".join(steps) + "\n"


def anywhere(number: int) -> str:
    """Return a workflow whose steps run in any state, where any state may follow any."""
    steps = [
        f"  - {{name: s{n}, type: llm, run_if: tick == {n}, prompt: p, output: text, "
        f"transition_to: q{n}}}"
        for n in range(number)
    ]
    return f"{_states(number)}steps:\n" + "\n".join(steps) + "\n"


def _states(number: int) -> str:
    return f"state_machine:\n  states: [{', '.join(f'q{n}' for n in range(number))}]\n"


def _scripted() -> Any:
    return writer_of(["done"])


def _measured(
    name: str, text: str, effort: Effort, client: Callable[[], Any] = _scripted
) -> Measurement:
    """Return the microseconds of a turn, one sample a repeat."""
    workflow = Workflow.from_text(text)

    async def measure() -> tuple[float, ...]:
        await _carried_out(workflow, 20, client)  # the first code step starts a worker
        return tuple([await _carried_out(workflow, _TURNS, client) for _ in range(effort.repeats)])

    return Measurement(name, asyncio.run(measure()))


async def _carried_out(workflow: Workflow, turns: int, client: Callable[[], Any]) -> float:
    asked = client()
    agent = WorkflowAgent(workflow, asked)
    began = perf_counter()
    for _ in range(turns):
        await agent.turn()
    taken = perf_counter() - began
    if len(asked.calls) != turns or len(agent.state_history) != min(turns, 50):
        raise RuntimeError("a turn did not ask or made no transition, so its time says nothing")

    return taken / turns * 1e6


def _loaded(name: str, text: str, effort: Effort) -> Measurement:
    samples = []
    for _ in range(effort.repeats + 1):
        began = perf_counter()
        workflow = Workflow.from_text(text)
        asyncio.run(WorkflowAgent(workflow, _scripted()).turn())
        samples.append((perf_counter() - began) * 1e3)

    return Measurement(name, tuple(samples[1:]))  # the first makes pydantic's readers


def _rate(text: str, found: Measurement, at_least: float) -> Claim:
    return Claim(text, 1e6 / found.best, 1e6 / found.median, "turns/s", at_least=at_least)
