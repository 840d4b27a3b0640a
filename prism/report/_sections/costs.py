"""What was taken by models, steps of workflows, and cycles of thinking agents, as tables."""

from __future__ import annotations

from markupsafe import Markup

from prism.report._facts.run_facts import RunFacts
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import PageFigures

COSTS_EXPLANATION = (
    "What each model cost, in decisions and texts together. Calls are requests, those that failed "
    "included; seconds are those of the last request of each answer."
)
COSTS_NOTHING = "No model was asked."


def make_costs(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:  # noqa: ARG001
    """Make the section of one run; None if there is nothing to show.

    Args:
        facts: The run.
        name: Its name in ids.
        figures: Not used: the section has no figure.
    """
    if facts.costs.is_empty():
        return None

    return html_table(f"costs-{name}", facts.costs)


STEPS_EXPLANATION = (
    "How often each step ran and how that ended, in the order in which they first ran. Seconds are "
    "those of the model or the code."
)
STEPS_NOTHING = "No step of a workflow ran."

_OF_SOME = ("skipped", "failed", "input_tokens", "output_tokens")


def make_steps(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:  # noqa: ARG001
    """Make the section of one run; None if there is nothing to show.

    Args:
        facts: The run.
        name: Its name in ids.
        figures: Not used: the section has no figure.
    """
    if facts.steps.is_empty():
        return None

    unused = [column for column in _OF_SOME if not facts.steps[column].sum()]

    return html_table(f"steps-{name}", facts.steps.drop(unused))


CYCLES_EXPLANATION = (
    "How often a cycle ended how, by the state that it ran in. The largest prompt is in tokens by "
    "the agent's own count, the other tokens are the model's."
)
CYCLES_NOTHING = "No agent had a cycle of thinking."

_OF_SOME_CYCLES = ("refused", "unusable", "failed", "input_tokens", "output_tokens")


def make_cycles(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:  # noqa: ARG001
    """Make the section of one run; None if there is nothing to show.

    Args:
        facts: The run.
        name: Its name in ids.
        figures: Not used: the section has no figure.
    """
    if facts.cycles.is_empty():
        return None

    unused = [column for column in _OF_SOME_CYCLES if not facts.cycles[column].sum()]

    return html_table(f"cycles-{name}", facts.cycles.drop(unused))
