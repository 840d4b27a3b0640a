"""Which posts agents opened, how these views ended, and how far posts reached."""

from __future__ import annotations

from typing import Literal

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import COUNT, merge_by_sum
from prism.analysis._tables.engagement import remark_no_feed
from prism.analysis._tables.happened import IN_ALL, Happened, and_in_all, what_happened
from prism.analysis._tables.treated import with_arms
from prism.errors import FieldValueError
from prism.statechart import AgentState
from prism.statechart._definition import TIMEOUT
from prism.statechart.social import DECIDES, IGNORES, ROUND_ENDS, SEES_POST
from prism.telemetry.events import ANSWER_DISCARDED, DECISION, TRANSITION

Whom = Literal["posts", "cascades", "agents"]

_EVALUATING = AgentState.EVALUATING.value
_AGENT = ["run", "agent_id"]
_STEPS_AT_ONCE = 100_000
_READ = ("round", "agent_id", "trigger", "from_state", "state", "asked_in")
_OUTCOMES = ("decided", "ignored", "timed_out", "cut", "discarded", "other", "pending")
_WAYS = {DECIDES: "decided", IGNORES: "ignored", TIMEOUT: "timed_out", ROUND_ENDS: "cut"}


def views(logs: RunLogs) -> pl.DataFrame:
    """Count the views of posts by how they ended, by round and overall.

    A view begins when an agent opens a post (``sees_post``). It ends in one of these ways, whose
    counts sum exactly to the views: the agent carries out a decision; it ignores the post, because
    it has no other option; it times out; the end of the round cuts the view short; it leaves in
    another way after its answer no longer applied and was discarded; it leaves in another way
    without such an answer; or the log ends first.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        A row for each round, and a last one for all rounds, whose ``round`` is null: ``views``;
        ``decided``, ``ignored``, ``timed_out``, ``cut``, ``discarded``, ``other`` and ``pending``;
        ``decisions``, the answers given during these views, and how many of them were
        ``answers_discarded``. Unless a view is ``pending`` in the middle of a tick, ``decisions``
        minus ``answers_discarded`` is ``decided``. A view counts in the round in which the post was
        opened. If there are several runs, ``run`` is the first column. Worlds without posts have no
        rows.
    """
    counts = _outcomes(logs)
    remark_no_feed(logs, counts["run"])
    table = and_in_all(counts).group_by(IN_ALL).agg(pl.exclude(IN_ALL).sum())

    return logs.labelled(table.sort(IN_ALL, nulls_last=True))


def reach(logs: RunLogs, *, of: Whom = "cascades", by_round: bool = False) -> pl.DataFrame:
    """Measure how far posts or cascades reached, or what agents were exposed to.

    Args:
        logs: The logs, from `read_log`.
        of: ``posts``, ``cascades`` (a post and everything that replies to it or reshares it,
            directly or not) or ``agents``.
        by_round: Whether to add rows for the views of each round, before those of all rounds.

    Returns:
        For posts and cascades, a row for each, including those that nobody opened, in the order of
        the log: ``post_id`` or ``root_id``; ``author_id``; ``kind`` of a post, or ``size`` of a
        cascade (posts); ``round`` of the post, or of the root; ``views`` (how often it, or a post
        of it, was opened); ``readers`` (different agents who opened it); and ``share`` (of all
        agents, 0 to 1).

        For agents, a row for each, by name: ``agent_id``; ``views`` (how often it opened a post);
        ``posts``, ``authors`` and ``cascades`` (different ones that it opened); ``received`` (views
        of its own posts); ``readers`` (different agents who opened one of them) and ``share`` (of
        all agents).

        With ``by_round``, ``round`` comes first and is null in the rows for all rounds. A round has
        rows only for what was opened in it, and for agents who opened something or were read. The
        round of the post is then called ``published``.

        If posts or agents were assigned to the arms of an experiment, ``arm`` follows the id; for a
        cascade, it is that of its root. If there are several runs, ``run`` is the first column.
        Worlds without posts have no rows.

    Raises:
        FieldValueError: If there is no such kind.
    """
    happened = what_happened(logs, "posts", "views")
    remark_no_feed(logs, happened.tables["posts"]["run"])
    if of == "agents":
        exposure = _exposure(happened)
        return logs.labelled(with_arms(logs, exposure if by_round else _in_all(exposure)))
    if of not in ("posts", "cascades"):
        raise FieldValueError(f"reach is measured of posts, cascades or agents, not {of!r}")

    item = "post_id" if of == "posts" else "root_id"

    found = _reach_of(happened, item)
    table = found if by_round else _in_all(found).rename({"published": "round"})

    return logs.labelled(with_arms(logs, table, item))


