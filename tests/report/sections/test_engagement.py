"""The section of engagement."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from prism.analysis import read_log
from prism.report._facts.run_facts import facts_of
from prism.report._figures.page_figures import PageFigures
from prism.report._sections.engagement import make as make_section


def test_lorenz_curve_has_the_shares_of_the_agents(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """With all posts by one of four agents, the curve is zero up to three quarters of them."""
    lines = [make.joined(name) for name in "abcd"] + [make.post("d", "p1"), make.post("d", "p2")]
    (facts,), _ = facts_of(read_log(write_log(lines)))
    figures = PageFigures(facts.state_names)
    assert make_section(facts, "1", figures) is not None
    datasets = figures.charts["figure-inequality-1"].alone()["datasets"].values()
    curve = max(datasets, key=len)
    assert [(row["agents"], row["share"]) for row in curve] == [
        (pytest.approx(part / 4), pytest.approx(float(part == 4))) for part in range(5)
    ]


def test_log_without_posts_has_no_engagement(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """A log in which nobody posted, replied, reshared or liked has no such section."""
    (facts,), _ = facts_of(read_log(write_log([make.joined("x")])))
    assert make_section(facts, "1", PageFigures(())) is None
