"""Tails of distributions: whether they follow a power law."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict, dataclass, replace
from io import StringIO
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any

import polars as pl

from prism.errors import FieldValueError
from prism.science._arrays import columns_of
from prism.science._libraries import library

if TYPE_CHECKING:
    from prism.analysis import RunLogs

LEAST_IN_TAIL = 50
"""Fewest values in a tail that determine its form (Clauset, Shalizi and Newman 2009, 3.3)."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The tail of a distribution of whole numbers.

    Args:
        values: Number of values above 0.
        largest: The largest of them.
        xmin: Where the tail begins.
        in_tail: Number of values in the tail.
        exponent: The exponent alpha of the power law p(x) ~ x^-alpha.
        exponent_se: Its standard error.
        ks: Kolmogorov's distance of the tail from the power law, 0 to 1.
        ks_p: Share of bootstrap samples of the power law that are at least as far from their own
            fits. At .1 or below, the power law is ruled out. None without a bootstrap.
        lognormal: The normalized likelihood ratio against a lognormal, above 0 if the power law
            fits better.
        lognormal_p: Its two-sided p-value. Above .1, neither of them fits better.
        exponential: The normalized likelihood ratio against an exponential.
        exponential_p: Its two-sided p-value.
        verdict: ``power law`` if it is better than an exponential and not worse than a lognormal
            (at p = .1) and ``ks_p`` does not rule it out, ``lognormal`` or ``exponential`` if that
            fits better, ``undecided``, or ``too little data``.
    """

    values: int
    largest: int | None = None
    xmin: int | None = None
    in_tail: int | None = None
    exponent: float | None = None
    exponent_se: float | None = None
    ks: float | None = None
    ks_p: float | None = None
    lognormal: float | None = None
    lognormal_p: float | None = None
    exponential: float | None = None
    exponential_p: float | None = None
    verdict: str = "too little data"


def fit_tail(values: Sequence[int], *, bootstrap: int = 0, seed: int = 0) -> Tail:
    """Fit a power law to the tail of some whole numbers, and compare it with other distributions.

    The exponent maximises the likelihood, and the tail begins where the power law fits best by
    Kolmogorov's distance (Clauset, Shalizi and Newman 2009, SIAM Review 51(4)); the likelihood
    ratios are those of Vuong (1989, Econometrica 57(2)), by the package powerlaw (Alstott, Bullmore
    and Plenz 2014, PLoS ONE 9(1)). The bootstrap draws the same number of values, those of the tail
    from the power law and the others from the values below it, and fits them again (Clauset,
    Shalizi and Newman 2009, section 4.1). With 2,500 samples, the p-value is within .01 of the true
    one.

    Args:
        values: Sizes or counts; zeros are left out.
        bootstrap: Number of bootstrap samples, each of which takes as long as the fit; 0 for none.
        seed: Seed of their random numbers.

    Returns:
        The fit. If fewer than 50 values, or fewer than three different ones, are in the tail, it
        has no numbers and the verdict ``too little data``.

    Raises:
        FieldValueError: If a value, or the number of samples, is below 0.
        MissingExtraError: If powerlaw is not installed, which the extra ``science`` brings.
    """
    if min(values, default=0) < 0:
        raise FieldValueError(f"values must be 0 or more, got {min(values)}")
    if bootstrap < 0:
        raise FieldValueError(f"bootstrap must be 0 or more, got {bootstrap}")
    library("powerlaw")

    above = [int(value) for value in values if value > 0]
    known = Tail(len(above), max(above, default=None))
    if _is_too_little(above):
        return known

    with _quiet():
        fit = _fitted(above)
        if not isfinite(fit.xmin):
            return known

        tail = [value for value in above if value >= fit.xmin]
        known = replace(known, xmin=int(fit.xmin), in_tail=len(tail))
        return known if _is_too_little(tail) else _judged(known, fit, above, bootstrap, seed)


def _is_too_little(values: Sequence[int]) -> bool:
    return len(values) < LEAST_IN_TAIL or len(set(values)) < _LEAST_DIFFERENT


def _judged(known: Tail, fit: Any, values: Sequence[int], bootstrap: int, seed: int) -> Tail:
    """Return a tail with its fit and its comparisons with other distributions."""
    exponent, distance = float(fit.power_law.alpha), float(fit.power_law.D)
    ratios: dict[str, Any] = {}
    for name in ("lognormal", "exponential"):
        compared = fit.distribution_compare("power_law", name, normalized_ratio=True)
        ratios[name], ratios[f"{name}_p"] = map(_number, compared)

    found = replace(
        known,
        exponent=_number(exponent),
        # their formula 3.2; the package uses a shifted one
        exponent_se=_number((exponent - 1) / sqrt(known.in_tail or 0)),
        ks=_number(distance),
        ks_p=_bootstrapped(values, exponent, int(fit.xmin), distance, bootstrap, seed),
        **ratios,
    )
    return replace(found, verdict=_verdict(found))


def tails(
    logs: RunLogs, *, by_round: bool = False, bootstrap: int = 0, seed: int = 0
) -> pl.DataFrame:
    """Describe the tails of the distributions of a run.

    Args:
        logs: The logs, from `prism.analysis.read_log`.
        by_round: Whether to add rows for each round, before those of all rounds, of what happened
            in it; a cascade belongs to the round of its root.
        bootstrap: As for `fit_tail`.
        seed: As for `fit_tail`.

    Returns:
        A row for each run and ``what``: sizes of ``cascades``; sizes of ``reshares`` (trees of
        reshares alone); the number of posts, replies and reshares ``written`` by each agent;
        ``likes`` of each post; ``views`` of each post; ``reactions``, the number of different
        agents who replied to, reshared or liked an agent's posts, which is its degree in the
        network of interactions; and, over all rounds, ``followers`` of each agent, if the log says
        who follows whom (the feed's parameter ``logs_follows``). The fields of `Tail` follow.
        ``run`` comes first if there are several runs, and ``round`` with ``by_round`` (null for all
        rounds). There are no rows for worlds without posts.

    Raises:
        MissingExtraError: If powerlaw or polars is not installed, which the extra ``science``
            brings.
    """
    from prism.analysis._tables.happened import and_in_all, what_happened

    library("powerlaw")
    happened = what_happened(logs, "posts", "likes", "views")
    counts = _distributions(happened) | _followers(logs)
    keys = ["run", "round"]
    posts = and_in_all(happened.tables["posts"]).select(keys).unique().sort(keys, nulls_last=True)
    if not by_round:
        posts = posts.filter(pl.col("round").is_null())

    rows = []
    for run, number in posts.iter_rows():
        is_own = (pl.col("run") == run) & pl.col("round").eq_missing(pl.lit(number))
        for what, table in counts.items():
            values = table.filter(is_own)["count"].to_list()
            if number is None or values:
                tail = fit_tail(values, bootstrap=bootstrap, seed=seed)
                rows.append({"run": run, "round": number, "what": what, **asdict(tail)})

    keyed = {"run": pl.UInt32(), "round": pl.Int64(), "what": pl.String()}
    found = pl.DataFrame(rows, schema=keyed | columns_of(Tail))

    return logs.labelled(found if by_round else found.drop("round"))


_LEAST_DIFFERENT = 3
_DECIDED = 0.1
_EXPONENTS = [1, 20]


def _fitted(values: Sequence[int]) -> Any:
    return library("powerlaw").Fit(
        values,
        discrete=True,
        estimate_discrete=False,
        # by default, the package considers only exponents up to 3
        parameter_ranges={"alpha": _EXPONENTS},
        verbose=False,
    )


def _bootstrapped(
    values: Sequence[int], exponent: float, xmin: int, distance: float, samples: int, seed: int
) -> float | None:
    """Return the share of samples at least as far from their fits as the values from their own."""
    if not samples:
        return None

    numbers = library("numpy")
    rng = numbers.random.default_rng(seed)
    below = numbers.asarray([value for value in values if value < xmin])
    farther = 0
    for _ in range(samples):
        in_tail = int(rng.binomial(len(values), 1 - below.size / len(values)))
        rest = rng.choice(below, len(values) - in_tail) if below.size else below
        drawn = numbers.concatenate([rest, _power_law(in_tail, exponent, xmin, rng)])
        farther += bool(distance <= _fitted(drawn.astype(int).tolist()).power_law.D)

    return farther / samples


def _power_law(count: int, exponent: float, xmin: int, rng: Any) -> Any:
    """Draw whole numbers by inverting P(X >= x) (their appendix D), exactly."""
    numbers, zeta = library("numpy"), library("scipy.special").zeta
    beyond = rng.random(count) * zeta(exponent, xmin)
    low = numbers.full(count, float(xmin))
    high = 2 * low
    while (short := zeta(exponent, high) > beyond).any():
        low, high = numbers.where(short, high, low), numbers.where(short, 2 * high, high)

    # the greatest x whose P(X >= x) is still above the random number
    while (high - low > 1).any():
        middle = numbers.floor((low + high) / 2)
        is_above = zeta(exponent, middle) > beyond
        low, high = numbers.where(is_above, middle, low), numbers.where(is_above, high, middle)

    return low


def _distributions(happened: Any) -> dict[str, pl.DataFrame]:
    """Return the distributions in each round and over all rounds."""
    from prism.analysis._tables.cascades import reshare_trees, trees
    from prism.analysis._tables.happened import IN_ALL, acts, and_in_all

    posts, likes = happened.tables["posts"], happened.counting("likes")
    written = acts(happened).filter(pl.col("what") != "likes")
    authors = posts.select("run", "post_id", author_id="agent_id")
    keys = [*IN_ALL, "agent_id"]
    answers = posts.select(*keys, post_id="parent_id").drop_nulls("post_id")
    reacted = pl.concat([answers, likes.select(answers.columns)]).join(
        authors, on=["run", "post_id"]
    )
    others = reacted.filter(pl.col("agent_id") != pl.col("author_id"))
    sizes = [*IN_ALL, pl.col("size").alias("count")]

    def counted(table: pl.DataFrame, key: str, number: pl.Expr) -> pl.DataFrame:
        return and_in_all(table).group_by(*IN_ALL, key).agg(count=number)

    return {
        "cascades": and_in_all(trees(posts).select(sizes)),
        "reshares": and_in_all(reshare_trees(posts).select(sizes)),
        "written": counted(written, "agent_id", pl.len()),
        "likes": counted(likes, "post_id", pl.len()),
        "views": counted(happened.tables["views"], "post_id", pl.len()),
        "reactions": counted(others, "author_id", pl.col("agent_id").n_unique()),
    }


def _followers(logs: RunLogs) -> dict[str, pl.DataFrame]:
    """Return the number of followers of each agent, if the logs contain it."""
    from prism.analysis._tables.networks import pairs_of

    pairs = pairs_of(logs)
    if pairs.is_empty():
        return {}

    counts = pairs.group_by("run", "author_id").agg(count=pl.len())
    return {"followers": counts.with_columns(round=pl.lit(None, pl.Int64))}


def _verdict(tail: Tail) -> str:
    sure = {
        "lognormal": _sure_ratio(tail.lognormal, tail.lognormal_p),
        "exponential": _sure_ratio(tail.exponential, tail.exponential_p),
    }
    best = min(sure, key=sure.__getitem__)
    if sure[best] < 0:
        return best

    is_ruled_out = tail.ks_p is not None and tail.ks_p <= _DECIDED

    return "power law" if sure["exponential"] > 0 and not is_ruled_out else "undecided"


def _sure_ratio(ratio: float | None, p: float | None) -> float:
    """Return a likelihood ratio if its sign is certain, or else 0."""
    return ratio if ratio is not None and p is not None and p < _DECIDED else 0.0


def _number(value: Any) -> float | None:
    return float(value) if isfinite(value) else None


@contextmanager
def _quiet() -> Iterator[None]:
    # the package prints its progress, and warns if a lognormal is as good as its own limit
    with warnings.catch_warnings(), redirect_stdout(StringIO()):
        warnings.simplefilter("ignore")
        yield
