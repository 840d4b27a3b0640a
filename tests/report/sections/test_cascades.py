"""Cascades, their figures, and their threads."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from prism.analysis import read_log
from prism.report._facts.run_facts import facts_of
from prism.report._figures.page_figures import PageFigures
from prism.report._sections.cascades import CASCADES


@pytest.mark.slow
def test_sizes_are_a_complementary_distribution(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """The figure counts the cascades of at least each size, single posts included."""
    lines = [make.post("x", root) for root in ("p", "q", "r")]
    lines += [make.post("y", f"p{number}", "p", "p") for number in range(2)]
    lines += [make.post("y", "q1", "q", "q")]
    (facts,), _ = facts_of(read_log(write_log(lines)))
    figures = PageFigures(facts.state_names)
    section = str(CASCADES.make(facts, "1", figures))
    (rows,) = figures.charts["figure-cascades-1"].alone()["datasets"].values()
    assert [(row["size"], row["cascades"]) for row in rows] == [(3, 1), (2, 2), (1, 3)]
    assert section.count("<details") == 2
    assert section.count("<details open") == 1


def test_the_largest_cascades_are_read_as_threads(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """Who said what and when stands there as words, each answer a step further to the right."""
    lines = [
        make.post("ada", "p", text="<b>What</b> now?"),
        make.post("bo", "r", "p", "p", text="I agree."),
        make.post("cy", "s", "r", "p", text="x" * 500),
        make.like("ada", "r", "bo"),
    ]
    (facts,), _ = facts_of(read_log(write_log(lines)))
    section = str(CASCADES.make(facts, "1", PageFigures(facts.state_names)))
    thread = section[section.index('<ol class="thread') : section.index("</ol>")]
    assert [thread.count(f"below-{depth}") for depth in (0, 1, 2, 3)] == [1, 1, 1, 0]
    for words in ("&lt;b&gt;What", "bo replies", "I agree.", "(1 like)", "round 1", "xxx…"):
        assert words in thread


@pytest.mark.slow
def test_a_large_cascade_says_what_is_left_out_of_it(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """Its thread has the first posts, and says that these are not all."""
    lines = [make.post("x", "p"), *(make.post("y", f"p{n}", "p", "p") for n in range(450))]
    (facts,), _ = facts_of(read_log(write_log(lines)))
    section = str(CASCADES.make(facts, "1", PageFigures(facts.state_names)))
    assert "451 posts" in section
    assert "The first 100 posts." in section
    assert section.count('<li class="below-') == 100
