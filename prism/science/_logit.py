"""Multinomial logits of choices, fitted where the likelihood has a finite maximum."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from prism.runs._policy_file import Logit, RatioTest, Unidentified
from prism.science._arrays import Array, np
from prism.science._choices import Choices, Point
from prism.science._libraries import library

_MOST_STEPS = 200
_SLACK = 1e-7
"""Tolerance within which the optimum of a linear program counts as 0."""

_INTERCEPTS = "intercepts only"
_GROUPS = "by group"
_FULL = "logit"

Fitted = tuple[Logit | None, list[RatioTest], list[Unidentified]]


@dataclass(frozen=True)
class _Design:
    """The design matrix of a logit, and the choices.

    Args:
        point: The decision point.
        groups: The groups; the first is the reference.
        covariates: The covariates that vary.
        chosen: The options that were ever chosen; the first is the base.
        exog: A row per decision: 1, a dummy for each group but the first, and the covariates, each
            divided by its scale.
        scales: The scale of each column; for a covariate, its standard deviation.
        endog: The index of the chosen option.
        agents: The index of the agent that chose.
    """

    point: Point
    groups: tuple[str, ...]
    covariates: tuple[str, ...]
    chosen: tuple[str, ...]
    exog: Array
    scales: Array
    endog: Array
    agents: Array


def fit_logit(choices: Choices, number: int, point: Point, least: int) -> Fitted:
    """Fit the logit of one decision point.

    Args:
        choices: The choices.
        number: The index of the point.
        point: The point.
        least: The smallest number of decisions that identifies a group.

    Returns:
        The logit, or None if it is not identified; its likelihood-ratio tests; and what is not
        identified, with reasons.
    """
    design, unclear = _design(choices, number, point, least)
    if design is None:
        return None, [], unclear

    trouble = _trouble(design)
    if trouble is None:
        fitted = _fit(design)
        if not isinstance(fitted, str):
            return fitted, _tests(design, fitted), unclear
        trouble = fitted

    state, event, _ = point
    n = len(design.endog)

    return None, [], [*unclear, Unidentified("logit", trouble, state, event, n=n)]


def _design(
    choices: Choices, number: int, point: Point, least: int
) -> tuple[_Design | None, list[Unidentified]]:
    state, event, options = point
    rows = choices.table.filter(pl.col("point") == number)
    known, unclear = _covariates(choices, rows, point)
    rows = rows.drop_nulls(known)
    counts = _counts(choices, rows, options)
    total = dict(zip(options, counts.sum(axis=0).tolist(), strict=True))
    ever = [option for option in options if total[option]]
    groups, others = _groups_with_all(choices, counts, point, least)
    unclear += others
    if not groups or len(ever) < 2:
        reason = "no group has chosen every option" if len(ever) > 1 else "one option is chosen"
        unclear.append(Unidentified("logit", reason, state, event, n=rows.height))
        return None, unclear

    # the most frequent option as base gives the smallest errors
    base = max(ever, key=lambda option: total[option])
    chosen = (base, *(option for option in ever if option != base))
    used = rows.filter(pl.col("group").is_in(groups))

    return _matrix(used, point, groups, known, chosen), unclear


def _counts(choices: Choices, rows: pl.DataFrame, options: Sequence[str]) -> Array:
    """Return how often each option was chosen, a row per group."""
    found = {(group, name): n for group, name, n in rows.group_by("group", "chosen").len().rows()}
    return np.array([[found.get((group, name), 0) for name in options] for group in choices.groups])


def _groups_with_all(
    choices: Choices, counts: Array, point: Point, least: int
) -> tuple[list[str], list[Unidentified]]:
    """Return the groups that chose every option ever chosen, and what the others never chose."""
    state, event, options = point
    groups, unclear = [], []
    for group, n, is_never in zip(
        choices.groups, counts.sum(axis=1).tolist(), counts.any(axis=0) & (counts == 0), strict=True
    ):
        if n < least:
            continue
        if not is_never.any():
            groups.append(group)
            continue
        never = ", ".join(np.array(options)[is_never])
        reason = f"never chose {never}: its coefficient would be infinite"
        unclear.append(Unidentified("group", reason, state, event, group, n=n))

    return groups, unclear


def _covariates(
    choices: Choices, rows: pl.DataFrame, point: Point
) -> tuple[list[str], list[Unidentified]]:
    """Return the covariates that vary, and what is unidentified about all of them."""
    state, event, _ = point
    known, unclear, unknown = [], [], []
    for name in choices.covariates:
        values = rows[name].drop_nulls()
        what = Unidentified("covariate", "", state, event, name=name, n=len(values))
        if values.n_unique() < 2:
            reason = "does not vary" if len(values) else "has no number in the log"
            unclear.append(replace(what, reason=reason))
            continue
        known.append(name)
        if missing := rows[name].null_count():
            reason = "is unknown in some decisions, which the logit leaves out"
            unknown.append(replace(what, reason=reason, n=missing))

    return known, [*unclear, *unknown]


def _matrix(
    used: pl.DataFrame,
    point: Point,
    groups: Sequence[str],
    known: Sequence[str],
    chosen: tuple[str, ...],
) -> _Design:
    """Return the design of some decisions: intercept, group dummies and covariates."""
    dummies = [(used["group"] == group).to_numpy().astype(float) for group in groups[1:]]
    numbers = [used[name].to_numpy() for name in known]
    # scaled, so that the fit does not depend on the units
    scales = np.array([1.0] * len(groups) + [each.std() or 1.0 for each in numbers])
    columns = [np.ones(used.height), *dummies, *numbers]
    places = {option: place for place, option in enumerate(chosen)}
    endog = used["chosen"].replace_strict(places, return_dtype=pl.Int64).to_numpy()
    exog = np.column_stack(columns) / scales
    agents = used.select(pl.struct("run", "agent_id").rank("dense")).to_series().to_numpy()

    return _Design(point, tuple(groups), tuple(known), chosen, exog, scales, endog, agents)


def _trouble(design: _Design) -> str | None:
    """Return why the likelihood has no unique finite maximum; None if it has one."""
    if np.linalg.matrix_rank(design.exog) < design.exog.shape[1]:
        return "groups and covariates cannot be told apart (the design has not full rank)"
    if _is_separated(design):
        return "covariates and groups predict some choices with certainty (separation)"

    return None


def _is_separated(design: _Design) -> bool:
    """Return whether some coefficients would be infinite.

    They are if there are coefficients, not all 0, for which the chosen option has the highest
    utility in every decision, and strictly so in some (Albert and Anderson 1984, Biometrika 71). A
    linear program finds such coefficients (Konis 2007).
    """
    # repeated rows only cost time
    pairs = np.unique(np.column_stack([design.endog, design.exog]), axis=0)
    chosen, exog = pairs[:, 0].astype(int), pairs[:, 1:]
    options, terms = len(design.chosen), exog.shape[1]

    differences = []
    for other in range(options):
        own = chosen != other
        block = np.zeros((own.sum(), options, terms))
        block[np.arange(own.sum()), chosen[own]] = exog[own]
        block[:, other] -= exog[own]
        # the base has no coefficients
        differences.append(block[:, 1:].reshape(own.sum(), -1))

    matrix = np.concatenate(differences)
    found = library("scipy.optimize").linprog(
        -matrix.sum(axis=0), A_ub=-matrix, b_ub=np.zeros(len(matrix)), bounds=(-1, 1)
    )

    return bool(-found.fun > _SLACK * len(matrix))


def _fit(design: _Design) -> Logit | str:
    """Return the logit, or why it could not be fitted."""
    logit = library("statsmodels.discrete.discrete_model").MNLogit
    with warnings.catch_warnings():
        # convergence and the Hessian are checked below
        warnings.simplefilter("ignore")
        try:
            model = logit(design.endog, design.exog)
            result = model.fit(maxiter=_MOST_STEPS, disp=0)
            covariance = np.asarray(result.cov_params())
            clustered = _clustered(model, result, design)
        except (np.linalg.LinAlgError, ValueError) as error:
            return f"the fit failed ({error})"

    errors = np.sqrt(np.diag(covariance))
    if not result.mle_retvals["converged"]:
        return f"the fit did not converge in {_MOST_STEPS} steps"
    if not np.isfinite(errors).all() or (errors <= 0).any():
        return "the Hessian is singular"

    weights = np.asarray(result.params).T / design.scales
    by_option = errors.reshape(weights.shape) / design.scales
    whole = np.tile(design.scales, len(weights))
    covariance /= np.outer(whole, whole)

    return Logit(
        *design.point,
        design.chosen[0],
        design.groups,
        design.covariates,
        _rows(design, weights),
        _rows(design, by_option),
        tuple(map(tuple, covariance.tolist())),
        len(design.endog),
        float(result.llf),
        clustered,
        len(np.unique(design.agents)),
    )


def _clustered(model: Any, result: Any, design: _Design) -> dict[str, tuple[float, ...]]:
    """Return standard errors clustered by agent.

    Empty unless there are more agents than coefficients and these agents differ, since the
    covariance is singular otherwise.
    """
    if len(np.unique(design.agents)) <= result.params.size:
        return {}

    # Liang and Zeger 1986; starting at the maximum, this takes one step
    again = model.fit(
        np.asarray(result.params).ravel(order="F"),
        maxiter=_MOST_STEPS,
        disp=0,
        cov_type="cluster",
        cov_kwds={"groups": design.agents},
    )

    errors = np.sqrt(np.diag(np.asarray(again.cov_params())))
    if (errors <= _SLACK * np.asarray(result.bse).ravel(order="F")).any():
        return {}

    return _rows(design, errors.reshape(-1, len(design.scales)) / design.scales)


def _rows(design: _Design, matrix: Array) -> dict[str, tuple[float, ...]]:
    return {
        option: tuple(row) for option, row in zip(design.chosen[1:], matrix.tolist(), strict=True)
    }


def _tests(design: _Design, fitted: Logit) -> list[RatioTest]:
    """Test the logit against nested models, whose estimates are plain shares."""
    chi2 = library("scipy.stats").chi2

    of_groups = design.exog[:, : len(design.groups)] @ np.arange(len(design.groups))
    terms = len(design.chosen) - 1
    smaller: list[tuple[str, Array, int]] = [(_INTERCEPTS, np.zeros(len(design.endog)), 1)]
    if len(design.groups) > 1 and design.covariates:
        smaller.append((_GROUPS, of_groups, len(design.groups)))

    tests = []
    for name, places, own in smaller:
        df = terms * (design.exog.shape[1] - own)
        if df:
            statistic = max(0.0, 2 * (fitted.log_likelihood - _of_shares(design.endog, places)))
            p = float(chi2.sf(statistic, df))
            tests.append(RatioTest(*design.point, name, _FULL, statistic, df, p))

    return tests


def _of_shares(chosen: Array, groups: Array) -> float:
    """Return the log-likelihood of choices with the shares of each group as probabilities."""
    _, counts = np.unique(np.column_stack([groups, chosen]), axis=0, return_counts=True)
    _, sizes = np.unique(groups, return_counts=True)

    # no count is 0, since only chosen options are counted
    return float((counts * np.log(counts)).sum() - (sizes * np.log(sizes)).sum())
