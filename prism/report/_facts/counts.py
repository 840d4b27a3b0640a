"""Tables that only a report needs, each made in one pass over the logs, and trees of posts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import TableMerger, merge_by_sum
from prism.analysis._tables.agents import described_agents
from prism.analysis._tables.cascades import tree_shape
from prism.analysis._tables.decisions import WAS_ASKED
from prism.analysis._tables.transitions import count_transitions
from prism.telemetry.events import (
    AGENT_JOINED,
    COGNITION_CYCLE,
    DECISION,
    POST_PUBLISHED,
    TRANSITION,
    WORKFLOW_STEP,
)

BINS_A_DECADE = 10
"""Steps from a latency to one ten times as long."""

_LEAST_LATENCY = 1e-4
_AGENT = ["run", "agent_id"]
_POST = ("post_id", "parent_id", "root_id", "kind", "agent_id", "text")
_STEP = ["run", "step", "type"]
_OUTCOMES = ("done", "skipped", "failed")
_SPENT = ("seconds", "input_tokens", "output_tokens")

OF_STEPS = (*_STEP[1:], "outcome", *_SPENT)
"""Keys of events that `step_counts` reads."""

_OF_CYCLE = ("done", "refused", "unusable", "failed")
_TOKENS = ("input_tokens", "output_tokens")

OF_CYCLES = ("state", "outcome", "prompt_tokens", *_TOKENS)
"""Keys of events that `cycle_counts` reads."""


def latency_counts(logs: RunLogs) -> pl.DataFrame:
    """Count the decisions that a model was asked for by latency, in logarithmic steps.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        ``source``, ``step`` (latencies from 10^(step / `BINS_A_DECADE`) seconds to the next step;
        less than 0.1 ms counts as that) and ``decisions``, with ``run`` first if there are several.
        Empty if no model was asked.
    """
    merger = merge_by_sum(["run", "source", "step"])
    decades = pl.col("latency").clip(lower_bound=_LEAST_LATENCY).log10()
    # 0.001 s is on the edge of a step, and must not fall below it by a rounding error.
    step = (decades * BINS_A_DECADE + 1e-9).floor().cast(pl.Int64)

    for frame in logs.blocks(DECISION, columns=("source", "latency", "attempts")):
        timed = frame.filter(WAS_ASKED).drop_nulls("source").group_by("run", "source", step=step)
        merger.add(timed.agg(decisions=pl.len().cast(pl.Int64)))

    return logs.labelled(merger.table().sort("run", "source", "step"))


def traffic_counts(logs: RunLogs) -> pl.DataFrame:
    """Count every kind of transition by its chart.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        ``chart`` (null if a log names none), ``from_state``, ``to_state``, ``trigger`` and
        ``count``, with ``run`` first if there are several.
    """
    keys = ["chart", "from_state", "to_state", "trigger"]
    return logs.labelled(count_transitions(logs, keys).sort("run", *keys))


def states_met(logs: RunLogs) -> pl.DataFrame:
    """List the states of agents in the order in which they appear in the log.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        ``state`` and ``began``, the number of agents that joined in it, with ``run`` first if there
        are several.
    """
    merger = TableMerger(_met)

    for frame in logs.blocks(AGENT_JOINED, TRANSITION, columns=("state", "from_state", "to_state")):
        place, began = pl.col("line").cast(pl.Int64) * 2, pl.col("event") == AGENT_JOINED
        first = frame.select(
            "run",
            state=pl.when(began).then("state").otherwise("from_state"),
            place=place,
            began=began.cast(pl.Int64),
        )
        then = frame.select("run", state="to_state", place=place + 1, began=pl.lit(0, pl.Int64))
        merger.add(_met(pl.concat([first, then]).drop_nulls("state")))

    return logs.labelled(merger.table().sort("run", "place").drop("place"))


def _met(states: pl.DataFrame) -> pl.DataFrame:
    return states.group_by("run", "state").agg(pl.col("place").min(), pl.col("began").sum())


def step_counts(logs: RunLogs) -> pl.DataFrame:
    """Count how often each step of a workflow ran, and what it took.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each step, in the order in which they first ran: ``step``, ``type``, ``done``,
        ``skipped`` and ``failed`` (how often it ended so), ``seconds``, ``input_tokens`` and
        ``output_tokens`` (together; null where none are known); with ``run`` first if there are
        several.
    """
    merger = TableMerger(_added_up)
    outcomes = [(pl.col("outcome") == name).cast(pl.Int64).alias(name) for name in _OUTCOMES]

    for frame in logs.blocks(WORKFLOW_STEP, columns=OF_STEPS):
        place = pl.col("line").cast(pl.Int64).alias("place")
        merger.add(_added_up(frame.select(*_STEP, place, *outcomes, *_SPENT)))

    return logs.labelled(merger.table().sort("run", "place").drop("place"))


def _added_up(steps: pl.DataFrame) -> pl.DataFrame:
    spent = [pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()) for name in _SPENT]
    return steps.group_by(_STEP).agg(pl.col("place").min(), pl.col(*_OUTCOMES).sum(), *spent)


def cycle_counts(logs: RunLogs) -> pl.DataFrame:
    """Count how the cycles of thinking agents ended, and what they took.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each state, in the order in which they were first in a cycle: ``state``,
        ``done``, ``refused``, ``unusable`` and ``failed`` (how often a cycle ended so),
        ``largest_prompt`` (tokens, by the agent's own count), ``input_tokens`` and
        ``output_tokens`` (together; null where none are known); with ``run`` first if there are
        several.
    """
    merger = TableMerger(_cycles_added_up)
    outcomes = [(pl.col("outcome") == name).cast(pl.Int64).alias(name) for name in _OF_CYCLE]

    for frame in logs.blocks(COGNITION_CYCLE, columns=OF_CYCLES):
        place = pl.col("line").cast(pl.Int64).alias("place")
        largest = pl.col("prompt_tokens").alias("largest_prompt")
        merger.add(
            _cycles_added_up(frame.select("run", "state", place, *outcomes, largest, *_TOKENS))
        )

    return logs.labelled(merger.table().sort("run", "place").drop("place"))


def _cycles_added_up(cycles: pl.DataFrame) -> pl.DataFrame:
    spent = [pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()) for name in _TOKENS]
    return cycles.group_by("run", "state").agg(
        pl.col("place").min(), pl.col(*_OF_CYCLE).sum(), pl.col("largest_prompt").max(), *spent
    )


def agent_table(logs: RunLogs) -> pl.DataFrame:
    """Describe each agent: its name, its last state, and what it did.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each agent: ``agent_id``, ``name``, ``archetype``, ``chart`` (if agents of a
        world have several), its own attributes, ``state`` (its last), ``transitions``,
        ``decisions``, and the counts of `prism.analysis.activity`, with ``run`` first if there are
        several; what only feeds have is left out if there are none.
    """
    table = logs.labelled(described_agents(logs, ("display_name", "archetype")))
    table = table.rename({"display_name": "name"}).drop("weighed", "fallbacks", strict=False)
    if "chart" in table.columns and table["chart"].n_unique() == 1:
        table = table.drop("chart")

    return table


def posts_below(logs: RunLogs, roots: Collection[str]) -> pl.DataFrame:
    """Return the posts of some cascades.

    Args:
        logs: The logs, from `read_log`.
        roots: Ids of their roots.

    Returns:
        ``post_id``, ``parent_id``, ``root_id``, ``kind``, ``agent_id`` and ``text``, in the order
        of the logs, each post once, with ``run`` first if there are several.
    """
    wanted, post = list(roots), pl.col("post_id")
    is_below = pl.coalesce("root_id", "parent_id", "post_id").is_in(wanted) | post.is_in(wanted)
    found = [
        frame.filter(is_below).select("run", *_POST)
        for frame in logs.blocks(POST_PUBLISHED, columns=_POST)
    ]
    posts = pl.concat(found).unique(["run", "post_id"], keep="first", maintain_order=True)

    return logs.labelled(posts.drop_nulls("post_id"))


MISSING = "missing"
"""Kind of a post that others name but the log lacks."""


@dataclass(frozen=True, slots=True)
class TreePost:
    """One post of a cascade.

    Args:
        post_id: Its id.
        parent_id: The post it replies to or reshares; None for the root.
        kind: ``post``, ``reply``, ``reshare`` or ``missing``.
        agent_id: Its author.
        text: Its text.
    """

    post_id: str
    parent_id: str | None
    kind: str
    agent_id: str
    text: str


def grow(root_id: str, posts: pl.DataFrame) -> tuple[TreePost, ...]:
    """Build the tree of a cascade as `prism.analysis.cascades` does: lost posts go below the root.

    Args:
        root_id: Its root.
        posts: ``post_id``, ``parent_id``, ``root_id``, ``kind``, ``agent_id`` and ``text`` of its
            posts, and perhaps other posts.

    Returns:
        Its posts, the root first, the others in the order of the log, each with a parent among
        them.
    """
    is_below = pl.coalesce("root_id", "parent_id", "post_id") == root_id
    own = posts.filter(is_below | (pl.col("post_id") == root_id))
    texts = own.select("post_id", "parent_id", pl.col("kind", "agent_id", "text").fill_null(""))
    found = {row[0]: TreePost(*row) for row in texts.iter_rows()}

    root = found.pop(root_id, TreePost(root_id, None, MISSING, "", ""))
    named = dict.fromkeys(post.parent_id for post in found.values() if post.parent_id is not None)
    lost = [
        TreePost(name, root_id, MISSING, "", "")
        for name in named
        if name != root_id and name not in found
    ]

    return replace(root, parent_id=None), *_below_root(root_id, [*lost, *found.values()])


def _below_root(root_id: str, posts: list[TreePost]) -> list[TreePost]:
    """Put posts without a parent, and those that form a circle, directly below the root."""
    places = {post.post_id: place for place, post in enumerate(posts, start=1)} | {root_id: 0}
    parents = [None, *(places.get(post.parent_id or root_id) for post in posts)]
    depths, _, _ = tree_shape(parents)

    return [
        replace(post, parent_id=root_id) if parent is None or depth == 0 else post
        for post, parent, depth in zip(posts, parents[1:], depths[1:], strict=True)
    ]
