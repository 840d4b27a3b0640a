"""The chart as far as a log shows it, with the number of times each transition was made."""

from __future__ import annotations

from markupsafe import Markup

from prism.drawing import Arrow, Diagram, draw_svg
from prism.report._facts.run_facts import RunFacts
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import PageFigures

EXPLANATION = "Every kind of transition that agents made: the wider an arrow, the more often."
NOTHING = "No agent made a transition."


def make(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
    """Make the section of one run; None if there is nothing to show.

    Args:
        facts: The run.
        name: Its name in ids.
        figures: Where to add the drawing.
    """
    if facts.transitions.is_empty():
        return None

    table = html_table(
        f"transitions-{name}", facts.transitions, {"from_state": "from", "to_state": "to"}
    )
    return Markup(
        '<div class="scroll">{}</div><details><summary>As a table</summary>{}</details>'
    ).format(figures.add_drawing(f"chart-{name}", _drawing(facts)), table)


def _drawing(facts: RunFacts) -> str:
    labels: dict[tuple[str, str], list[str]] = {}
    traffic: dict[tuple[str, str], int] = {}
    rows = facts.transitions.select("from_state", "to_state", "trigger", "count").iter_rows()
    for source, target, trigger, count in rows:
        labels.setdefault((source, target), []).append(trigger or "")
        traffic[source, target] = traffic.get((source, target), 0) + count

    arrows = tuple(Arrow(*ends, tuple(found)) for ends, found in labels.items())
    deciding = frozenset(facts.decisions["state"].drop_nulls()) & set(facts.state_names)
    diagram = Diagram(
        tuple(facts.state_names), arrows, name=facts.run.label, decision_states=deciding
    )

    return draw_svg(diagram, traffic)
