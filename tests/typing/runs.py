"""Types of simulations, logs and tables, as users see them; checked by test_typing.py, never run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, assert_type

import duckdb

import prism.analysis
import prism.runlog
from prism import Run
from prism.agents import SocialAgent, synthetic_population
from prism.analysis import Conformance, Log, Note, check_log, read_log
from prism.runlog import RunLog, SimulatedClock
from prism.runs import RunStatus, run_status
from prism.social import Draft, Feed, Post, Results, RoundSummary
from prism.statechart import PolicyReasoner, RandomStream, social_media_chart


class Brief:
    """A composer of one's own."""

    def compose(self, agent: SocialAgent, post: Post, stream: RandomStream) -> Draft:
        return Draft("reply", f"{agent.name}: yes", post.topics)


def tell(summary: RoundSummary) -> None:
    assert summary.number > 0


population = synthetic_population(10)
with RunLog(Path("events.jsonl"), SimulatedClock()) as log:
    simulation = Run(
        Feed(first_posts=population.posts, composer=Brief()),
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
assert_type(logs, Log)
assert_type(logs.runs, tuple[prism.analysis.Run, ...])
assert_type(logs.notes, tuple[Note, ...])
assert_type(run_status("run"), RunStatus)
assert_type(logs.table("states"), duckdb.DuckDBPyRelation)
assert_type(logs.sql("from events"), duckdb.DuckDBPyRelation)
assert_type(logs.rows("agent", "ada"), list[dict[str, Any]])
assert_type(check_log(logs, social_media_chart()), Conformance)
assert_type(Results.to_dict(simulation.run()), dict[str, Any])