def _outcomes(logs: RunLogs) -> pl.DataFrame:
    """Count how the views of each round ended, by number of run."""
    trigger = pl.col("trigger")
    is_view, is_exit = trigger == SEES_POST, pl.col("from_state") == _EVALUATING
    is_decision = (pl.col("event") == DECISION) & (pl.col("state") == _EVALUATING)
    is_discarded = (pl.col("event") == ANSWER_DISCARDED) & (pl.col("asked_in") == _EVALUATING)
    is_transition = pl.col("event") == TRANSITION
    happens = pl.any_horizontal("view", pl.col("way").is_not_null()) | (
        pl.col("decisions") + pl.col("answers_discarded") > 0
    )

    looks = _Looks()
    for frame in logs.blocks(TRANSITION, DECISION, ANSWER_DISCARDED, columns=_READ):
        step = frame.select(
            *_AGENT,
            "round",
            view=(is_transition & is_view).fill_null(value=False),
            way=pl.when(is_transition & is_exit).then(
                trigger.replace_strict(_WAYS, default="other")
            ),
            decisions=is_decision.cast(pl.Int64),
            answers_discarded=is_discarded.cast(pl.Int64),
        )
        looks.take(step.filter(happens.fill_null(value=False)))

    return looks.counts()


class _Looks:
    """Follows the views of every agent through a log, and counts those that are over.

    Only the last view of each agent and the steps of some blocks are in memory.
    """

    def __init__(self) -> None:
        self._counts = merge_by_sum(IN_ALL)
        self._open: pl.DataFrame | None = None
        self._waiting: list[pl.DataFrame] = []
        self._rows = 0

    def take(self, steps: pl.DataFrame) -> None:
        """Add the steps of the next block, in the order of the log."""
        self._waiting.append(steps)
        self._rows += steps.height

        # wait for as many steps as there are open views, so that revisiting these stays linear
        if self._rows > max(_STEPS_AT_ONCE, 0 if self._open is None else self._open.height):
            self._settle(is_end=False)

    def counts(self) -> pl.DataFrame:
        """Return the counts by run and round, after the last block."""
        self._settle(is_end=True)
        return self._counts.table()

    def _settle(self, *, is_end: bool) -> None:
        parts = self._waiting if self._open is None else [self._open, *self._waiting]
        steps = pl.concat(parts)
        numbered = steps.with_columns(number=pl.col("view").cum_sum().over(_AGENT))
        of_views = numbered.filter(pl.col("number") > 0)  # the log may begin during a view
        is_last = (pl.col("number") == pl.col("number").max().over(_AGENT)) & (not is_end)

        self._open = of_views.filter(is_last).select(steps.columns)
        self._counts.add(_counted(of_views.filter(~is_last)))
        self._waiting, self._rows = [], 0


def _counted(steps: pl.DataFrame) -> pl.DataFrame:
    """Count views by run and round, from the numbered steps of their agents."""
    views = steps.group_by([*_AGENT, "number"], maintain_order=True).agg(
        pl.col("round").first(),
        pl.col("way").drop_nulls().first(),
        pl.col("decisions", "answers_discarded").sum(),
    )
    is_after_discard = (pl.col("way") == "other") & (pl.col("answers_discarded") > 0)
    found = pl.when(is_after_discard).then(pl.lit("discarded")).otherwise("way")
    way = found.fill_null("pending")

    return views.group_by(IN_ALL).agg(
        COUNT.alias("views"),
        *((way == name).sum().cast(pl.Int64).alias(name) for name in _OUTCOMES),
        pl.col("decisions", "answers_discarded").sum(),
    )


