"""The table of all agents."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from prism.analysis import read_log
from prism.report import Report
from prism.report._figures.page_figures import PageFigures
from prism.report._sections.agents import agent_rows, make
from tests.kit.logs import AGENTS
from tests.kit.tables import agents


def test_every_agent_is_there(report: Report, folder: Path) -> None:
    """The table has all agents of a run, with the counts of the table of agents."""
    columns, rows = agent_rows(report.runs)
    acts = ("agent_id", "posts", "replies", "reshares", "likes")
    table = pl.DataFrame(rows, schema=columns, orient="row")
    assert table.select(acts).rows() == agents(read_log(folder)).select(acts).rows()


@pytest.mark.slow
def test_agents_of_two_runs_say_which(side_by_side: Report) -> None:
    """With several runs the first column names the run."""
    columns, rows = agent_rows(side_by_side.runs)
    assert columns[0] == "run"
    assert len(rows) == AGENTS + 16
    assert {row[0] for row in rows} == {"real", "model"}


def test_useless_columns_are_left_out(facts: Callable[..., Any], make: Any) -> None:
    """Names that equal the ids and archetypes that nobody has are left out."""
    columns, _ = agent_rows([facts([make.joined("ada", name="ada"), make.joined("bo", name="bo")])])
    assert "name" not in columns
    assert "archetype" not in columns
    assert "state" in columns


def test_most_active_agents_are_kept_if_there_are_too_many(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of very many agents the most active are kept, and the page says how to get the others."""
    monkeypatch.setattr("prism.report._sections.agents.MOST_BYTES", 25_000)
    (facts,) = report.runs
    many = pl.concat([facts.agents.with_columns(agent_id=pl.lit("x" * 190)) for _ in range(3)])
    crowd = replace(facts, agents=many)
    columns, rows = agent_rows([crowd])
    assert 50 < len(rows) < many.height
    assert len(orjson.dumps(rows)) <= 25_000 + 2
    posts = sorted((row[columns.index("posts")] for row in rows), reverse=True)
    assert posts == many["posts"].sort(descending=True).head(len(rows)).to_list()
    markup = str(make([crowd], PageFigures(())).together)
    assert f"The {len(rows):,} most active of {many.height:,} agents" in markup
    assert "prism log agents RUN --format csv" in markup
