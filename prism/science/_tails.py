"""Tails of distributions: whether a few are as large as a power law says."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict, dataclass, fields
from io import StringIO
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any

from prism.errors import FieldValueError
from prism.science._libraries import library

if TYPE_CHECKING:
    import polars as pl

    from prism.analysis import RunLogs

LEAST_IN_TAIL = 50
"""Fewer values in the tail say too little of its form (Clauset, Shalizi and Newman 2009, 3.3)."""


@dataclass(frozen=True, slots=True)
class Tail:
    """How the largest of some numbers are distributed.

    Args:
        values: How many numbers there are above 0.
        largest: The largest of them.
        xmin: Where the tail begins.
        in_tail: How many are in it.
        exponent: The exponent alpha of the power law p(x) ~ x^-alpha.
        exponent_se: Its standard error.
        ks: Kolmogorov's distance of the tail from the power law, 0 to 1.
        lognormal: The likelihood ratio against a lognormal, normalized: above 0 where the power law
            is the better one.
        lognormal_p: Two-sided p-value of that: above .1 neither of them is better.
        exponential: The same against an exponential.
        exponential_p: Two-sided p-value of that.
        verdict: ``power law`` if it is better than an exponential and not worse than a lognormal
            (at p = .1), ``lognormal`` or ``exponential`` if that is better than it, ``undecided``,
            or ``too little data``.
    """

    values: int
    largest: int | None = None
    xmin: int | None = None
    in_tail: int | None = None
    exponent: float | None = None
    exponent_se: float | None = None
    ks: float | None = None
    lognormal: float | None = None
    lognormal_p: float | None = None
    exponential: float | None = None
    exponential_p: float | None = None
    verdict: str = "too little data"


def fit_tail(values: Sequence[int]) -> Tail:
    """Fit a power law to the tail of some whole numbers, and compare it with other distributions.

    The exponent is that of the greatest likelihood, and the tail begins where the power law fits
    best by Kolmogorov's distance (Clauset, Shalizi and Newman 2009, SIAM Review 51(4)); the
    likelihood ratios are those of Vuong (1989, Econometrica 57(2)), by the package powerlaw
    (Alstott, Bullmore and Plenz 2014, PLoS ONE 9(1)).

    Args:
        values: Sizes or counts; those of 0 are left out.

    Returns:
        The fit; without numbers and with the verdict ``too little data`` where fewer than 50
        numbers, or fewer than three different ones, are in the tail.

    Raises:
        FieldValueError: If a number is below 0.
        MissingExtraError: If powerlaw is not installed, which the extra ``science`` brings.
    """
    powerlaw = library("powerlaw")
    if any(value < 0 for value in values):
        raise FieldValueError(f"values must be 0 or more, got {min(values)}")

    above = [int(value) for value in values if value > 0]
    known = Tail(len(above), max(above, default=None))
    if len(above) < LEAST_IN_TAIL or len(set(above)) < _LEAST_DIFFERENT:
        return known

    with _quiet():
        fit = powerlaw.Fit(above, discrete=True, estimate_discrete=False, verbose=False)
        tail = [value for value in above if value >= fit.xmin]
        if len(tail) < LEAST_IN_TAIL or len(set(tail)) < _LEAST_DIFFERENT:
            return Tail(known.values, known.largest, int(fit.xmin), len(tail))

        exponent, distance = float(fit.power_law.alpha), _number(fit.power_law.D)
        against = {
            name: fit.distribution_compare("power_law", name, normalized_ratio=True)
            for name in ("lognormal", "exponential")
        }

    ratios = {
        key: _number(number)
        for name, (ratio, p) in against.items()
        for key, number in ((name, ratio), (f"{name}_p", p))
    }

    return Tail(
        known.values,
        known.largest,
        int(fit.xmin),
        len(tail),
        _number(exponent),
        # their formula 3.2; the package has moved its own
        _number((exponent - 1) / sqrt(len(tail))),
        distance,
        **ratios,
        verdict=_verdict(**ratios),
    )


def tails(logs: RunLogs) -> pl.DataFrame:
    """Describe the tails of the distributions of a run.

    Args:
        logs: The logs, from `prism.analysis.read_log`.

    Returns:
        A row for each run and ``what``: sizes of ``cascades``; sizes of ``reshares`` (trees of
        reshares alone); what each agent has ``written`` (posts, replies and reshares); ``likes``
        that each post got; ``views`` of each post; and ``reactions``, the number of different
        agents who replied to, reshared or liked an agent's posts, which is its degree in the
        network of interactions. Then the fields of `Tail`. With ``run`` first if there are
        several. Nothing of worlds without posts.

    Raises:
        MissingExtraError: If powerlaw or polars is not installed, which the extra ``science``
            brings.
    """
    import polars as pl

    from prism.analysis._tables.happened import what_happened

    library("powerlaw")
    happened = what_happened(logs, "posts", "likes", "views")
    counts = _distributions(happened)
    rows = [
        {"run": run, "what": what, **asdict(fit_tail(table.filter(run=run)["count"].to_list()))}
        for run in happened.tables["posts"]["run"].unique().sort()
        for what, table in counts.items()
    ]
    kinds = {"str": pl.String(), "int": pl.Int64(), "float": pl.Float64()}
    schema = {each.name: kinds[str(each.type).split(" ")[0]] for each in fields(Tail)}

    return logs.labelled(
        pl.DataFrame(rows, schema={"run": pl.UInt32(), "what": pl.String(), **schema})
    )


_LEAST_DIFFERENT = 3
_DECIDED = 0.1


def _distributions(happened: Any) -> dict[str, pl.DataFrame]:
    import polars as pl

    from prism.analysis._tables.cascades import reshare_trees, trees
    from prism.analysis._tables.happened import acts

    posts, likes = happened.tables["posts"], happened.counting("likes")
    done = acts(happened)
    written = done.filter(pl.col("what") != "likes")
    authors = posts.select("run", "post_id", author_id="agent_id")
    answers = posts.select("run", "agent_id", post_id="parent_id").drop_nulls()
    reacted = pl.concat([answers, likes.select(answers.columns)]).join(
        authors, on=["run", "post_id"]
    )
    others = reacted.filter(pl.col("agent_id") != pl.col("author_id"))
    size = pl.col("size").alias("count")

    return {
        "cascades": trees(posts).select("run", size),
        "reshares": reshare_trees(posts).select("run", size),
        "written": written.group_by("run", "agent_id").agg(count=pl.len()),
        "likes": likes.group_by("run", "post_id").agg(count=pl.len()),
        "views": happened.tables["views"].group_by("run", "post_id").agg(count=pl.len()),
        "reactions": others.group_by("run", "author_id").agg(count=pl.col("agent_id").n_unique()),
    }


def _verdict(
    lognormal: float | None,
    lognormal_p: float | None,
    exponential: float | None,
    exponential_p: float | None,
) -> str:
    rivals = {"lognormal": (lognormal, lognormal_p), "exponential": (exponential, exponential_p)}
    better = [
        (ratio, name)
        for name, (ratio, p) in rivals.items()
        if ratio is not None and p is not None and ratio < 0 and p < _DECIDED
    ]
    if better:
        return min(better)[1]

    is_heavy = exponential is not None and exponential > 0
    is_sure = exponential_p is not None and exponential_p < _DECIDED

    return "power law" if is_heavy and is_sure else "undecided"


def _number(value: Any) -> float | None:
    return float(value) if isfinite(value) else None


@contextmanager
def _quiet() -> Iterator[None]:
    # it prints its progress, and warns where a lognormal is as good as its own limit
    with warnings.catch_warnings(), redirect_stdout(StringIO()):
        warnings.simplefilter("ignore")
        yield
