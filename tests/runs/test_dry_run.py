"""What a run is to cost, estimated without asking anybody."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.errors import InputError
from prism.llm import Model
from prism.runs import WriterOptions
from prism.runs._dry_run import estimate
from prism.social import Feed
from prism.testing import FakeOllama

PRICED = {"price_in": 1.0, "price_out": 4.0}


def test_nothing_is_sent_or_written(tmp_path: Path) -> None:
    """No server is asked, no key is needed, and the file of answers stays as it is."""
    with FakeOllama() as server:
        model = Model("llama3.2", server.host, key="NOT_SET", max_calls=1)
        found = estimate(Run(Feed, 20, rounds=2, model=model))
        assert server.asked == 0

    (asked,) = found.models
    assert asked.decisions > 0
    assert asked.input_tokens > 50 * asked.calls > 0
    assert list(tmp_path.iterdir()) == []


def test_equal_questions_are_counted_as_they_are_asked() -> None:
    """Agents with one prompt share a request, unless the model samples an answer for each."""
    told = "You are offered a vaccination.\n{options}"
    model = Model("llama3.2", mode="chat", prompt=told)
    calls = []
    for temperature in (None, 0.8):
        sampled = replace(model, temperature=temperature)
        (asked,) = estimate(Run("vaccination", 40, rounds=3, model=sampled)).models
        calls.append((asked.calls, asked.decisions))
    (shared, decisions), (sampled_calls, sampled_decisions) = calls
    assert shared < decisions / 2
    assert sampled_calls == sampled_decisions > 0


@pytest.mark.slow
def test_an_estimate_is_near_what_a_run_costs(tmp_path: Path) -> None:
    """Requests, tokens and money of a run that a model decides are those of the estimate, or so."""
    with FakeOllama() as server:
        model = Model("llama3.2", server.host, **PRICED)
        run = Run(Feed, 30, rounds=4, model=model, writer=WriterOptions())
        (asked,) = estimate(run).models
        spent = run.keep(tmp_path / "run").summary["spent"]

    # the model may decide otherwise, and its server may count otherwise
    assert 0.5 < asked.calls / spent["calls"] < 2
    assert 0.5 < (asked.input_tokens + asked.output_tokens) / spent["tokens"] < 2
    assert asked.money == pytest.approx(model.price_of(asked.input_tokens, asked.output_tokens))
    assert 0.4 < (asked.money or 0) / spent["money"] < 2.5


def test_rounds_and_agents_are_scaled() -> None:
    """A few rounds of some agents stand for all."""
    model = Model("llama3.2", **PRICED)
    few = estimate(Run("rumour", 200, rounds=3, model=model))
    many = estimate(Run("rumour", 2_000, rounds=30, model=model))
    assert (many.rounds, many.agents) == (few.rounds, few.agents) == (3, 200)
    assert many.models[0].decisions == 100 * few.models[0].decisions
    assert many.money == pytest.approx(100 * (few.money or 0))


@pytest.mark.slow
def test_texts_are_counted_apart() -> None:
    """A world whose agents write, and decide nothing, has texts alone."""
    run = Run("council", 20, rounds=2, writer=WriterOptions(Model("llama3.2")))
    (asked,) = estimate(run).models
    assert asked.decisions == 0
    assert asked.texts == asked.calls > 0
    assert asked.output_tokens > 10 * asked.texts


@pytest.mark.slow
def test_each_model_is_told_for_itself() -> None:
    """Agents that are switched have the prices of their new model."""
    model = Model("small", price_in=1)
    run = Run(Feed, 30, rounds=4, model=model, treatments=["model=late@2"])
    found = {each.model: each for each in estimate(run).models}
    assert found.keys() == {"small", "late"}
    assert (found["small"].money or 0) > 0
    assert (found["late"].money, estimate(run).money) == (None, None)


@pytest.mark.parametrize("run", [Run(Feed, 5), Run("rumour", 5)])
def test_a_run_without_a_model_costs_nothing(run: Any) -> None:
    """There is nothing to estimate, and the error says so."""
    with pytest.raises(InputError, match="needs a model"):
        estimate(run)


def test_questions_by_letter_are_counted() -> None:
    """What is asked by letter is counted with the tokens of the prompts."""
    (asked,) = estimate(Run("rumour", 40, model=Model("llama3.2", mode="auto"))).models
    assert asked.calls > 0
    assert asked.input_tokens > 20 * asked.calls
    assert asked.output_tokens < 10 * asked.calls
