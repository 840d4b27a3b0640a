"""Types of simulations, logs and tables, as users see them; checked by test_typing.py, never run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, assert_type

import duckdb

import prism.analysis
import prism.runlog
from prism import Run
from prism.agents import synthetic_population
from prism.analysis import Conformance, Log, Note, check_log, read_log
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
assert_type(logs, Log)
assert_type(logs.runs, tuple[prism.analysis.Run, ...])
assert_type(logs.notes, tuple[Note, ...])
assert_type(run_status("run"), RunStatus)
assert_type(logs.table("states"), duckdb.DuckDBPyRelation)
assert_type(logs.sql("from events"), duckdb.DuckDBPyRelation)
assert_type(logs.rows("agent", "ada"), list[dict[str, Any]])
assert_type(check_log(logs, social_media_chart()), Conformance)
assert_type(Results.to_dict(simulation.run()), dict[str, Any])
