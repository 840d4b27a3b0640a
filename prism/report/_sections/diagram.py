"""The chart as far as a log shows it, with how often each move was made."""

from __future__ import annotations

from markupsafe import Markup

from prism.drawing._diagram import Arrow, Diagram
from prism.drawing._svg import draw_svg
from prism.report._facts.run_facts import RunFacts
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import PageFigures

SAYS = "Every kind of move that agents made: the wider an arrow, the more often."
NOTHING = "No agent has moved."


def make(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
    """Make the section of one run, if there is something to show.

    Args:
        facts: The run.
        name: Names it in ids.
        figures: Takes the drawing in.
    """
    if facts.transitions.is_empty():
        return None

    table = html_table(f"moves-{name}", facts.transitions, {"from_state": "from", "to_state": "to"})
    return Markup(
        '<div class="scroll">{}</div><details><summary>As a table</summary>{}</details>'
    ).format(figures.add_drawing(f"chart-{name}", _drawing(facts)), table)


def _drawing(facts: RunFacts) -> str:
    labels: dict[tuple[str, str], list[str]] = {}
    traffic: dict[tuple[str, str], int] = {}
    for source, target, trigger, count in facts.transitions.select(
        "from_state", "to_state", "trigger", "count"
    ).iter_rows():
        labels.setdefault((source, target), []).append(trigger or "")
        traffic[source, target] = traffic.get((source, target), 0) + count

    arrows = tuple(Arrow(*ends, tuple(found)) for ends, found in labels.items())
    deciding = frozenset(facts.decisions["state"].drop_nulls()) & set(facts.state_names)
    outline = Diagram(
        tuple(facts.state_names), arrows, name=facts.run.label, decision_states=deciding
    )

    return draw_svg(outline, traffic)
