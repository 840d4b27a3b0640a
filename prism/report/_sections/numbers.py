"""The key numbers of the runs, their parameters, and what models, steps and cycles cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from markupsafe import Markup

from prism.drawing import printable
from prism.report._facts.run_facts import MOST_CHARACTERS, RunFacts
from prism.report._figures.html_table import cell, framed, headed, html_table, shown
from prism.report._figures.page_figures import PageFigures
from prism.report._sections.kinds import Kind, Maker, Section
from prism.statechart.transitions import TIMEOUT

_ACTS = ("posts", "replies", "reshares", "likes")
_SHARES = ("share of fallbacks",)
_NO_DIFFERENCE = ("seed",)
_TOKENS = ("input_tokens", "output_tokens")

Number = int | float | None


def key_numbers(facts: RunFacts) -> dict[str, Number]:
    """Return the key numbers of a run. Shares are 0 to 1; numbers that its log lacks are None.

    Args:
        facts: The run.
    """
    spread = facts.cascades.filter(pl.col("size") > 1)
    has_feed, of_turns = facts.has_feed, facts.is_of_turns
    asked = int(facts.decisions["asked"].sum())
    fallbacks = int(facts.decisions["from_fallback"].sum())

    return {
        "agents": facts.agents.height,
        **_lengths(facts),
        "seed": facts.run.seed,
        "transitions": int(facts.transitions["count"].sum()),
        "refused transitions": int(facts.refused["times"].sum()) if of_turns else None,
        "calls of a model": int(facts.calls["calls"].sum()) if of_turns else None,
        "actions": int(facts.calls["actions"].sum()) if of_turns else None,
        "time-outs": None if of_turns else _time_outs(facts),
        "decisions asked": asked if facts.has_decisions else None,
        "share of fallbacks": fallbacks / asked if asked else None,
        **{name: int(facts.agents[name].sum()) if has_feed else None for name in _ACTS},
        "cascades of two posts or more": spread.height if has_feed else None,
        "largest cascade, posts": _most(spread["size"]),
        "deepest cascade, steps": _most(spread["depth"]),
    }


def _time_outs(facts: RunFacts) -> int:
    return int(facts.transitions.filter(trigger=TIMEOUT)["count"].sum())


def _lengths(facts: RunFacts) -> dict[str, Number]:
    """Return the length of a run, in rounds of ticks or in turns."""
    made, planned = _rounds(facts), facts.run.rounds
    of_turns = facts.is_of_turns

    return {
        "turns": made if of_turns else None,
        "turns planned": planned if of_turns else None,
        "rounds": None if of_turns else made,
        "rounds planned": None if of_turns else planned,
        "ticks a round": None if of_turns else facts.run.ticks_per_round,
    }


def make_numbers(runs: Sequence[RunFacts]) -> Section:
    """Make the section of all runs.

    Args:
        runs: The facts of each; two runs also have a column of differences.
    """
    found = [key_numbers(facts) for facts in runs]
    names = [name for name in found[0] if _is_known(name, found)]
    labels = [facts.run.label for facts in runs]
    if len(runs) == 2:
        labels.append("difference")

    heads = [Markup('<th scope="col" class="number">{}</th>').format(label) for label in labels]
    rows = [headed(name, _cells(name, found)) for name in names]
    table = framed("numbers", [Markup("<td></td>"), *heads], rows)

    return Section("numbers", "Key numbers", "", together=table)


def _is_known(name: str, found: Sequence[dict[str, Number]]) -> bool:
    # The planned rounds or turns get a row only if fewer were completed.
    if name in ("rounds planned", "turns planned"):
        length = name.removesuffix(" planned")
        return any(numbers[name] not in (None, numbers[length]) for numbers in found)
    return any(numbers[name] is not None for numbers in found)


def _cells(name: str, found: Sequence[dict[str, Number]]) -> list[Markup]:
    values = [numbers[name] for numbers in found]
    cells = [cell(value, is_share=name in _SHARES) for value in values]
    return [*cells, _difference(name, *values)] if len(values) == 2 else cells


def _difference(name: str, one: Number, other: Number) -> Markup:
    if one is None or other is None or name in _NO_DIFFERENCE:
        return cell(None)

    difference = other - one
    sign = "+" if difference > 0 else ""
    text = f"{100 * difference:,.1f} points" if name in _SHARES else shown(difference)

    return Markup('<td class="number" data-value="{!r}">{}{}</td>').format(difference, sign, text)


def _rounds(facts: RunFacts) -> int | None:
    """Return the last round of the log."""
    if "round" not in facts.states.columns or facts.states.is_empty():
        return None
    return _most(facts.states["round"]) or None


def _most(counts: pl.Series) -> int | None:
    return None if counts.is_empty() else int(counts.max())  # type: ignore[arg-type]


_MOST = 200
_MOST_AHEAD = 12


def are_many(runs: Sequence[RunFacts]) -> bool:
    """Return whether there are so many parameters that they would hide what comes after them."""
    return len(_names(runs)) > _MOST_AHEAD


def make_parameters(runs: Sequence[RunFacts]) -> list[Section]:
    """Make the section of all runs; none if no run is of a world with parameters.

    Args:
        runs: The facts of each.
    """
    names = _names(runs)
    if not names:
        return []

    heads = [Markup('<th scope="col">{}</th>').format(facts.run.label) for facts in runs]
    rows = [_row("world", [facts.run.world for facts in runs])]
    rows += [_row(name, [facts.run.parameters.get(name) for facts in runs]) for name in names]
    about = "The initial parameters of the worlds. Treatments may change them later."
    table = framed("parameters", [Markup("<td></td>"), *heads], rows)

    return [Section("parameters", "Parameters", about, together=table)]


def _names(runs: Sequence[RunFacts]) -> list[str]:
    return list(dict.fromkeys(name for facts in runs for name in facts.run.parameters))[:_MOST]


def _row(name: str, values: Sequence[Any]) -> Markup:
    return headed(_short(name), map(_cell, values))


def _cell(value: Any) -> Markup:
    if value is None:
        return cell(None, "")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return cell(value)

    return cell(_short(str(value)), "")


def _short(text: str) -> str:
    shortened = text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
    return printable(shortened)


def _table_of(what: str, *of_some: str) -> Maker:
    """Return a function that shows a table of a run.

    Args:
        what: The name of the table among the facts.
        of_some: Columns that are left out if they are all zero.
    """

    def make(facts: RunFacts, name: str, _figures: PageFigures) -> Markup | None:
        table = getattr(facts, what)
        if table.is_empty():
            return None

        unused = [column for column in of_some if not table[column].sum()]

        return html_table(f"{what}-{name}", table.drop(unused))

    return make


COSTS = Kind(
    "costs",
    "Costs",
    "What each model cost, for decisions and texts together. Calls are requests, including failed"
    " ones. Seconds count the last request of each answer.",
    "No model was asked.",
    _table_of("costs"),
)
STEPS = Kind(
    "steps",
    "Steps of the workflow",
    "How often each step ran and how it ended, in the order of their first runs. Seconds are "
    "spent in the model or the code.",
    "No step of a workflow ran.",
    _table_of("steps", "skipped", "failed", *_TOKENS),
)
CYCLES = Kind(
    "cycles",
    "Cycles",
    "How cycles ended, by their state. The largest prompt is in tokens by the agent's own count. "
    "The other tokens are the model's.",
    "No agent had a cycle of thinking.",
    _table_of("cycles", "refused", "unusable", "failed", *_TOKENS),
)
