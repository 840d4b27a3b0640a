"""The costs of models, workflow steps, and cycles of thinking agents, as tables."""

from __future__ import annotations

from markupsafe import Markup

from prism.report._facts.run_facts import RunFacts
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import PageFigures
from prism.report._sections.kinds import Kind, Maker

_TOKENS = ("input_tokens", "output_tokens")


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
