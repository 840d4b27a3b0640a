"""The section of cascades."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from prism.analysis import read_log
from prism.report._facts.run_facts import facts_of
from prism.report._figures.page_figures import PageFigures
from prism.report._sections.cascades import make as make_section


def test_sizes_are_a_complementary_distribution(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """The figure counts the cascades of at least each size, single posts included."""
    lines = [make.post("x", root) for root in ("p", "q", "r")]
    lines += [make.post("y", f"p{number}", "p", "p") for number in range(2)]
    lines += [make.post("y", "q1", "q", "q")]
    (facts,), _ = facts_of(read_log(write_log(lines)))
    figures = PageFigures(facts.state_names)
    section = str(make_section(facts, "1", figures))
    (rows,) = figures.charts["figure-cascades-1"].alone()["datasets"].values()
    assert [(row["size"], row["cascades"]) for row in rows] == [(3, 1), (2, 2), (1, 3)]
    assert list(figures.drawings) == ["tree-1-1", "tree-1-2"]
    assert section.count("<details") == 2
    assert section.count("<details open") == 1


def test_posts_without_answers_are_no_cascades(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """A log in which no post was answered has no such section."""
    (facts,), _ = facts_of(read_log(write_log([make.post("x", "p")])))
    assert make_section(facts, "1", PageFigures(())) is None
