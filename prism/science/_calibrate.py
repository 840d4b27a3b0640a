"""Estimate, from the decisions of runs, a policy that can replace the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import sqrt
from typing import TYPE_CHECKING, Any, get_args

import polars as pl

from prism.errors import FieldValueError
from prism.runs._policy_file import (
    ARCHETYPE,
    RELEVANCE,
    Cell,
    Logit,
    ModelKind,
    Policy,
    RatioTest,
    Unidentified,
)
from prism.science._arrays import Array, np
from prism.science._choices import Choices, Point, read_choices
from prism.science._libraries import library
from prism.statechart import Definition, Statechart, social_feed_chart, social_media_chart
from prism.statechart.states import state_text

if TYPE_CHECKING:
    from prism.analysis import RunLogs

LEAST = 10
"""Fewest decisions that identify the probabilities of a cell."""

_ALPHA = 0.05
_POOLED = "all groups alike"
_BY_GROUP = "by group"


def calibrate(
    logs: RunLogs,
    model: ModelKind = "markov",
    *,
    by: str = ARCHETYPE,
    covariates: Sequence[str] = (RELEVANCE,),
    least: int = LEAST,
    charts: Sequence[Statechart[Any]] = (),
) -> Policy:
    """Estimate a policy from the decisions of runs.

    ``markov`` uses the share of each choice for each state, event and group, which is the
    maximum-likelihood estimate of a multinomial. It tests whether the groups differ with G, twice
    the log-likelihood ratio (Wilks 1938). ``logit`` also fits a multinomial logit (McFadden 1974)
    for each state and event, with an intercept for each group and the covariates, and tests it
    against one with intercepts only and one with groups only.

    Whatever the decisions cannot identify is listed in ``unidentified``: states in which no agent
    decided, options that were never offered, options that were never chosen (whose estimate is 0),
    groups with fewer than ``least`` decisions, covariates that do not vary, and logits without a
    finite maximum (Albert and Anderson 1984).

    Decisions of one agent are correlated, so there are two standard errors: one as if all decisions
    were independent, and one clustered by agent (Liang and Zeger 1986). The tests assume
    independence.

    Args:
        logs: The runs, from `prism.analysis.read_log`. Decisions that fell back are left out.
        model: ``markov`` or ``logit``.
        by: How to group agents: by ``archetype``, or by an attribute.
        covariates: What choices may depend on in a logit: keys of ``post.weighed`` in the
            log, of the decision or its context, or attributes of agents.
        least: Fewest decisions that identify a cell.
        charts: Charts of the agents, which define what could have been decided. The feed's is
            known.

    Raises:
        FieldValueError: If there is no such model, or ``least`` is below 1.
        InputError: If the runs hold no decisions.
        MissingExtraError: If the extra ``science`` is not installed.
    """
    if model not in get_args(ModelKind):
        raise FieldValueError(f"model must be markov or logit, got {model!r}")
    if least < 1:
        raise FieldValueError(f"least must be 1 or more, got {least}")

    choices = read_choices(logs, by=by, covariates=covariates if model == "logit" else ())
    found = calibrate_choices(choices, model, least)

    return replace(found, unidentified=(*found.unidentified, *_never_met(choices, charts)))


def calibrate_choices(choices: Choices, model: ModelKind, least: int) -> Policy:
    """Estimate a policy from choices alone; see `calibrate`."""
    found = _Found()
    for number, point in enumerate(choices.points):
        _frequencies(choices, number, point, least, found)
    if len(choices.points) > 1 and found.tests:
        found.tests.append(_together(found.tests))
    if model == "logit":
        _logits(choices, least, found)

    return Policy(
        model,
        choices.by,
        least,
        tuple(found.cells),
        tuple(found.logits),
        tuple(found.tests),
        tuple(found.unidentified),
        choices.sources,
    )


@dataclass
class _Found:
    """The estimates so far."""

    cells: list[Cell] = field(default_factory=list)
    logits: list[Logit] = field(default_factory=list)
    tests: list[RatioTest] = field(default_factory=list)
    unidentified: list[Unidentified] = field(default_factory=list)


def _counts_at(choices: Choices, number: int, options: Sequence[str]) -> dict[str, Array]:
    """Return, by group, how often each agent chose each option at a point, a row per agent."""
    agent = ["group", "run", "agent_id"]
    rows = choices.table.filter(pl.col("point") == number)
    counted = rows.group_by(agent, maintain_order=True).agg(
        (pl.col("chosen") == option).sum().alias(str(place)) for place, option in enumerate(options)
    )

    return {
        group: counted.filter(group=group).drop(agent).to_numpy().astype(int)
        for group in choices.groups
    }


def _frequencies(choices: Choices, number: int, point: Point, least: int, found: _Found) -> None:
    counts = _counts_at(choices, number, point[2])
    for group, rows in counts.items():
        cell, unclear = _cell(point, group, rows, least)
        found.cells.append(cell)
        found.unidentified += unclear

    together = np.concatenate(list(counts.values()))
    # options that nobody ever chose are already reported for the groups
    found.cells.append(_cell(point, None, together, least)[0])
    test = _homogeneity(point, [rows.sum(axis=0).tolist() for rows in counts.values() if len(rows)])
    if test is not None:
        found.tests.append(test)


def _cell(
    point: Point, group: str | None, rows: Array, least: int
) -> tuple[Cell, list[Unidentified]]:
    state, event, options = point
    counts, agents = tuple(rows.sum(axis=0).tolist()), len(rows)
    n = sum(counts)
    if n < least:
        reason = f"only {n} decisions of the {least} needed" if n else "was never asked"
        unclear = Unidentified("cell", reason, state, event, group, n=n)
        return Cell(state, event, options, group, counts, agents=agents), [unclear]

    shares = tuple(count / n for count in counts)
    errors = tuple(sqrt(share * (1 - share) / n) for share in shares)
    never = [
        Unidentified(
            "option",
            "was offered but never chosen: the estimate is 0, at the boundary",
            state,
            event,
            group,
            option,
            n,
            upper=1 - _ALPHA ** (1 / n),
        )
        for option, count in zip(options, counts, strict=True)
        if not count
    ]

    clustered = _clustered(rows)

    return Cell(state, event, options, group, counts, shares, errors, clustered, agents), never


def _clustered(rows: Array) -> tuple[float, ...] | None:
    """Return standard errors of shares, clustered by agent.

    The residuals of each agent are summed before they are squared (Liang and Zeger 1986), with the
    correction G / (G - 1) for G agents (Cameron and Miller 2015).
    """
    agents, n = len(rows), rows.sum()
    if agents < 2:
        return None

    residuals = rows - np.outer(rows.sum(axis=1), rows.sum(axis=0) / n)
    errors = np.sqrt((residuals**2).sum(axis=0) * agents / (agents - 1)) / n

    return tuple(errors.tolist())


def _homogeneity(point: Point, rows: Sequence[Sequence[int]]) -> RatioTest | None:
    """Test whether all groups choose with the same probabilities."""
    chi2_contingency = library("scipy.stats").chi2_contingency
    chosen = [place for place in range(len(point[2])) if any(row[place] for row in rows)]
    if len(rows) < 2 or len(chosen) < 2:
        return None

    table = [[row[place] for place in chosen] for row in rows]
    result = chi2_contingency(table, correction=False, lambda_="log-likelihood")
    least = float(result.expected_freq.min())

    return RatioTest(
        *point,
        _POOLED,
        _BY_GROUP,
        float(result.statistic),
        int(result.dof),
        float(result.pvalue),
        least,
    )


def _together(tests: Sequence[RatioTest]) -> RatioTest:
    """Add up independent tests of one pair of models."""
    statistic, df = sum(test.statistic for test in tests), sum(test.df for test in tests)
    known = [test.least_expected for test in tests if test.least_expected is not None]
    p = float(library("scipy.stats").chi2.sf(statistic, df))

    return RatioTest(
        None, None, (), tests[0].null, tests[0].alternative, statistic, df, p, min(known)
    )


def _logits(choices: Choices, least: int, found: _Found) -> None:
    from prism.science._logit import fit_logit

    for number, point in enumerate(choices.points):
        logit, tests, unclear = fit_logit(choices, number, point, least)
        found.tests += tests
        found.unidentified += unclear
        if logit is not None:
            found.logits.append(logit)


def _never_met(choices: Choices, charts: Sequence[Statechart[Any]]) -> Iterator[Unidentified]:
    """Yield what the charts allow but the decisions never contain."""
    offered: dict[tuple[str, str], set[str]] = {}
    for state, event, options in choices.points:
        offered.setdefault((state, event), set()).update(options)

    followed = charts or [each for each in _familiar() if each.name in choices.charts]
    for (state, event), targets in chain(*(_ambiguous(each.definition) for each in followed)):
        if (state, event) not in offered:
            yield Unidentified("state", "nobody decided there", state, event)
            continue
        for target in targets:
            if target not in offered[state, event]:
                yield Unidentified("option", "was never offered", state, event, name=target)


def _familiar() -> Iterator[Statechart[Any]]:
    """Yield the charts of the feed, which logs name without their definitions."""
    for make in (social_media_chart, social_feed_chart):
        yield from (make(), make(acts=True))


def _ambiguous(definition: Definition[Any]) -> list[tuple[tuple[str, str], list[str]]]:
    """Return the targets of each event that leaves a choice in a decision state."""
    found: dict[tuple[str, str], list[str]] = {}
    for each in definition.transitions:
        if each.source in definition.decision_states:
            key = state_text(each.source), each.trigger
            found.setdefault(key, []).append(state_text(each.target))

    return [(key, targets) for key, targets in found.items() if len(set(targets)) > 1]
