"""Estimate, from the decisions of runs, a policy that can replace the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import polars as pl

from prism.errors import FieldValueError
from prism.runs._policy_file import ARCHETYPE, Cell, Policy, Unidentified
from prism.science._choices import Choices, Point, read_choices
from prism.statechart import Definition, Statechart, social_feed_chart, social_media_chart
from prism.statechart.states import state_text

if TYPE_CHECKING:
    from prism.analysis import RunLogs

LEAST = 10
"""Fewest decisions that identify the probabilities of a cell."""


def calibrate(
    logs: RunLogs,
    *,
    by: str = ARCHETYPE,
    least: int = LEAST,
    charts: Sequence[Statechart[Any]] = (),
) -> Policy:
    """Estimate a policy from the decisions of runs.

    Its probabilities are the shares of each choice for each state, event and group, which are the
    maximum-likelihood estimates of a multinomial.

    Whatever the decisions cannot identify is listed in ``unidentified``: states in which no agent
    decided, options that were never offered, options that were never chosen (whose estimate is 0),
    and groups with fewer than ``least`` decisions.

    Args:
        logs: The runs, from `prism.analysis.read_log`. Decisions that fell back are left out.
        by: How to group agents: by ``archetype``, or by an attribute.
        least: Fewest decisions that identify a cell.
        charts: Charts of the agents, which define what could have been decided. The feed's is
            known.

    Raises:
        FieldValueError: If ``least`` is below 1.
        InputError: If the runs hold no decisions.
        MissingExtraError: If the extra ``science`` is not installed.
    """
    if least < 1:
        raise FieldValueError(f"least must be 1 or more, got {least}")

    choices = read_choices(logs, by=by)
    cells: list[Cell] = []
    unidentified: list[Unidentified] = []
    for number, point in enumerate(choices.points):
        chosen = choices.table.filter(pl.col("point") == number)
        for group in choices.groups:
            cell, unclear = _cell(point, group, chosen.filter(group=group), least)
            cells.append(cell)
            unidentified += unclear
        # options that nobody ever chose are already reported for the groups
        cells.append(_cell(point, None, chosen, least)[0])

    return Policy(
        choices.by,
        least,
        tuple(cells),
        (*unidentified, *_never_met(choices, charts)),
        choices.sources,
    )


def _cell(
    point: Point, group: str | None, chosen: pl.DataFrame, least: int
) -> tuple[Cell, list[Unidentified]]:
    state, event, options = point
    counts = tuple(map(chosen["chosen"].to_list().count, options))
    n, agents = chosen.height, chosen.select("run", "agent_id").n_unique()
    if n < least:
        reason = f"only {n} decisions of the {least} needed" if n else "was never asked"
        unclear = Unidentified("cell", reason, state, event, group, n=n)
        return Cell(state, event, options, group, counts, agents=agents), [unclear]

    reason = "was offered but never chosen: the estimate is 0, at the boundary"
    never = [
        Unidentified("option", reason, state, event, group, option, n)
        for option, count in zip(options, counts, strict=True)
        if not count
    ]
    shares = tuple(count / n for count in counts)

    return Cell(state, event, options, group, counts, shares, agents), never


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


def policy_probabilities(policy: Policy) -> pl.DataFrame:
    """Return the probabilities of a policy: one row for each option of each cell.

    Args:
        policy: The policy.

    Returns:
        ``state``, ``event``, ``group`` (null for all together), ``option``, ``n`` decisions of the
        cell, ``count``, ``probability`` (null where not identified), and ``agents``.
    """
    rows = [
        (cell.state, cell.event, cell.group, option, cell.n, count, probability, cell.agents)
        for cell in policy.cells
        for option, count, probability in zip(
            cell.options,
            cell.counts,
            cell.probabilities or [None] * len(cell.options),
            strict=True,
        )
    ]
    schema = {
        **dict.fromkeys(("state", "event", "group", "option"), pl.String),
        **dict.fromkeys(("n", "count"), pl.Int64),
        "probability": pl.Float64,
        "agents": pl.Int64,
    }

    return pl.DataFrame(rows, schema, orient="row")


def policy_unidentified(policy: Policy) -> pl.DataFrame:
    """Return what could not be identified and why.

    Args:
        policy: The policy.

    Returns:
        One row each: ``what``, ``state``, ``event``, ``group``, ``name``, ``n`` and ``reason``.
    """
    names = ("what", "state", "event", "group", "name", "n", "reason")
    rows = [[getattr(each, name) for name in names] for each in policy.unidentified]
    schema = {name: pl.Int64() if name == "n" else pl.String() for name in names}
    return pl.DataFrame(rows, schema, orient="row")
