"""Estimate, from the decisions of runs, a policy that can replace the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from prism.errors import FieldValueError
from prism.runs._policy_file import Policy
from prism.science._choices import ARCHETYPE, Choices, Point, PolicySource, read_choices
from prism.statechart import Definition, Statechart, social_feed_chart, social_media_chart
from prism.statechart.states import state_text

if TYPE_CHECKING:
    from prism.analysis import RunLogs

LEAST = 10
"""Fewest decisions that identify the probabilities of a cell."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The choices of one group of agents at one decision point.

    Args:
        state: The state of the agent.
        event: The event that opens the question.
        options: The options, in the chart's order.
        group: The group; None for all agents together.
        counts: How often each option was chosen.
        probabilities: Their shares, which are the maximum-likelihood estimates of a multinomial;
            None if they are not identified.
        agents: Number of agents that decided.
    """

    state: str
    event: str
    options: tuple[str, ...]
    group: str | None
    counts: tuple[int, ...]
    probabilities: tuple[float, ...] | None = None
    agents: int = 0

    @property
    def n(self) -> int:
        """Number of decisions."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class Unidentified:
    """Something that the decisions do not identify.

    Args:
        what: ``state``, ``option`` or ``cell``.
        reason: Why it is not identified.
        state: The state in which it would be decided.
        event: The event that opens the question.
        group: The group of agents.
        name: The option.
        n: Number of decisions.
    """

    what: Literal["state", "option", "cell"]
    reason: str
    state: str | None = None
    event: str | None = None
    group: str | None = None
    name: str | None = None
    n: int = 0


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the decisions of runs say of a policy.

    Args:
        by: How agents are grouped: by ``archetype``, or by an attribute.
        least: Fewest decisions that identify a cell.
        cells: The shares, by group and for all groups together.
        unidentified: What could not be identified.
        sources: The runs.
    """

    by: str
    least: int
    cells: tuple[Cell, ...]
    unidentified: tuple[Unidentified, ...] = ()
    sources: tuple[PolicySource, ...] = ()

    @property
    def policy(self) -> Policy:
        """The policy: the shares of all groups together, wherever they are identified."""
        counts: dict[str, dict[str, Counter[str]]] = {}
        for cell in self.cells:
            if cell.group is None and cell.probabilities is not None:
                found = counts.setdefault(cell.state, {}).setdefault(cell.event, Counter())
                found.update(dict(zip(cell.options, cell.counts, strict=True)))

        return Policy(
            {
                state: {
                    event: {option: count / each.total() for option, count in each.items()}
                    for event, each in events.items()
                }
                for state, events in counts.items()
            }
        )


def calibrate(
    logs: RunLogs,
    *,
    by: str = ARCHETYPE,
    least: int = LEAST,
    charts: Sequence[Statechart[Any]] = (),
) -> Calibration:
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

    return Calibration(
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
