"""The section of the chart and its traffic."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from prism.analysis import read_log
from prism.report._facts.run_facts import facts_of
from prism.report._figures.page_figures import PageFigures
from prism.report._sections.diagram import make as make_section


def test_chart_has_every_state_and_trigger_of_the_log(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """The drawing has the states and triggers that were seen, and a table of the counts."""
    moves = [make.move("x", "a", "b"), make.move("x", "b", "a", "back"), make.move("y", "a", "b")]
    (facts,), _ = facts_of(read_log(write_log(moves)))
    figures = PageFigures(facts.state_names)
    section = str(make_section(facts, "1", figures))
    for text in (">a<", ">b<", "go", "back"):
        assert text in figures.drawings["chart-1"]
    assert 'id="table-transitions-1"' in section
    assert figures.drawings["chart-1"] in section


def test_log_without_transitions_has_no_chart(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """A log in which no agent made a transition has no such section."""
    (facts,), _ = facts_of(read_log(write_log([make.joined("x")])))
    assert make_section(facts, "1", PageFigures(())) is None
