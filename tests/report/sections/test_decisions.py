"""The section of decisions."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from prism.analysis import read_log
from prism.report._facts.run_facts import facts_of
from prism.report._figures.page_figures import PageFigures
from prism.report._sections.decisions import DECISIONS


def test_figures_are_those_that_the_log_has_data_for(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """A policy's decisions have no latencies and tokens, a model's have both."""
    policy = [make.decision("x", ["a", "b"], "a")]
    model = [
        make.decision("x", ["a", "b"], "a", source="model", latency=0.1, attempts=1, input_tokens=5)
    ]
    found = []
    logs = [write_log(lines, name) for lines, name in ((policy, "p.jsonl"), (model, "m.jsonl"))]
    for facts in facts_of(read_log(*logs))[0]:
        figures = PageFigures(facts.state_names)
        DECISIONS.make(facts, "1", figures)
        found.append({name.removeprefix("figure-").removesuffix("-1") for name in figures.charts})
    assert found == [{"choices", "sources"}, {"choices", "sources", "latency", "tokens"}]


def test_decisions_of_no_state_have_no_column_of_states(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """What was chosen is shown all the same, without the columns that have no values."""
    decided = {**make.decision("x", ["a", "b"], "a"), "state": None}
    (facts,), _ = facts_of(read_log(write_log([decided])))
    section = str(DECISIONS.make(facts, "1", PageFigures(facts.state_names)))
    headings = section.partition('id="table-decisions-1"')[2].partition("</thead>")[0]
    assert "asked" in headings
    assert "state" not in headings


@pytest.mark.slow
def test_reasons_of_fallbacks_are_listed_by_frequency(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """The commonest reason of a fallback comes first, then by name."""
    reasons = ["slow", "gone", "slow", "bad"]
    lines = [make.decision("x", ["a"], "a", source="fallback", reason=reason) for reason in reasons]
    (facts,), _ = facts_of(read_log(write_log(lines)))
    section = str(DECISIONS.make(facts, "1", PageFigures(facts.state_names)))
    assert "Why fallbacks were taken" in section
    table = section.partition('id="table-reasons-1"')[2]
    assert sorted(set(reasons), key=table.index) == ["slow", "bad", "gone"]
