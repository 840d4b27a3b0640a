"""The contents of a policy, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from prism.runs._policy_file import Logit, Policy, RatioTest, Unidentified
from prism.science._arrays import columns_of
from prism.science._libraries import library


def policy_probabilities(policy: Policy) -> pl.DataFrame:
    """Return the probabilities of a policy: one row for each option of each cell.

    Args:
        policy: The policy.

    Returns:
        ``state``, ``event``, ``group`` (null for all together), ``option``, ``n`` decisions of the
        cell, ``count``, ``probability``, ``standard_error`` as if all decisions were independent,
        ``clustered_error`` by agent (null where not identified), and ``agents``.
    """
    rows = [
        (cell.state, cell.event, cell.group, option, cell.n, *found, cell.agents)
        for cell in policy.cells
        for option, *found in zip(
            cell.options,
            cell.counts,
            cell.probabilities or [None] * len(cell.options),
            cell.standard_errors or [None] * len(cell.options),
            cell.clustered_errors or [None] * len(cell.options),
            strict=True,
        )
    ]
    schema = {
        **dict.fromkeys(("state", "event", "group", "option"), pl.String),
        **dict.fromkeys(("n", "count"), pl.Int64),
        **dict.fromkeys(("probability", "standard_error", "clustered_error"), pl.Float64),
        "agents": pl.Int64,
    }

    return pl.DataFrame(rows, schema, orient="row")


def policy_coefficients(policy: Policy) -> pl.DataFrame:
    """Return the coefficients of a policy's logits.

    Args:
        policy: The policy.

    Returns:
        One row each: ``state``, ``event``, ``option``, ``base`` (whose utility is 0), ``term``,
        ``coefficient``, ``standard_error`` as if all decisions were independent,
        ``clustered_error`` by agent (null where it is not known), ``z``, and ``p`` (two-sided; Wald
        1943), by the clustered error if there is one.
    """
    norm = library("scipy.stats").norm
    rows = [
        (
            *row,
            coefficient,
            error,
            clustered,
            coefficient / (clustered or error),
            float(2 * norm.sf(abs(coefficient / (clustered or error)))),
        )
        for logit in policy.logits
        for *row, coefficient, error, clustered in _terms(logit)
    ]
    schema = {
        **dict.fromkeys(("state", "event", "option", "base", "term"), pl.String),
        **dict.fromkeys(("coefficient", "standard_error", "clustered_error", "z", "p"), pl.Float64),
    }

    return pl.DataFrame(rows, schema, orient="row")


def policy_tests(policy: Policy) -> pl.DataFrame:
    """Return the likelihood-ratio tests of a policy.

    Args:
        policy: The policy.

    Returns:
        One row each: ``state`` and ``event`` (null for all decision points together), ``null``,
        ``alternative``, ``statistic``, ``df``, ``p`` and ``least_expected``, the smallest count
        that the smaller model expects in a cell. Below 5, the approximation is poor (Cochran
        1954).
    """
    names = ("state", "event", "null", "alternative", "statistic", "df", "p", "least_expected")
    return _table_of(RatioTest, policy.tests, names)


def policy_unidentified(policy: Policy) -> pl.DataFrame:
    """Return what could not be identified and why.

    Args:
        policy: The policy.

    Returns:
        One row each: ``what``, ``state``, ``event``, ``group``, ``name``, ``n``, ``reason``, and
        ``upper``, the upper end of the interval for an option that was never chosen.
    """
    names = ("what", "state", "event", "group", "name", "n", "reason", "upper")
    return _table_of(Unidentified, policy.unidentified, names)


def _table_of(kind: type, items: Sequence[object], names: Sequence[str]) -> pl.DataFrame:
    """Return some fields of dataclasses, a row each."""
    kinds = columns_of(kind)
    rows = [[getattr(each, name) for name in names] for each in items]
    return pl.DataFrame(rows, {name: kinds[name] for name in names}, orient="row")


def _terms(logit: Logit) -> Iterator[tuple[Any, ...]]:
    groups = (f"{group} - {logit.groups[0]}" for group in logit.groups[1:])
    names = (f"intercept ({logit.groups[0]})", *groups, *logit.covariates)
    for option, weights in logit.coefficients.items():
        errors = logit.standard_errors[option]
        clustered = logit.clustered_errors.get(option, [None] * len(weights))
        for name, *found in zip(names, weights, errors, clustered, strict=True):
            yield logit.state, logit.event, option, logit.base, name, *found
