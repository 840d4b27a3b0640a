"""Logs of rounds alone, and of some agents."""

import json
from pathlib import Path
from typing import Any

import pytest

from prism.analysis import read_log
from prism.runlog.reader import LOG_NAME
from prism.worlds import Run, resume
from tests.kit.kept import StoppedError, stop_after, tree


def kept(folder: Path, **options: Any) -> Path:
    """Keep a short run; return its folder."""
    Run("epidemic", 60, rounds=4, seed=3, **options).keep(folder)
    return folder


def test_a_log_of_rounds_tells_of_no_agent(tmp_path: Path) -> None:
    """Rounds and measures of everybody are there, and nothing that single agents do."""
    plain, rounds = kept(tmp_path / "plain"), kept(tmp_path / "rounds", log_agents=0)
    lines = [json.loads(line) for line in (rounds / LOG_NAME).read_bytes().splitlines()]
    assert {line["event"] for line in lines} == {
        *("run.started", "round.started", "round.ended", "run.ended")
    }
    assert lines[0]["logged_agents"] == 0
    ended = [line for line in lines if line["event"] == "round.ended"]
    assert [sum(line["states"].values()) for line in ended] == [60] * 4
    assert read_log(rounds).rows("measures") == read_log(plain).rows("measures")


def test_a_feeds_log_of_rounds_has_posts_and_votes_and_no_other_act(tmp_path: Path) -> None:
    """A feed is resumed from its posts and likes, so these stay; the run is the same otherwise."""
    run = Run("feed", 20, rounds=3, seed=1, log_agents=0)
    run.keep(tmp_path / "whole")
    lines = (tmp_path / "whole" / LOG_NAME).read_bytes().splitlines()
    events = {json.loads(line)["event"] for line in lines}
    runs = {"run.started", "round.started", "round.ended", "run.ended"}
    assert events == {*runs, "post.published", "post.liked"}

    with pytest.raises(StoppedError):
        run.keep(tmp_path / "cut", on_round=stop_after(2))
    resume(tmp_path / "cut")
    assert tree(tmp_path / "cut") == tree(tmp_path / "whole")
