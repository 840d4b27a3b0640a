"""A world with one agent, which a file describes."""

from itertools import pairwise
from pathlib import Path

from prism import Run

CODE = """
name: counter
workflow:
  state_machine: {states: [counting, done], transitions: [counting->done]}
  steps:
    - {name: add, in_state: counting, code: 'n = context.get("n", 0) + 1'}
    - {name: end, in_state: counting, code: 'n = n', run_if: n > 2, transition_to: done}
"""


async def test_a_run_of_one_agent_is_a_run_like_any_other(tmp_path: Path) -> None:
    """It can be awaited, and be looked at; carried out again it is made anew."""
    file = tmp_path / "counter.yaml"
    file.write_text(CODE)
    run, numbers = Run(file, rounds=9), list[int]()
    results = await run.arun(lambda turn: numbers.append(turn.number))
    assert isinstance(run, Run)
    assert (results.turns, results.state, results.final["context"]) == (9, "done", {"n": 3})
    assert numbers == [turn.number for turn in run.finished] == [*range(1, 10)]
    (agent,) = run.agents
    assert (agent.context, agent.state.value) == ({"n": 3}, "done")
    assert (run.world.round, run.clock.round) == (9, 9)
    assert repr(run) == f"<Run of {file}, seed 0>"
    again = await run.arun()
    assert (again, len(run.finished)) == (results, 9)


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
