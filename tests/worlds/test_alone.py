"""A world with one agent, which a file describes."""

from itertools import pairwise
from pathlib import Path

import pytest

from prism import Run
from prism.errors import InputError

CODE = """
name: counter
workflow:
  state_machine: {states: [counting, done], transitions: [counting->done]}
  steps:
    - {name: add, in_state: counting, code: 'n = context.get("n", 0) + 1'}
    - {name: end, in_state: counting, code: 'n = n', run_if: n > 2, transition_to: done}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return an agent that counts to three."""
    path = tmp_path / "counter.yaml"
    path.write_text(CODE)
    return path


async def test_a_run_of_one_agent_is_a_run_like_any_other(file: Path) -> None:
    """It can be awaited in an event loop, and be looked at: world, agents, rounds and clock."""
    run, numbers = Run(file, rounds=9), list[int]()
    results = await run.arun(lambda turn: numbers.append(turn.number))
    assert isinstance(run, Run)
    assert (results.turns, results.state, results.final["context"]) == (9, "done", {"n": 3})
    assert numbers == [turn.number for turn in run.finished] == [*range(1, 10)]
    (agent,) = run.agents
    assert (agent.context, agent.state.value) == ({"n": 3}, "done")
    assert (run.world.round, run.clock.round) == (9, 9)
    assert repr(run) == f"<Run of {file}, seed 0>"


def test_it_is_made_anew_whenever_it_is_carried_out(file: Path) -> None:
    """Carried out twice, it comes to the same; one that is awaited knows that it has been."""
    run = Run(file, rounds=2)
    assert run.run() == run.run()
    assert len(run.finished) == 2


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"ticks": 3}, "'ticks': is for a world"),
        ({"agents": 3}, "'agents': is for a world"),
        ({"memory": "m"}, "'memory': is for a world"),
    ],
)
def test_arguments_of_other_worlds_are_refused(
    file: Path, given: dict[str, object], problem: str
) -> None:
    """What an agent in YAML has no use for is named."""
    with pytest.raises(InputError, match=problem):
        Run(file, **given)


def test_a_chart_has_no_transition_that_no_step_can_make(tmp_path: Path) -> None:
    """Where any of many states may follow any, it has those from the states of each step."""
    path, states = tmp_path / "wide.yaml", [f"s{number}" for number in range(30)]
    steps = [
        f"  - {{name: to_{after}, code: 'n = 1', in_state: {before}, transition_to: {after}}}"
        for before, after in pairwise(states)
    ]
    machine = f"state_machine: {{states: [{', '.join(states)}]}}\nsteps:\n"
    path.write_text(machine + "\n".join(steps))
    run = Run(path, rounds=1)
    results = run.run()
    assert (results.state, results.transitions) == ("s29", 29)
    assert len(run.agents[0].chart.transitions) == 29
