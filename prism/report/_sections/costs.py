"""What the models of a run cost."""

from __future__ import annotations

from markupsafe import Markup

from prism.report._facts.run_facts import RunFacts
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import PageFigures

EXPLANATION = (
    "What each model cost, in decisions and texts together. Calls are requests, those that failed "
    "included; seconds are those of the last request of each answer."
)
NOTHING = "No model was asked."


def make(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:  # noqa: ARG001
    """Make the section of one run; None if there is nothing to show.

    Args:
        facts: The run.
        name: Its name in ids.
        figures: Not used: the section has no figure.
    """
    if facts.costs.is_empty():
        return None

    return html_table(f"costs-{name}", facts.costs)
