"""How much every agent takes part, and how unequally."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import merge_by_first, merge_by_sum
from prism.telemetry.events import POST_LIKED, POST_PUBLISHED

_GIVEN = ("posts", "replies", "reshares", "likes")
_RECEIVED = ("replies_received", "reshares_received", "likes_received")
_KINDS = {"post": "posts", "reply": "replies", "reshare": "reshares"}
_COLUMNS = ("agent_id", "round", "tick", "post_id", "kind", "parent_id", "author_id")


def activity(logs: RunLogs) -> pl.DataFrame:
    """Count what every agent gave and got.

    What was posted before the first round of a simulation is not counted, but what others made of
    it is.

    Args:
        logs: What `read_log` gave.

    Returns:
        One row for each agent of the log, also those that did nothing, by name: ``agent_id``,
        ``posts``, ``replies``, ``reshares``, ``likes``, ``replies_received``, ``reshares_received``
        and ``likes_received``. With ``run`` first if there are several.
    """
    return logs.labelled(_activity(logs))


def engagement(logs: RunLogs) -> pl.DataFrame:
    """Measure how unequally posts, replies, reshares and likes are spread over the agents.

    The rule of thumb for such sites is 90-9-1: of a hundred members ninety give nothing, nine a
    little, one most (Nielsen 2006, Participation Inequality). Counted are all agents, as in
    `activity`.

    Args:
        logs: What `read_log` gave.

    Returns:
        One row for each measure: ``measure`` (``given`` or ``received``), ``what`` (``posts``,
        ``replies``, ``reshares``, ``likes`` or ``all``), ``agents``, ``active`` (share of the
        agents with at least one, 0 to 1), ``total``, ``mean`` (per agent), ``gini`` (see `gini`),
        ``top_1_percent`` and ``top_10_percent`` (share of the total that falls to the 1 % and 10 %
        with the most; see `top_share`). With ``run`` first if there are several.
    """
    rows = [
        {"run": run, "measure": measure, "what": what, **_describe(counts)}
        for (run,), agents in _activity(logs).group_by("run", maintain_order=True)
        for measure, names in (("given", _GIVEN), ("received", _RECEIVED))
        for what, counts in _measures(agents, names)
    ]
    return logs.labelled(pl.DataFrame(rows, schema=_SCHEMA))


_SCHEMA = {
    **{
        "run": pl.UInt32(),
        "measure": pl.String(),
        "what": pl.String(),
        "agents": pl.Int64(),
        "active": pl.Float64(),
    },
    **{"total": pl.Int64(), "mean": pl.Float64(), "gini": pl.Float64()},
    **{"top_1_percent": pl.Float64(), "top_10_percent": pl.Float64()},
}


def gini(counts: pl.Series) -> float | None:
    """Return the Gini coefficient of numbers: half the mean difference of two of them, divided by the mean.

    Of n sorted numbers x it is sum((2 i - n - 1) x_i) / (n sum(x)), i = 1 ... n (Gini 1912; Sen
    1973, On Economic Inequality).

    Args:
        counts: One number for each agent, 0 or more, of any numeric type.

    Returns:
        0 if all are equal, (n - 1) / n if one has everything; None if nobody has anything.
    """
    numbers, size = counts.cast(pl.Float64), counts.len()
    total = float(numbers.sum())
    if not total:
        return None

    ranks = 2 * pl.int_range(1, size + 1, eager=True) - size - 1

    return float((ranks * numbers.sort()).sum()) / (size * total)


def top_share(counts: pl.Series, share: float) -> float | None:
    """Return the share of the total that falls to those with the most: a point of the Lorenz curve.

    Where the share of the agents is no whole number of them, the last agent counts in part (the
    curve is interpolated).

    Args:
        counts: One number for each agent, 0 or more, of any numeric type.
        share: Share of the agents, 0 to 1.

    Returns:
        0 to 1; None if nobody has anything.
    """
    highest = counts.cast(pl.Float64).sort(descending=True)
    total = float(highest.sum())
    if not total:
        return None

    wanted = share * counts.len()
    whole = int(wanted)
    part = (wanted - whole) * highest[whole] if whole < counts.len() else 0.0

    return (float(highest.head(whole).sum()) + part) / total


def _measures(agents: pl.DataFrame, names: tuple[str, ...]) -> Iterator[tuple[str, pl.Series]]:
    for name in names:
        yield name.removesuffix("_received"), agents[name]

    yield "all", agents.select(pl.sum_horizontal(names)).to_series()


def _describe(counts: pl.Series) -> dict[str, float | None]:
    return {
        "agents": counts.len(),
        "active": (counts > 0).mean(),  # type: ignore[dict-item]
        "total": int(counts.sum()),
        "mean": counts.mean(),  # type: ignore[dict-item]
        "gini": gini(counts),
        "top_1_percent": top_share(counts, 0.01),
        "top_10_percent": top_share(counts, 0.1),
    }


def _activity(logs: RunLogs) -> pl.DataFrame:
    agents, authors = merge_by_first(["run", "agent_id"]), merge_by_first(["run", "post_id"])
    given, received = (
        merge_by_sum(["run", "agent_id", "what", "is_early"]),
        merge_by_sum(["run", "post_id", "what"]),
    )
    for frame in logs.blocks(columns=_COLUMNS):
        agents.add(frame.select("run", "agent_id").drop_nulls().unique())
        acts = _acts(frame)
        authors.add(
            acts.select("run", "post_id", "author_id").drop_nulls().unique(["run", "post_id"])
        )
        given.add(_counted(acts, "agent_id", "is_early"))
        received.add(_counted(acts.select("run", "what", post_id="about"), "post_id"))

    started = [number for number, run in enumerate(logs.runs) if run.started]
    counted = given.table().filter(~(pl.col("is_early") & pl.col("run").is_in(started)))
    got = received.table().join(authors.table(), on=["run", "post_id"])
    table = agents.table().join(_spread(counted, _GIVEN), on=["run", "agent_id"], how="left")
    got = _spread(
        got.rename({"author_id": "agent_id"}).with_columns(pl.col("what") + "_received"), _RECEIVED
    )
    table = table.join(got, on=["run", "agent_id"], how="left")

    return table.with_columns(pl.col(*_GIVEN, *_RECEIVED).fill_null(0)).sort("run", "agent_id")


def _acts(frame: pl.DataFrame) -> pl.DataFrame:
    """Return what agents did, what it was ``about`` (a post), and the author of ``post_id``."""
    is_like = pl.col("event") == POST_LIKED
    acts = frame.filter(pl.col("event").is_in([POST_PUBLISHED, POST_LIKED]))
    return acts.select(
        *("run", "agent_id", "post_id"),
        author_id=pl.when(is_like).then("author_id").otherwise("agent_id"),
        what=pl.when(is_like)
        .then(pl.lit("likes"))
        .otherwise(pl.col("kind").replace_strict(_KINDS, default=None)),
        about=pl.when(is_like).then("post_id").otherwise("parent_id"),
        is_early=((pl.col("round") == 0) & (pl.col("tick") == 0)).fill_null(value=False),
    )


def _counted(acts: pl.DataFrame, *keys: str) -> pl.DataFrame:
    keys = ("run", "what", *keys)
    return acts.drop_nulls(keys).group_by(keys).agg(count=pl.len().cast(pl.Int64))


def _spread(counts: pl.DataFrame, names: tuple[str, ...]) -> pl.DataFrame:
    """Put the counts of each agent side by side."""
    count = pl.col("count")
    return counts.group_by("run", "agent_id").agg(
        count.filter(pl.col("what") == name).sum().alias(name) for name in names
    )
