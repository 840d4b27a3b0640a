"""What a run of one agent, or of a batch, is to cost, estimated without asking anybody."""

from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.errors import InputError
from prism.llm import Model
from prism.programs.thinking import Memory
from prism.runs._dry_run import estimate, estimate_all

PRICED = {"price_in": 1.0, "price_out": 4.0}

WORKFLOW = """
name: asks
workflow:
  state_machine:
    states: [asking, done]
    final_states: [done]
  steps:
    - {name: think, type: llm, in_state: asking, prompt: "What now?"}
    - {name: choose, type: transition, in_state: asking, prompt: "Go on?",
       transition_map: {stay: asking, end: done}}
"""


def test_turns_of_a_workflow_are_estimated(tmp_path: Path) -> None:
    """A few turns stand for all, no action is carried out, and nothing is written."""
    carried_out: list[Any] = []

    file = tmp_path / "asks.yaml"
    file.write_text(WORKFLOW)
    acting = Run(
        file,
        rounds=50,
        model=Model("llama3.2", **PRICED),
        application={"on_action": carried_out.append},
    )
    found = estimate(acting)
    (asked,) = found.models
    assert (found.rounds, found.of_rounds, found.agents) == (5, 50, 1)
    assert (asked.texts, asked.calls, asked.decisions) == (50, 50, 0)
    assert (asked.at_once, asked.seconds) == (1, 50.0)
    assert asked.money
    assert (carried_out, list(tmp_path.iterdir())) == ([], [file])


def test_cycles_of_a_thinking_agent_are_estimated(tmp_path: Path) -> None:
    """The memory is looked at and stays as it is; one that is missing is not made."""
    config, memory = tmp_path / "config.json", tmp_path / "memory"
    config.write_text("{}")
    run = Run(world=config, memory=memory, rounds=40, model=Model("llama3.2"))
    few = estimate(run).models[0]
    assert not memory.exists()
    with Memory.open(memory) as opened:
        opened.add("story", "once " * 200)
        opened.commit()
    before = memory.read_bytes()
    more = estimate(run).models[0]
    assert (few.texts, more.texts) == (40, 40)
    assert more.input_tokens > few.input_tokens
    assert memory.read_bytes() == before


def test_runs_of_a_batch_are_estimated_together(tmp_path: Path) -> None:
    """Each configuration counts as often as it has seeds; those that ask nobody are left out."""
    file, silent = tmp_path / "asks.yaml", tmp_path / "silent.yaml"
    file.write_text(WORKFLOW)
    silent.write_text("name: silent\nworkflow: {steps: [{name: a, type: code, code: 'b = 1'}]}")
    model, nobody = Model("llama3.2", **PRICED), Run(world=silent)
    few, many = (Run(world=file, rounds=turns, model=model) for turns in (10, 50))
    each = [estimate(run).models[0] for run in (few, many)]
    found = estimate_all([(few, 2), (many, 3), (nobody, 7)])
    (asked,) = found.models
    assert (found.runs, found.of_rounds, found.of_agents) == (5, 170, 5)
    assert asked.calls == 2 * each[0].calls + 3 * each[1].calls == 170
    assert asked.money == pytest.approx(2 * (each[0].money or 0) + 3 * (each[1].money or 0))
    with pytest.raises(InputError, match="needs at least one run that asks a model"):
        estimate_all([(nobody, 7)])
