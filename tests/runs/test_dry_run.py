"""What a run is to cost, estimated without asking anybody."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.errors import InputError
from prism.examples.rumour import Person, Rumour
from prism.llm import Model
from prism.programs.thinking import Memory
from prism.runs import WriterOptions
from prism.runs.dry_run import estimate
from prism.social import Feed
from prism.testing import FakeOllama

PRICED = {"price_in": 1.0, "price_out": 4.0}

WORKFLOW = """
name: asks
workflow:
  state_machine:
    states: [asking, done]
    final_states: [done]
  steps:
    - {name: think, type: llm, in_state: asking, prompt: "What now?", output: text}
    - {name: choose, type: transition, in_state: asking, prompt: "Go on?",
       transition_map: {stay: asking, end: done}}
"""


def test_nothing_is_sent_or_written(tmp_path: Path) -> None:
    """No server is asked, no key is needed, and the file of answers stays as it is."""
    with FakeOllama() as server:
        model = Model("llama3.2", server.host, key="NOT_SET", max_calls=1)
        found = estimate(Run(Feed, 20, rounds=2, model=model))
        assert server.asked == 0

    asked = found.models["llama3.2"]
    assert asked["decisions"] > 0
    assert asked["input_tokens"] > 50 * asked["calls"] > 0
    assert asked["output_tokens"] < 10 * asked["calls"]
    assert list(tmp_path.iterdir()) == []


def test_equal_questions_are_counted_as_they_are_asked() -> None:
    """Agents with one prompt share a request, unless the model samples an answer for each."""
    told = "You are offered a vaccination.\n{options}"
    model = Model("llama3.2", mode="chat", prompt=told)
    calls = []
    for temperature in (None, 0.8):
        sampled = replace(model, temperature=temperature)
        asked = estimate(Run("vaccination", 40, rounds=3, model=sampled)).models["llama3.2"]
        calls.append((asked["calls"], asked["decisions"]))
    (shared, decisions), (sampled_calls, sampled_decisions) = calls
    assert shared < decisions / 2
    assert sampled_calls == sampled_decisions > 0


@pytest.mark.slow
def test_an_estimate_is_near_what_a_run_costs(tmp_path: Path) -> None:
    """Requests, tokens and money of a run that a model decides are those of the estimate, or so."""
    with FakeOllama() as server:
        model = Model("llama3.2", server.host, **PRICED)
        run = Run(Feed, 30, rounds=4, model=model, writer=WriterOptions())
        asked = estimate(run).models["llama3.2"]
        spent = run.keep(tmp_path / "run").summary["spent"]

    # the model may decide otherwise, and its server may count otherwise
    assert 0.5 < asked["calls"] / spent["calls"] < 2
    assert 0.5 < (asked["input_tokens"] + asked["output_tokens"]) / spent["tokens"] < 2
    tokens = [int(asked[name]) for name in ("input_tokens", "output_tokens")]
    assert asked["money"] == pytest.approx(model.price_of(*tokens))
    assert 0.4 < asked["money"] / spent["money"] < 2.5


def test_rounds_and_agents_are_scaled() -> None:
    """A few rounds of some agents stand for all."""
    model = Model("llama3.2", **PRICED)
    few = estimate(Run("rumour", 200, rounds=3, model=model))
    many = estimate(Run("rumour", 2_000, rounds=30, model=model))
    assert (many.rounds, many.agents) == (few.rounds, few.agents) == (3, 200)
    decisions = [each.models["llama3.2"]["decisions"] for each in (few, many)]
    assert decisions[1] == 100 * decisions[0] > 0
    assert many.money == pytest.approx(100 * (few.money or 0))


class Couples(Rumour):
    """A world that makes two agents for each that it is asked for, or a dozen."""

    dozen: bool = False

    def populate(self, agents: int) -> list[Person]:
        """Make them."""
        return [Person() for _ in range(12 if self.dozen else 2 * agents)]


@pytest.mark.parametrize(("asked", "dozen", "there"), [(50, True, 12), (300, False, 600)])
def test_agents_are_scaled_to_those_whom_the_world_makes(
    asked: int, dozen: bool, there: int
) -> None:
    """A world that makes more or fewer agents than it is asked for costs what those cost."""
    model = Model("llama3.2", **PRICED)
    whole = Run(Couples, asked, rounds=3, model=model, parameters={"dozen": dozen})
    found = estimate(whole)
    assert (found.of_agents, found.of_agents == found.agents) == (there, dozen)
    assert len(whole.replace(model=None).agents) == there


@pytest.mark.slow
def test_texts_are_counted_apart() -> None:
    """A world whose agents write, and decide nothing, has texts alone."""
    run = Run("council", 20, rounds=2, writer=WriterOptions(Model("llama3.2")))
    asked = estimate(run).models["llama3.2"]
    assert asked["decisions"] == 0
    assert asked["texts"] >= asked["calls"] > 0
    assert asked["output_tokens"] > 10 * asked["calls"]


def test_each_model_is_told_for_itself() -> None:
    """One that writes has its own prices; without all of them, the money is unknown."""
    model = Model("small", price_in=1)
    run = Run(Feed, 30, rounds=4, model=model, writer="other")
    found = estimate(run)
    assert found.models.keys() == {"small", "other"}
    assert found.models["small"]["money"] > 0
    assert "money" not in found.models["other"]
    assert found.models["other"]["texts"] > 0 == found.models["other"]["decisions"]
    assert found.money is None


@pytest.mark.parametrize("run", [Run(Feed, 5), Run("rumour", 5)])
def test_a_run_without_a_model_costs_nothing(run: Any) -> None:
    """There is nothing to estimate, and the error says so."""
    with pytest.raises(InputError, match="needs a model"):
        estimate(run)


# One agent, and batches


def test_turns_of_a_workflow_are_estimated(tmp_path: Path) -> None:
    """A few turns stand for all, and nothing is written.

    Its two prompts are the same in each turn, so that each is asked once in the turns tried.
    """
    file = tmp_path / "asks.yaml"
    file.write_text(WORKFLOW)
    found = estimate(Run(file, rounds=50, model=Model("llama3.2", **PRICED)))
    asked = found.models["llama3.2"]
    assert (found.rounds, found.of_rounds, found.agents) == (5, 50, 1)
    assert [asked[name] for name in ("texts", "calls", "decisions")] == [50, 20, 0]
    assert asked["money"] > 0
    assert list(tmp_path.iterdir()) == [file]


def test_cycles_of_a_thinking_agent_are_estimated(tmp_path: Path) -> None:
    """The memory is looked at and stays as it is; one that is missing is not made."""
    config, memory = tmp_path / "config.json", tmp_path / "memory"
    config.write_text("{}")
    run = Run(world=config, memory=memory, rounds=40, model=Model("llama3.2"))
    few = estimate(run).models["llama3.2"]
    assert not memory.exists()
    with Memory.open(memory) as opened:
        opened.add("story", "once " * 200)
        opened.commit()
    before = memory.read_bytes()
    more = estimate(run).models["llama3.2"]
    assert (few["texts"], more["texts"]) == (40, 40)
    assert more["input_tokens"] > few["input_tokens"]
    assert memory.read_bytes() == before


def test_runs_of_a_batch_are_estimated_together(tmp_path: Path) -> None:
    """Each configuration counts as often as it has seeds; those that ask nobody are left out."""
    file, silent = tmp_path / "asks.yaml", tmp_path / "silent.yaml"
    file.write_text(WORKFLOW)
    silent.write_text("name: silent\nworkflow: {steps: [{name: a, type: code, code: 'b = 1'}]}")
    model, nobody = Model("llama3.2", **PRICED), Run(world=silent)
    few, many = (Run(world=file, rounds=turns, model=model) for turns in (10, 50))
    each = [estimate(run).models["llama3.2"] for run in (few, many)]
    found = estimate(few, many, nobody, times=[2, 3, 7])
    asked = found.models["llama3.2"]
    assert (found.runs, found.of_rounds, found.of_agents) == (5, 170, 5)
    assert asked["calls"] == 2 * each[0]["calls"] + 3 * each[1]["calls"] == 2 * 4 + 3 * 20
    assert asked["money"] == pytest.approx(2 * each[0]["money"] + 3 * each[1]["money"])
