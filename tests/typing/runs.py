"""Types of simulations, logs and tables, as users see them; checked by test_typing.py, never run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, assert_type

import polars as pl

import prism.analysis
import prism.runlog
from prism import Run
from prism.agents import synthetic_population
from prism.analysis import (
    Conformance,
    Note,
    RunLogs,
    agent_story,
    agents,
    cascades,
    check_log,
    decisions,
    dwell_times,
    faults,
    participation,
    read_log,
    state_counts,
    transition_counts,
)
from prism.runlog import RunLog, SimulatedClock
from prism.runs import RunStatus, run_status
from prism.social import Feed, Post, Reader, Results
from prism.statechart import PolicyReasoner, social_media_chart
from prism.worlds import WorldRound


class Brief(Feed):
    """A feed of one's own."""

    posts_per_tick: float = 0.1

    def should_engage(self, reader: Reader, post: Post) -> bool:
        return reader.relevance(post) > 0.5


def tell(summary: WorldRound) -> None:
    assert summary.number > 0


population = synthetic_population(10)
with RunLog(Path("events.jsonl"), SimulatedClock()) as log:
    simulation = Run(
        Brief(first_posts=population.posts),
        population.agents,
        rounds=3,
        seed=7,
        reasoner=PolicyReasoner(7),
        logger=log.logger,
        clock=SimulatedClock(),
    )
    assert_type(simulation.run(tell), Results)
    assert_type(simulation.agents, Sequence[Any])
    assert_type(simulation.finished, Sequence[Any])

with prism.runlog.configure("events.jsonl") as configured:
    assert_type(configured.path, Path)
with prism.runlog.configure(Path("events.jsonl")):
    pass

logs = read_log("runs/a", Path("runs/b"))
assert_type(logs, RunLogs)
assert_type(logs.runs, tuple[prism.analysis.Run, ...])
assert_type(logs.notes, tuple[Note, ...])
assert_type(logs.scan("post.published"), pl.LazyFrame)
assert_type(agents(logs), pl.DataFrame)
assert_type(faults(logs), pl.DataFrame)
assert_type(run_status("run"), RunStatus)
assert_type(state_counts(logs), pl.DataFrame)
assert_type(transition_counts(logs), pl.DataFrame)
assert_type(dwell_times(logs), pl.DataFrame)
assert_type(decisions(logs, by=["state"]), pl.DataFrame)
assert_type(cascades(logs), pl.DataFrame)
assert_type(participation(logs), pl.DataFrame)
assert_type(agent_story(logs, "ada"), pl.DataFrame)
assert_type(check_log(logs, social_media_chart()), Conformance)
assert_type(Results.to_dict(simulation.run()), dict[str, Any])
