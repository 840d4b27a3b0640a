"""A run's log as tables.

`read_log` opens one log or several. Every function takes the result, reads the logs once, in
bounded memory, and returns a polars frame. If there are several runs, a column ``run`` comes first,
with their labels.

===================== ==========================================================================
`state_counts`        agents in each state at the end of every tick
`transition_counts`   every kind of transition: count, and probability among those out of its state
`dwell_times`         ticks that agents stay in each state, with a geometric fit
`dwell_survival`      share of the visits to a state that last beyond each tick (Kaplan-Meier)
`timeouts`            time-outs by state and round
`decisions`           asked, answered, fallbacks, requests, tokens, latency, entropy
`costs`               requests, tokens and seconds of each model, in decisions and texts
`activity`            posts, replies, reshares and likes that every agent gave and received
`engagement`          how unequally they are distributed: Gini, share of the top 1 % and 10 %
`participation`       who is silent, writes or creates, and the top 1 %'s share of all writing
`views`               how views of posts ended: decided, ignored, cut
`reach`               how far posts and cascades reached, and what agents were exposed to
`rhythm`              times between acts: mean, burstiness, memory; `agent_rhythms` by agent
`run_measures`        each run as one row of numbers, for plans and comparisons
`agents`              the attributes of every agent, and how much it did
`states_entered`      how often each agent entered each state
`interactions`        who replied to, reshared and liked whom
`interaction_graph`   the same, as a networkx graph
`follows`             who follows whom, if the log contains it
`follow_networks`     the follow network of each run: mean, reciprocity, Gini
`cascades`            size, depth, breadth, structural virality and lifetime of every cascade
`threads`             posts with the replies and reshares below them, as people read them
`agent_story`         everything that one agent did, in order
`reasons`             what one agent did about each post, and why
`faults`              guards and actions that raised, answers that were not used
`measures`            the measures of a world, round by round
`agent_measures`      the measures of each agent, round by round
`treatments`          the treatments of worlds, and what they changed
`assignments`         agents and posts assigned to the arms of experiments
`treated_posts`       what happened to the posts of experiments
`arms`                the arms of experiments, compared
`parameters`          the runs, with the parameters of their worlds
`world_events`        events that a world logged itself, with their own keys
`world_event_counts`  the number of events of each kind
`to_event_log`        the transitions as process-mining tools read them (a LazyFrame)
`check_log`           every step that a chart does not allow
===================== ==========================================================================

The object that `read_log` returns has ``logs.runs`` (a `Run` each: label, path, whether it started
and ended, seed and size, if the log contains them), ``logs.notes`` (a `Note` on each problem of a
file: ``kind``, ``path``, ``line``, ``message``) and ``logs.scan("post.published")`` (the events of
one kind as a LazyFrame, for tables of your own). If there are several runs of worlds, the
parameters follow the column ``run`` in every table, except `to_event_log`.

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
from prism.analysis._tables.agents import agents, states_entered
from prism.analysis._tables.cascades import cascades
from prism.analysis._tables.decisions import costs, decisions
from prism.analysis._tables.dwelling import dwell_survival, dwell_times
from prism.analysis._tables.engagement import activity, engagement, gini, participation, top_share
from prism.analysis._tables.faults import faults
from prism.analysis._tables.networks import (
    follow_networks,
    follows,
    interaction_graph,
    interactions,
)
from prism.analysis._tables.reasons import reasons
from prism.analysis._tables.rhythm import agent_rhythms, rhythm
from prism.analysis._tables.run_measures import run_measures
from prism.analysis._tables.states import state_counts
from prism.analysis._tables.threads import threads
from prism.analysis._tables.transitions import timeouts, to_event_log, transition_counts
from prism.analysis._tables.treated import arms, assignments, treated_posts
from prism.analysis._tables.views import reach, views
from prism.analysis._tables.worlds import (
    agent_measures,
    measures,
    parameters,
    treatments,
    world_event_counts,
    world_events,
)

__all__ = [
    "Conformance",
    "Note",
    "Run",
    "RunLogs",
    "activity",
    "agent_measures",
    "agent_rhythms",
    "agent_story",
    "agents",
    "arms",
    "assignments",
    "cascades",
    "check_log",
    "costs",
    "decisions",
    "dwell_survival",
    "dwell_times",
    "engagement",
    "faults",
    "follow_networks",
    "follows",
    "gini",
    "interaction_graph",
    "interactions",
    "measures",
    "parameters",
    "participation",
    "reach",
    "read_log",
    "reasons",
    "rhythm",
    "run_measures",
    "state_counts",
    "states_entered",
    "threads",
    "timeouts",
    "to_event_log",
    "top_share",
    "transition_counts",
    "treated_posts",
    "treatments",
    "views",
    "world_event_counts",
    "world_events",
]
