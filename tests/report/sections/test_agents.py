"""The table of all agents."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from prism.analysis import activity, read_log
from prism.report import Report, make_report
from prism.report._figures.page_figures import PageFigures
from prism.report._sections.agents import MOST_BYTES, agent_rows, make


@pytest.mark.slow
def test_every_agent_is_there(report: Report, folder: Path) -> None:
    """The table has all agents of a run, with the counts of `activity`."""
    columns, rows = agent_rows(report.runs)
    counted = activity(read_log(folder))
    table = pl.DataFrame(rows, schema=columns, orient="row")
    assert table.select(counted.columns).rows() == counted.rows()


@pytest.mark.slow
def test_agents_of_two_runs_say_which(report: Report, model_log: Path) -> None:
    """With several runs the first column names the run."""
    other = make_report(read_log(model_log))
    columns, rows = agent_rows([*report.runs, *other.runs])
    assert columns[0] == "run"
    assert len(rows) == 80 + 40
    assert {row[0] for row in rows} == {"real", "model"}


def test_useless_columns_are_left_out(write_log: Callable[..., Path], make: Any) -> None:
    """Names that equal the ids and archetypes that nobody has are left out."""
    log = write_log([make.joined("ada", name="ada"), make.joined("bo", name="bo")])
    columns, _ = agent_rows(make_report(read_log(log)).runs)
    assert "name" not in columns
    assert "archetype" not in columns
    assert "state" in columns


def test_most_active_agents_are_kept_if_there_are_too_many(report: Report) -> None:
    """Of very many agents the most active are kept, and the page says how to get the others."""
    (facts,) = report.runs
    many = pl.concat([facts.agents.with_columns(agent_id=pl.lit("x" * 190)) for _ in range(300)])
    crowd = replace(facts, agents=many)
    columns, rows = agent_rows([crowd])
    assert 10_000 < len(rows) < many.height
    assert len(orjson.dumps(rows)) <= MOST_BYTES + 2
    posts = sorted((row[columns.index("posts")] for row in rows), reverse=True)
    assert posts == many["posts"].sort(descending=True).head(len(rows)).to_list()
    markup = make([crowd], PageFigures(()))
    assert f"The {len(rows):,} most active of {many.height:,} agents" in markup
    assert "prism.analysis.activity" in markup
