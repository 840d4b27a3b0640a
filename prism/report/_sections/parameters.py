"""The worlds of the runs, and their parameters at the beginning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from prism.drawing import printable
from prism.report._facts.run_facts import MOST_CHARACTERS, RunFacts
from prism.report._figures.html_table import cell

EXPLANATION = "What the worlds of the runs were made with. Treatments may change it later."

_MOST = 200
_MOST_AHEAD = 12


def are_many(runs: Sequence[RunFacts]) -> bool:
    """Return whether there are so many parameters that they would hide what comes after them."""
    return len(_names(runs)) > _MOST_AHEAD


def make(runs: Sequence[RunFacts]) -> Markup | None:
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