def _with_root(happened: Happened) -> pl.DataFrame:
    root_id = pl.coalesce("root_id", "parent_id", "post_id")
    return happened.tables["posts"].with_columns(root_id=root_id, author_id="agent_id")


def _in_all(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of all rounds."""
    return table.filter(pl.col("round").is_null()).drop("round")


def _reach_of(happened: Happened, item: str) -> pl.DataFrame:
    posts = _with_root(happened).unique(["run", "post_id"], keep="first", maintain_order=True)
    key = ["run", item]
    size = COUNT.over(key)
    own = posts.with_columns(size=size).filter(pl.col("post_id") == pl.col(item))
    shown = ("author_id", "kind" if item == "post_id" else "size")
    described = own.select(*key, *shown, published="round").with_row_index("place")

    places = posts.select("run", "post_id", pl.col(item).alias("item"))
    views = happened.tables["views"].select(*IN_ALL, "post_id", reader_id="agent_id")
    opened = and_in_all(views).join(places, on=["run", "post_id"])
    seen = opened.group_by(*IN_ALL, pl.col("item").alias(item)).agg(
        views=COUNT, readers=pl.col("reader_id").n_unique().cast(pl.Int64)
    )
    # for all rounds, include posts that nobody opened
    nothing = described.select(*key, pl.lit(None, pl.Int64).alias("round"))
    keys = pl.concat([nothing, seen.drop_nulls("round").select(nothing.columns)])
    table = keys.join(described, on=key).join(
        seen, on=[*IN_ALL, item], how="left", nulls_equal=True
    )
    counted = table.with_columns(pl.col("views", "readers").fill_null(0))
    ordered = counted.sort(*IN_ALL, "place", nulls_last=True)

    return _with_share(
        ordered.select(*IN_ALL, item, *shown, "published", "views", "readers"), happened
    )


def _exposure(happened: Happened) -> pl.DataFrame:
    posts = _with_root(happened).select("run", "post_id", "root_id", "author_id")
    views = and_in_all(happened.tables["views"].select(*IN_ALL, "agent_id", "post_id"))
    opened = views.join(posts, on=["run", "post_id"], how="left")
    different = {"posts": "post_id", "authors": "author_id", "cascades": "root_id"}
    by_agent = [*IN_ALL, "agent_id"]
    seen = opened.group_by(by_agent).agg(
        COUNT.alias("views"),
        *(
            pl.col(key).drop_nulls().n_unique().cast(pl.Int64).alias(name)
            for name, key in different.items()
        ),
    )
    received = opened.group_by(*IN_ALL, agent_id="author_id").agg(
        received=COUNT, readers=pl.col("agent_id").n_unique().cast(pl.Int64)
    )
    with_posts = happened.agents.join(happened.tables["posts"], on="run", how="semi")
    every = with_posts.select("run", pl.lit(None, pl.Int64).alias("round"), "agent_id")
    in_rounds = [part.drop_nulls(by_agent).select(by_agent) for part in (seen, received)]
    table = pl.concat([every, *in_rounds]).unique()
    for part in (seen, received):
        table = table.join(part, on=by_agent, how="left", nulls_equal=True)

    counts = ("views", *different, "received", "readers")
    counted = table.select(*by_agent, pl.col(counts).fill_null(0))

    return _with_share(counted.sort(by_agent, nulls_last=True), happened)


def _with_share(table: pl.DataFrame, happened: Happened) -> pl.DataFrame:
    agents = happened.agents.group_by("run").agg(agents=pl.len())
    joined = table.join(agents, on="run", how="left", maintain_order="left")
    return joined.with_columns(share=pl.col("readers") / pl.col("agents")).drop("agents")
