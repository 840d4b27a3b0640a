"""The key numbers of the runs, and the parameters that they were given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from markupsafe import Markup

from prism.drawing import printable
from prism.report._facts.run_facts import MOST_CHARACTERS, RunFacts
from prism.report._figures.html_table import cell, shown

_ACTS = ("posts", "replies", "reshares", "likes")
_SHARES = ("of these fallbacks", "share of the most active 1 %", "share of the most active 10 %")
_NO_DIFFERENCE = ("seed",)

Number = int | float | None


def key_numbers(facts: RunFacts) -> dict[str, Number]:
    """Return the key numbers of a run. Shares are 0 to 1; numbers that its log lacks are None.

    Args:
        facts: The run.
    """
    given = facts.engagement.filter((pl.col("measure") == "given") & (pl.col("what") == "all"))
    spread = facts.cascades.filter(pl.col("size") > 1)
    has_feed = facts.has_feed
    asked = int(facts.decisions["asked"].sum())
    fallbacks = int(facts.decisions["from_fallback"].sum())

    return {
        "agents": facts.agents.height,
        "rounds": _rounds(facts),
        "rounds planned": facts.run.rounds,
        "ticks a round": facts.run.ticks_per_round,
        "seed": facts.run.seed,
        "transitions": int(facts.transitions["count"].sum()),
        "time-outs": int(facts.timeouts["timeouts"].sum()),
        "decisions asked": asked if facts.has_decisions else None,
        "of these fallbacks": fallbacks / asked if asked else None,
        **{name: int(facts.agents[name].sum()) if has_feed else None for name in _ACTS},
        "Gini of all that was given": _only(given["gini"]),
        "share of the most active 1 %": _only(given["top_1_percent"]),
        "share of the most active 10 %": _only(given["top_10_percent"]),
        "cascades of two posts or more": spread.height if has_feed else None,
        "largest cascade, posts": _most(spread["size"]),
        "deepest cascade, steps": _most(spread["depth"]),
    }


def make_numbers(runs: Sequence[RunFacts]) -> Markup:
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
    rows = [
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            name, Markup("").join(_cells(name, found))
        )
        for name in names
    ]

    return Markup(
        '<div class="scroll"><table id="table-numbers"><thead><tr><td></td>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>"
    ).format(Markup("").join(heads), Markup("").join(rows))


def _is_known(name: str, found: Sequence[dict[str, Number]]) -> bool:
    # The rounds planned are worth a row only if fewer were made.
    if name == "rounds planned":
        return any(numbers[name] not in (None, numbers["rounds"]) for numbers in found)
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


def _only(values: pl.Series) -> float | None:
    found: float | None = values.item() if values.len() else None
    return found


def _most(counts: pl.Series) -> int | None:
    return None if counts.is_empty() else int(counts.max())  # type: ignore[arg-type]


PARAMETERS_EXPLANATION = (
    "What the worlds of the runs were made with. Treatments may change it later."
)

_MOST = 200
_MOST_AHEAD = 12


def are_many(runs: Sequence[RunFacts]) -> bool:
    """Return whether there are so many parameters that they would hide what comes after them."""
    return len(_names(runs)) > _MOST_AHEAD


def make_parameters(runs: Sequence[RunFacts]) -> Markup | None:
    """Make the section of all runs; None if no run is of a world with parameters.

    Args:
        runs: The facts of each.
    """
    names = _names(runs)
    if not names:
        return None

    heads = [Markup('<th scope="col">{}</th>').format(facts.run.label) for facts in runs]
    rows = [_row("world", [facts.run.world for facts in runs])]
    rows += [_row(name, [facts.run.parameters.get(name) for facts in runs]) for name in names]

    return Markup(
        '<div class="scroll"><table id="table-parameters"><thead><tr><td></td>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>"
    ).format(Markup("").join(heads), Markup("").join(rows))


def _names(runs: Sequence[RunFacts]) -> list[str]:
    return list(dict.fromkeys(name for facts in runs for name in facts.run.parameters))[:_MOST]


def _row(name: str, values: Sequence[Any]) -> Markup:
    cells = Markup("").join(_cell(value) for value in values)
    return Markup('<tr><th scope="row">{}</th>{}</tr>').format(_short(name), cells)


def _cell(value: Any) -> Markup:
    if value is None:
        return cell(None, "")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return cell(value)

    return cell(_short(str(value)), "")


def _short(text: str) -> str:
    shortened = text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
    return printable(shortened)
