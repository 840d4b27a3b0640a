"""A run's log as tables.

`read_log` opens one log or several. Every function takes the result, reads the logs once, in
bounded memory, and returns a polars frame. If there are several runs, a column ``run`` comes first,
with their labels.

===================== ==========================================================================
`state_counts`        agents in each state at the end of every tick
`transition_counts`   every kind of transition: count, and probability among those out of its state
`dwell_times`         ticks that agents stay in each state
`decisions`           asked, answered, fallbacks, requests, tokens, latency, entropy
`costs`               requests, tokens and seconds of each model, in decisions and texts
`participation`       who is silent, writes or creates, and the top 1 %'s share of all writing
`run_measures`        each run as one row of numbers, for plans and comparisons
`agents`              the attributes of every agent, and how much it did
`cascades`            size, depth, breadth, structural virality and lifetime of every cascade
`agent_story`         everything that one agent did, in order
`faults`              guards and actions that raised, answers that were not used
`measures`            the measures of a world, round by round
`agent_measures`      the measures of each agent, round by round
`arms`                the arms of experiments, compared
`world_events`        events that a world logged itself, with their own keys
`world_event_counts`  the number of events of each kind
`check_log`           every step that a chart does not allow
===================== ==========================================================================

The object that `read_log` returns has ``logs.runs`` (a `Run` each: label, path, whether it started
and ended, seed and size, if the log contains them), ``logs.notes`` (a `Note` on each problem of a
file: ``kind``, ``path``, ``line``, ``message``) and ``logs.scan("post.published")`` (the events of
one kind as a LazyFrame, for tables of your own). If there are several runs of worlds, the
parameters follow the column ``run`` in every table.

Needs the extra ``analysis``: ``pip install '.[analysis]'`` in a checkout.
"""

from prism.errors import MissingExtraError

try:
    import polars as _polars  # noqa: F401
except ModuleNotFoundError as _error:
    if _error.name != "polars":
        raise
    raise MissingExtraError("analysis", "polars") from None

from prism.analysis._conformance import Conformance, check_log
from prism.analysis._reading.logs import RunLogs, read_log
from prism.analysis._reading.runs import Note, Run
from prism.analysis._tables.agent_story import agent_story
from prism.analysis._tables.agents import agents
from prism.analysis._tables.cascades import cascades
from prism.analysis._tables.decisions import costs, decisions
from prism.analysis._tables.dwelling import dwell_times
from prism.analysis._tables.engagement import participation
from prism.analysis._tables.faults import faults
from prism.analysis._tables.run_measures import run_measures
from prism.analysis._tables.states import state_counts
from prism.analysis._tables.transitions import transition_counts
from prism.analysis._tables.treated import arms
from prism.analysis._tables.worlds import (
    agent_measures,
    measures,
    world_event_counts,
    world_events,
)

__all__ = [
    "Conformance",
    "Note",
    "Run",
    "RunLogs",
    "agent_measures",
    "agent_story",
    "agents",
    "arms",
    "cascades",
    "check_log",
    "costs",
    "decisions",
    "dwell_times",
    "faults",
    "measures",
    "participation",
    "read_log",
    "run_measures",
    "state_counts",
    "transition_counts",
    "world_event_counts",
    "world_events",
]
